"""The commands to check with where the profile names none: pytest, if its traces are there.

Separate because guessing is allowed here and nowhere else; what was guessed is shown by `plan`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from rage_plugin.core.config import CheckCommand
from rage_plugin.core.errors import Refused

PYTEST = CheckCommand(
    name="tests", command=("python", "-m", "pytest", "-q", "{targets}"), report="pytest"
)
_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py")
_SECTIONS = {"pyproject.toml": "[tool.pytest", "setup.cfg": "[tool:pytest]", "tox.ini": "[pytest]"}


def detect(root: Path, paths: Iterable[str]) -> tuple[CheckCommand, ...]:
    """The default commands for a work tree that holds `paths`; empty when nothing is known."""
    names = {PurePosixPath(p).name for p in paths}
    tests = any(n.startswith("test_") and n.endswith(".py") for n in names)
    tests = tests or any(n.endswith("_test.py") for n in names)
    if tests or names.intersection(_FILES) or any(_has(root / f, s) for f, s in _SECTIONS.items()):
        return (PYTEST,)
    return ()


def nothing_detected() -> Refused:
    """What to tell a person whose project has no command to check with."""
    return Refused(
        "There is no command to check with: the profile names none and no pytest was found",
        kept="Nothing was changed",
        next="write into rage.yaml: verification: {commands: [{name: tests, "
        'command: [make, test, "{targets}"], report: none}]}',
    )


def _has(path: Path, section: str) -> bool:
    try:
        return section in path.read_text("utf-8", "replace")
    except OSError:
        return False
