"""A workspace, a script and a recording `Ui` for tests of the embedded host."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from host_adapters.embedded.host import Host


class Recorder:
    """A `Ui` that keeps what a person would have seen."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def text(self, piece: str) -> None:
        self.seen.append(("text", piece))

    def end_text(self) -> None:
        pass

    def tool(self, name: str, args: Mapping[str, object]) -> None:
        self.seen.append(("tool", name))

    def result(self, status: str, text: str) -> None:
        self.seen.append((status, text))

    def say(self, text: str) -> None:
        self.seen.append(("say", text))

    def note(self, line: str) -> None:
        self.seen.append(("note", line))

    def progress(self, line: str) -> None:
        self.seen.append(("progress", line))

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()

    def of(self, kind: str) -> list[str]:
        """Everything of one kind, in order."""
        return [text for what, text in self.seen if what == kind]


@pytest.fixture
def ui() -> Recorder:
    return Recorder()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space ü"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\n")
    return folder


@pytest.fixture
def make_host(tmp_path: Path, workspace: Path, ui: Recorder) -> Callable[..., Host]:
    """A host without RAGE, on a script given as a list; stand-in plugins are registered on it."""

    def make(replies: list[dict[str, Any]], *plugins: object, **options: Any) -> Host:
        script = tmp_path / "script.json"
        script.write_text(json.dumps(replies))
        options.setdefault("sleep", lambda seconds: None)
        host = Host(str(workspace), f"script:{script}", ui, with_rage=False, **options)
        for plugin in plugins:
            host.hooks.manager.register(plugin)
        return host

    return make
