"""docs/profile.md: its full example has every key, is true about defaults, and drives a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rage_plugin.core.errors import Refused
from rage_plugin.profile import parse_profile, profile_reference

from ..e2e.project import FILES, FIX, Project, rage_line, reply
from .pages import ROOT, only

EXAMPLE = only("profile.md", "yaml", "project:")
ROWS = {row.key: row for row in profile_reference()}


def keys(value: Any, prefix: str = "") -> dict[str, Any]:
    """Values by the keys of the reference: `verification.commands[].name`."""
    found: dict[str, Any] = {prefix: value} if prefix else {}
    if isinstance(value, dict):
        found = {}
        for key, inner in value.items():
            found |= keys(inner, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in reversed(value):
            found |= keys(inner, f"{prefix}[]")
    return found


def test_the_full_example_has_every_key() -> None:
    assert set(keys(yaml.safe_load(EXAMPLE))) == set(ROWS)


def test_a_value_that_is_not_set_here_is_the_default() -> None:
    """A default that changes in the code changes the page."""
    marked = {
        m[1]
        for line in EXAMPLE.splitlines()
        if (m := re.match(r"\s*(?:- )?(\w+):.*# set here", line))
    }
    for key, value in keys(yaml.safe_load(EXAMPLE)).items():
        name = key.rpartition(".")[2]
        default = ROWS[key].default
        if (
            name in marked
            or default in ("required", "by the command")
            or key.endswith("[].required")
        ):
            continue
        shown = f"[{', '.join(value)}]" if isinstance(value, list) else str(value)
        assert shown.lower() == default.removesuffix(".0").lower(), key


def test_a_run_obeys_the_full_example(tmp_path: Path) -> None:
    """F103: the example as it stands, on the small project."""
    files = {**FILES, "rage.yaml": EXAMPLE}
    project = Project(tmp_path / "repo", tmp_path / "home", files)
    plan = project.rage("plan", "#5")
    assert "check tests (required)" in plan.stdout
    assert "check compiles (optional)" in plan.stdout
    result = project.run([reply(rage_line(slice="add", scope=["calc"]), FIX), reply("Fixed.")])
    assert result.code == 0, result.err
    assert result.items["5"]["warnings"] == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("command: [make, test, '||', 'true']", "only a shell reads"),
        ("command: [sh, -c, 'make test || true']", "passes whatever happens"),
        ("command: [make, 'tests={targets}']", "an element of its own"),
        ("comand: [make]", "did you mean command?"),
    ],
)
def test_what_the_page_says_is_refused(line: str, said: str) -> None:
    text = f"verification:\n  commands:\n    - name: tests\n      {line}\n"
    with pytest.raises(Refused, match=re.escape(said)) as caught:
        parse_profile(text)
    assert "rage.yaml:" in caught.value.line()


def test_limits_that_cannot_be_none_are_the_ones_of_the_page() -> None:
    """`none` is refused for the last four limits of the example, and only for them."""
    limits = list(yaml.safe_load(EXAMPLE)["limits"])
    for name in limits:
        text = f"limits:\n  {name}: none\n"
        if name in limits[-4:]:
            with pytest.raises(Refused):
                parse_profile(text)
        else:
            parse_profile(text)
    page = (ROOT / "docs" / "profile.md").read_text("utf-8")
    assert "The last four cannot be `none`." in page
