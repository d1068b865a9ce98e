"""A small real package in a real repository, and `rage run` as a person would type it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CODE = '''"""Sums."""


def add(a, b):
    return a - b


def double(a):
    return a * 2
'''
FIXED = CODE.replace("a - b", "a + b")
TEST = """from calc import add, double


def test_add():
    assert add(2, 3) == 5


def test_double():
    assert double(4) == 8
"""
OTHER = """from calc import double


def test_twice():
    assert double(1) == 2


def test_zero():
    assert double(0) == 0
"""
ITEM = """---
id: 5
title: Sums are wrong
gates:
  - tests/test_add.py::test_add
---
`add(2, 3)` gives -1.

- [ ] two numbers are added
"""
FILES: Mapping[str, str] = {
    "calc/__init__.py": CODE,
    "tests/test_add.py": TEST,
    "tests/test_other.py": OTHER,
    "backlog/5-sums.md": ITEM,
    "README.md": "# calc\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
}
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


@dataclass
class Result:
    """What `rage run --json` came to."""

    code: int
    data: dict[str, Any]
    err: str

    @property
    def items(self) -> dict[str, dict[str, Any]]:
        return {i["id"]: i for i in self.data["items"]}


class Project:
    """One repository; `home` keeps the user's state folder apart from everybody else's."""

    def __init__(self, root: Path, home: Path, files: Mapping[str, str] = FILES) -> None:
        self.root, self.home = root, home
        root.mkdir(parents=True)
        home.mkdir(parents=True, exist_ok=True)
        self.write(files)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Somebody")
        self.git("config", "user.email", "somebody@example.invalid")
        self.commit("start")

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def git(self, *args: str) -> str:
        return subprocess.run(
            ["git", *args],
            cwd=self.root,
            env={**ENVIRONMENT, "HOME": str(self.home)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def script(self, replies: Sequence[Mapping[str, Any]]) -> str:
        path = self.home / "script.json"
        path.write_text(json.dumps(list(replies)), "utf-8")
        return f"script:{path}"

    def rage(
        self, *words: str, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """The `rage` command in this workspace."""
        return subprocess.run(
            [sys.executable, "-m", "rage_plugin", *words],
            cwd=self.root,
            env={**ENVIRONMENT, "HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def run(
        self,
        replies: Sequence[Mapping[str, Any]],
        target: str = "#5",
        *options: str,
    ) -> Result:
        """`rage run TARGET --json` with scripted replies."""
        done = self.rage("run", target, "--model", self.script(replies), "--json", *options)
        try:
            data = json.loads(done.stdout)
        except ValueError as error:
            raise AssertionError(f"no JSON on stdout: {done.stdout!r}\n{done.stderr}") from error
        return Result(done.returncode, data, done.stderr)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "args": {"path": path, "old": old, "new": new}}


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "args": {"path": path, "content": content}}


def shell(command: str) -> dict[str, Any]:
    return {"name": "run_command", "args": {"command": command}}


def reply(text: str = "", *tools: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "tools": list(tools)} if tools else {"text": text}


def rage_line(**values: object) -> str:
    return "RAGE " + json.dumps(values)


FIX = edit("calc/__init__.py", "a - b", "a + b")
