"""A run in memory rooms with the real plugin and database, and a small real repository."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rage_plugin.core.model import ItemSpec

from ..e2e.project import ENVIRONMENT, Project
from ..machine.processes import Process, Table, session
from ..machine.world import World, source_of
from .chats import Chat


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """Items 1 and 2, each with a gate, and 3 that needs 1; `#9` is all of them, `#2` one."""
    world = World()
    for number, needs in (("1", ()), ("2", ()), ("3", ("1",))):
        spec = ItemSpec(number, f"Item {number}", "b", source_of(number), ("c",), ("t",), needs)
        world.add_item(spec)
    world.targets = {"#9": ("1", "2", "3"), "#2": ("2",), "#0": ()}
    opened = Table(world, tmp_path / "rage.db")
    with opened.installed():
        yield opened
    opened.close()


@pytest.fixture
def chat(table: Table) -> Process:
    """A chat that drives a run on all items, before its first turn."""
    process = Process(table, session("chat", "s1"))
    said = process.says("/rage start #9")
    assert said is not None
    assert said.then is not None
    return process


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The small package in a real repository; this process knows nothing of the person's git."""
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Project(tmp_path / "a repo ü", tmp_path / "home")


@pytest.fixture
def real_chat(project: Project) -> Iterator[Callable[..., Chat]]:
    """Opens chats of this process on the real repository."""
    made: list[Chat] = []

    def make(name: str, folder: Path | None = None) -> Chat:
        made.append(Chat(str(folder or project.root), name))
        return made[-1]

    yield make
    for one in made:
        one.plugin.close()
