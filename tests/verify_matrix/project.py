"""A small real package in a real git repository, and the ways an agent may change it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pluggy

from rage_plugin.core.config import CheckCommand, ProjectConfig, VerifyConfig
from rage_plugin.core.judgement import Judgement, JudgeRequest
from rage_plugin.core.model import Base
from rage_plugin.hookspecs import PROJECT, ExtensionSpec
from rage_plugin.verify import JUnitPlugin, VerifyRoom

Files = Mapping[str, str | None]
"""Text by path; None deletes the file."""

GATE = "tests/test_core.py::test_add"
PYTEST = CheckCommand(
    name="tests",
    # This environment's plugins take a second to load and are not what is tested.
    command=(sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", "{targets}"),
    report="pytest",
)
CORE = '''\
"""Sums."""


def add(a, b):
    return a - b


def mul(a, b):
    return a * b


def double(n):
    return n * 2
'''
FIXED = CORE.replace("a - b", "a + b")
TEST_CORE = """\
import json
from pathlib import Path

import pytest

from calc.core import add, double, mul
from helper import close


def test_add():
    assert add(2, 3) == 5


def test_mul():
    assert close(mul(2, 3), 6)


@pytest.mark.parametrize("n", [1, 2])
def test_double(n):
    assert double(n) == n + n


def test_cases():
    for a, b, product in json.loads((Path(__file__).parent / "data" / "cases.json").read_text()):
        assert mul(a, b) == product
"""
TEST_TEXT = """\
from calc.text import shout


def test_shout():
    assert shout("a") == "A!"


def test_empty():
    assert shout("") == "!"
"""
PYPROJECT = """\
[project]
name = "calc"
version = "1.0"

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
"""
FILES: dict[str, str] = {
    "src/calc/__init__.py": "",
    "src/calc/core.py": CORE,
    "src/calc/text.py": "def shout(word):\n    return word.upper() + '!'\n",
    "tests/test_core.py": TEST_CORE,
    "tests/test_text.py": TEST_TEXT,
    "tests/helper.py": "def close(a, b):\n    return abs(a - b) < 1e-9\n",
    "tests/data/cases.json": "[[2, 2, 4], [3, 0, 0]]\n",
    "pyproject.toml": PYPROJECT,
    "rage.yaml": "project: {id: calc}\n",
    "backlog/5-add.md": "---\nid: 5\ngates: [tests/test_core.py::test_add]\n---\n# Add\n",
    "CHANGELOG.md": "# Changes\n",
    ".gitignore": "__pycache__/\n*.log\n/local/\n",
    "scripts/check.sh": "#!/bin/sh\nexit 0\n",
}


def git(root: Path, *args: str) -> str:
    """stdout of git in `root`, independent of the user's configuration."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    done = subprocess.run(
        ["git", *identity, *args], cwd=root, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def write(root: Path, files: Files) -> None:
    """Write or delete files below `root`."""
    for path, text in files.items():
        target = root / path
        if text is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def extensions() -> pluggy.PluginManager:
    """The built-in report parser, registered as the product does."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExtensionSpec)
    manager.register(JUnitPlugin())
    return manager


@dataclass(slots=True)
class Project:
    """One repository with a verify room on it."""

    root: Path
    state: Path
    config: ProjectConfig = field(
        default_factory=lambda: ProjectConfig(
            path="rage.yaml", verification=VerifyConfig(commands=(PYTEST,))
        )
    )

    @classmethod
    def make(cls, folder: Path, files: Files = FILES) -> Project:
        """A repository with one commit of `files`."""
        project = cls(folder / "work", folder / "state")
        project.root.mkdir()
        project.state.mkdir()
        git(project.root, "init", "-q", "-b", "main")
        project.commit(files)
        return project

    def commit(self, files: Files) -> None:
        """Change files and commit them."""
        write(self.root, files)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "a state of the project")

    def reset(self) -> None:
        """Back to the last commit, ignored files included."""
        git(self.root, "reset", "-q", "--hard")
        git(self.root, "clean", "-q", "-ffdx")

    def with_(self, **verification: object) -> Project:
        """The same project with another verification profile."""
        changed = replace(self.config.verification, **verification)  # type: ignore[arg-type]
        return replace(self, config=replace(self.config, verification=changed))

    @property
    def room(self) -> VerifyRoom:
        """A verify room as the composition root builds it."""
        return VerifyRoom(self.root, self.state, self.config, extensions())

    def judge(self, change: Files, given: tuple[str, ...] = (GATE,), **more: object) -> Judgement:
        """Open a run, let an agent change files, and judge what it left."""
        room = self.room
        base = room.open("r1")
        write(self.root, change)
        return judge_now(room, base, given, **more)


def judge_now(room: VerifyRoom, base: Base, given: tuple[str, ...], **more: object) -> Judgement:
    """Judge the work tree as it is."""
    request = JudgeRequest(
        run="r1",
        item="5",
        base=base,
        tree=room.snapshot(base),
        given=given,
        **more,  # type: ignore[arg-type]
    )
    return room.judge(request, lambda _line: None)
