"""A real repository in an odd folder, and candidates in a private object store as verify keeps it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rage_plugin.core.config import GitConfig
from rage_plugin.core.model import Base, Item
from rage_plugin.deliver import DeliverRoom

RUN = "run1a2b3c"
Files = Mapping[str, str | bytes | None]


class Repo:
    """One repository with the folder of RAGE's state, and a room on both."""

    def __init__(self, path: Path, config: GitConfig | None = None) -> None:
        self.path = path
        self.config = config or GitConfig()
        self.state = path / ".git" / "rage"
        self.room = DeliverRoom(path, self.state, self.config, limit_s=30)

    def git(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            input=stdin,
            capture_output=True,
            check=False,
            env=os.environ | dict(env or {}),
        )
        assert done.returncode == 0, (args, done.stderr)
        return os.fsdecode(done.stdout.removesuffix(b"\n"))

    def write(self, files: Files) -> None:
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit_all(self, files: Files, message: str = "by hand") -> str:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "-q", "--no-verify", "-m", message)
        return self.git("rev-parse", "HEAD")

    def work(self, files: Files) -> str:
        """An agent's change: files on disk, and their tree in the private store alone."""
        self.write(files)
        store = self.state / "trees" / "objects" / "00000000"
        store.mkdir(parents=True, exist_ok=True)
        index = self.state / "test-index"
        index.unlink(missing_ok=True)
        objects = self.git("rev-parse", "--path-format=absolute", "--git-path", "objects")
        quoted = objects.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        env = {
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(store),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"',
        }
        if self.room.head():
            self.git("read-tree", "HEAD", env=env)
        listed = b"".join(os.fsencode(name) + b"\0" for name in files)
        self.git(
            "update-index", "--add", "--replace", "--remove", "-z", "--stdin", stdin=listed, env=env
        )
        return self.git("write-tree", env=env)

    def base(self) -> Base:
        head = self.room.head()
        tree = self.git("rev-parse", "HEAD^{tree}") if head else self.git("mktree")
        return Base(tree, head)

    def deliver(self, files: Files, item: Item | None = None, status: str = "verified") -> str:
        """Work on an item and commit it."""
        base = self.base()
        return self.room.commit(RUN, item or an_item(), base, self.work(files), "ev1", status)

    def status(self) -> str:
        return self.git("status", "--porcelain")

    def hook(self, name: str, script: str) -> Path:
        folder = self.path / ".git" / "hooks"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path


def an_item(ident: str = "5", title: str = "Fix the parser", **more: str) -> Item:
    """An item of the run under test."""
    return Item(run=RUN, id=ident, position=0, title=title, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _only_this_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Repo]:
    """Make a repository on branch `work`; options are for `git init`."""

    def make_one(*options: str, name: str = "ein: Päck\nchen", branch: str = "work") -> Repo:
        path = tmp_path / name
        subprocess.run(
            ["git", "init", "-q", "-b", branch, *options, str(path)], check=True, env=os.environ
        )
        repo = Repo(path)
        repo.git("config", "user.name", "Una Üser")
        repo.git("config", "user.email", "una@example.org")
        return repo

    return make_one


@pytest.fixture
def repo(make: Callable[..., Repo]) -> Repo:
    """A repository with one commit on the branch `work`."""
    one = make()
    one.commit_all({"a.py": "a = 1\n", "b.py": "b = 1\n", "dir/c.py": "c = 1\n"}, "first")
    return one
