"""docs/profile.md: its full example has every key, is true about defaults, and drives a run."""

from __future__ import annotations

import re
import venv
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


COMMANDS = """verification:
  commands:
    - name: tests
      command: [{python}, -m, pytest, -q, "{{targets}}"]
    - name: compiles
      command: [python, -m, compileall, -q, {compiled}]
"""


def test_a_source_file_that_a_command_names_is_sealed(tmp_path: Path) -> None:
    """And its folder is not, which is what the page tells to name."""
    for number, (compiled, code) in enumerate([("calc/__init__.py", 4), ("calc", 0)]):
        files = {**FILES, "rage.yaml": COMMANDS.format(python="python", compiled=compiled)}
        project = Project(tmp_path / str(number), tmp_path / "home", files)
        result = project.run([reply("", FIX), reply("Fixed.")])
        assert result.code == code, result.err
        sealed = "calc/__init__.py is sealed" in result.items["5"]["reason"]
        assert sealed == bool(code)


def test_a_python_without_pytest_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    """A program with a folder in its name is taken and no other one."""
    profile = COMMANDS.format(python="tools/bin/python", compiled="calc")
    files = {**FILES, "rage.yaml": profile, ".gitignore": "tools/\n"}
    project = Project(tmp_path / "repo", tmp_path / "home", files)
    venv.create(project.root / "tools", with_pip=False, symlinks=True)
    why = "No interpreter for `tools/bin/python -m pytest -q {targets}` can import pytest"
    assert f"start would be refused: {why}" in project.rage("plan", "#5").stdout
    result = project.run([reply("never asked")])
    assert result.code == 1
    assert result.data["reason"].startswith(why)
    assert result.data["tokens"] == 0


def test_exit_codes_of_a_suite_that_is_red_before_are_for_a_person(tmp_path: Path) -> None:
    """`report: none`: the fix of the item's own gate is `unverified`."""
    runner = "import sys\nfrom calc import add\n\nsys.exit(add(2, 3) != 5)\n"
    profile = """verification:
  commands:
    - name: script
      command: [python, -m, tests.check, "{targets}"]
      report: none
"""
    files = {**FILES, "tests/__init__.py": "", "tests/check.py": runner, "rage.yaml": profile}
    project = Project(tmp_path / "repo", tmp_path / "home", files)
    result = project.run([reply("", FIX), reply("Fixed.")])
    assert result.code == 4, result.err
    assert result.items["5"]["status"] == "unverified"
    assert "script was red before" in result.items["5"]["reason"]


def test_limits_that_cannot_be_none_are_the_ones_of_the_page() -> None:
    """`none` is refused for the last six limits of the example, and only for them."""
    limits = list(yaml.safe_load(EXAMPLE)["limits"])
    for name in limits:
        text = f"limits:\n  {name}: none\n"
        if name in limits[-6:]:
            with pytest.raises(Refused):
                parse_profile(text)
        else:
            parse_profile(text)
    page = (ROOT / "docs" / "profile.md").read_text("utf-8")
    assert "The last six cannot be `none`." in page
