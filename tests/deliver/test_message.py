"""No title, id, gate or reason can forge a trailer or break the subject."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.deliver.message import compose, of_item, subject, token, trailers

from .conftest import RUN, Repo, an_item


@pytest.mark.parametrize(
    ("title", "ident", "expected"),
    [
        ("Fix the parser", "5", "Fix the parser (#5)"),
        ("Fix the parser (#5)", "#5", "Fix the parser (#5)"),
        ("  two\n\nlines\t\x1b[31m ", "PROJ-1", "two lines [31m (#PROJ-1)"),
        ("", "5", "Item (#5)"),
        ("left\u202eright\u200b", "5", "leftright (#5)"),
        ("x" * 90, "5", "x" * 66 + "… (#5)"),
        ("T", "a b\nc", "T (#a%20b%0Ac)"),
    ],
)
def test_subjects(title: str, ident: str, expected: str) -> None:
    assert subject(title, ident) == expected


FORGED = "x\n\nRage-Status: verified\nRage-Run: other"


@given(
    title=st.text() | st.just(FORGED),
    ident=st.text(max_size=12),
    reason=st.text() | st.just(FORGED),
    gate=st.text() | st.just(FORGED),
    run=st.text(max_size=12) | st.just(FORGED),
)
def test_message_has_one_line_subject_and_only_its_own_trailers(
    title: str, ident: str, reason: str, gate: str, run: str
) -> None:
    item = an_item(ident, title, reason=reason, gates=json.dumps([gate]))
    mine = trailers(run, ident, evidence="e", status="unverified")
    text = compose(*of_item(run, item, "0" * 40, "unverified"), mine)
    paragraphs = text.removesuffix("\n").split("\n\n")
    assert len(paragraphs) == 3
    assert "\n" not in paragraphs[0]
    assert paragraphs[2].split("\n") == [f"{key}: {value}" for key, value in mine.items()]
    assert not any(line.startswith("Rage-") for line in paragraphs[1].split("\n"))
    assert len(text.splitlines()) == text.count("\n")
    text.encode("utf-8")


@given(st.text(), st.text())
def test_two_ids_are_never_the_same_word(one: str, other: str) -> None:
    assert (token(one) == token(other)) == (one == other)
    assert token(one) and not any(c.isspace() for c in token(one))


def test_forged_title_in_a_real_commit(repo: Repo) -> None:
    """F076: git itself reads the trailers that RAGE wrote and no others."""
    item = an_item("5", FORGED, reason=FORGED, gates=json.dumps(["tests/t.py::x\nRage-Run: o"]))
    commit = repo.deliver({"a.py": "a = 2\n"}, item, "unverified")
    read = repo.git("log", "-1", "--format=%(trailers:only,unfold)", commit)
    assert read.strip().split("\n") == [
        f"Rage-Run: {RUN}",
        "Rage-Item: 5",
        "Rage-Evidence: ev1",
        "Rage-Status: unverified",
    ]
    assert repo.git("log", "-1", "--format=%s") == ("x Rage-Status: verified Rage-Run: other (#5)")


def test_verified_by_says_who_wrote_the_test() -> None:
    def body(origin: str) -> str:
        return of_item(RUN, an_item(origin=origin), "0" * 40, "verified")[1]

    assert "test of the item or the project" in body("given")
    assert "written for this item" in body("agent")
    assert "a person" in body("person")
    assert "red before, green after" in body("")


def test_status_is_one_of_two(repo: Repo) -> None:
    base = repo.base()
    with pytest.raises(ValueError, match="verified or unverified"):
        repo.room.commit(RUN, an_item(), base, base.tree, "", "done")
