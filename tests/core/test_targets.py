"""What a person types as TARGET."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.errors import UsageError
from rage_plugin.core.targets import Target, TargetKind, normal_id, parse_target

K = TargetKind


@pytest.mark.parametrize(
    ("typed", "kind", "value"),
    [
        ("#5", K.ITEM, "5"),
        ("5", K.ITEM, "5"),
        (" 005 ", K.ITEM, "5"),
        ("5.10", K.ITEM, "5.10"),
        ("#login-form", K.ITEM, "login-form"),
        ("epic:5", K.EPIC, "5"),
        ("EPIC: #05", K.EPIC, "5"),
        ("backlog", K.BACKLOG, "backlog"),
        ("Backlog", K.BACKLOG, "backlog"),
        ("backlog/", K.PATH, "backlog/"),
        ("docs/my plan.md", K.PATH, "docs/my plan.md"),
        ('"a b.MD"', K.PATH, "a b.MD"),
        (".", K.PATH, "."),
        ("login", K.WORD, "login"),
        ("5-title", K.WORD, "5-title"),
        ("jira:ABC-1", K.FOREIGN, "jira:ABC-1"),
        ("https://example.org/issues/5.md", K.FOREIGN, "https://example.org/issues/5.md"),
        ("notes: a.md", K.PATH, "notes: a.md"),
    ],
)
def test_forms(typed: str, kind: TargetKind, value: str) -> None:
    assert parse_target(typed) == Target(kind, value)


@given(st.text(max_size=30))
def test_anything_typed_is_a_target_or_a_usage_error(typed: str) -> None:
    """F004: the text of a target parses to the same target."""
    try:
        target = parse_target(typed)
    except UsageError as error:
        assert "\n" not in error.line()
        return
    assert target.value
    if target.kind in (K.ITEM, K.EPIC, K.BACKLOG):
        assert parse_target(str(target)) == target


@given(st.text(max_size=30))
def test_an_id_has_one_spelling(text: str) -> None:
    found = normal_id(text)
    assert normal_id(found) == found
    assert not found.startswith((".", "-")) and ".." not in found and "/" not in found
