"""Who drives a run: a real repository, the real plugin in this process, and a real other process.

The other process is a host with one chat that does what it is told on its standard input, so that
"alive", "killed" and "of another process" are what the system says and nothing that is pretended.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pluggy
import pytest

from rage_plugin import bootstrap, control, holder, loop
from rage_plugin.core.errors import StaleWrite
from rage_plugin.core.model import PauseReason, RunState
from rage_plugin.hookspecs import (
    Block,
    Continue,
    HostSpec,
    ModelRequest,
    Reply,
    Session,
    ToolCall,
    Turn,
    Usage,
)
from rage_plugin.plugin import RagePlugin
from tests.e2e.project import ENVIRONMENT, Project

NOBODY = ["", " ", "\t", "null", "NULL", "None", "undefined", "nil"]
HOST = """import json, sys
import pluggy
from rage_plugin.hookspecs import HostSpec, ModelRequest, Session, Turn
from rage_plugin.plugin import RagePlugin

manager = pluggy.PluginManager("rage")
manager.add_hookspecs(HostSpec)
manager.register(RagePlugin(manager))
session = Session("other", sys.argv[1], sys.argv[2])
for line in sys.stdin:
    verb, text = json.loads(line)
    hook = manager.hook
    if verb == "says":
        said = hook.rage_user_message(session=session, text=text)
        told = [said.text, said.error] if said else None
    elif verb == "begins":
        hook.rage_session_start(session=session)
        told = None
    elif verb == "asks":
        told = hook.rage_before_model_call(session=session, request=ModelRequest())
    else:
        told = type(hook.rage_turn_end(session=session, turn=Turn(text))).__name__
    print(json.dumps(told), flush=True)
"""


class Chat:
    """A chat of this process."""

    def __init__(self, project: Project, name: str, host: str = "here") -> None:
        self.manager = pluggy.PluginManager("rage")
        self.manager.add_hookspecs(HostSpec)
        self.plugin = RagePlugin(self.manager)
        self.manager.register(self.plugin)
        self.session = Session(host, name, str(project.root))

    def says(self, text: str) -> Reply | None:
        said: Reply | None = self.manager.hook.rage_user_message(session=self.session, text=text)
        return said

    def refused(self, text: str) -> str:
        said = self.says(text)
        assert said is not None
        assert said.error, said.text
        return said.text

    def asks(self) -> object:
        hook = self.manager.hook.rage_before_model_call
        return hook(session=self.session, request=ModelRequest())

    def tool(self) -> object:
        call = ToolCall("read_file", {"path": "calc/__init__.py"})
        return self.manager.hook.rage_before_tool_call(session=self.session, call=call)

    def rests(self, text: str = "") -> object:
        return self.manager.hook.rage_turn_end(session=self.session, turn=Turn(text))


class Other:
    """A chat of another process."""

    def __init__(self, project: Project, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, name, str(project.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def does(self, verb: str, text: str = "") -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([verb, text]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The small package; this process and the other one know nothing of the person's git."""
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Project(tmp_path / "a repo ü", tmp_path / "home")


@pytest.fixture
def chat(project: Project) -> Iterator[Callable[..., Chat]]:
    made: list[Chat] = []

    def make(name: str, host: str = "here") -> Chat:
        made.append(Chat(project, name, host))
        return made[-1]

    yield make
    for one in made:
        one.plugin.close()


@pytest.fixture
def other(project: Project) -> Iterator[Callable[[str], Other]]:
    made: list[Other] = []

    def make(name: str) -> Other:
        made.append(Other(project, name))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def now(project: Project) -> RunState | None:
    room = bootstrap.open_workspace(str(project.root))
    try:
        run = room.store.last_run(room.parts.workspace)
        return room.store.load(run.id) if run else None
    finally:
        room.close()


def run_of(project: Project) -> RunState:
    state = now(project)
    assert state is not None
    return state


def test_an_id_that_is_none_starts_and_owns_nothing(
    project: Project, chat: Callable[..., Chat]
) -> None:
    """Law 10: empty, missing, `null`, white space."""
    for name in NOBODY:
        assert "no usable session id" in chat(name).refused("/rage start 5")
    assert "no usable session id" in chat("s1", host=" ").refused("/rage start 5")
    assert now(project) is None
    owner = chat("s1")
    assert owner.says("/rage start 5") is not None
    before = run_of(project)
    for name in NOBODY:
        stranger = chat(name)
        stranger.manager.hook.rage_session_start(session=stranger.session)
        for text in ("/rage resume", f"/rage adopt {before.run.id}", "/rage start 5"):
            stranger.refused(text)
        assert stranger.says("a message") is None
        assert (stranger.asks(), stranger.tool(), stranger.rests()) == (None, None, None)
        # In the owner's own process, under the same hooks.
        session = Session("here", name, str(project.root))
        hook = owner.manager.hook
        assert hook.rage_before_model_call(session=session, request=ModelRequest()) is None
        assert hook.rage_turn_end(session=session, turn=Turn("DONE")) is None
        hook.rage_after_model_call(session=session, usage=Usage(10_000, 10_000))
        hook.rage_session_end(session=session)
    assert run_of(project) == before
    assert owner.asks() is not None


def test_a_second_start_names_the_holder(
    project: Project, chat: Callable[..., Chat], other: Callable[[str], Other]
) -> None:
    """Law 10: target, host and session of the run that is there; nothing is changed."""
    holder_ = other("theirs")
    said, error = holder_.does("says", "/rage start 5")
    assert not error, said
    before = run_of(project)
    for text in ("/rage start 5", "/rage resume", f"/rage adopt {before.run.id}"):
        told = chat("mine").refused(text)
        assert re.search(r"Run \w+ on #5 is .*other, session theirs", told), told
    assert run_of(project) == before
    assert holder_.does("asks") is not None


def test_adopt_takes_over_from_a_killed_process_and_from_no_living_one(
    project: Project, chat: Callable[..., Chat], other: Callable[[str], Other]
) -> None:
    theirs = other("theirs")
    theirs.does("says", "/rage start 5")
    run = run_of(project).run
    mine = chat("mine")
    mine.refused(f"/rage adopt {run.id}")
    assert mine.asks() is None
    theirs.kill()
    mine.refused("/rage adopt 00000000")
    said = mine.says(f"/rage adopt {run.id}")
    assert said is not None
    assert not said.error, said.text
    after = run_of(project).run
    assert (after.status, after.host, after.session) == ("active", "here", "mine")
    assert (after.holder, after.fence > run.fence) == (holder.holder(), True)
    assert mine.asks() is not None


def test_a_reused_id_in_another_living_process_is_not_the_owner(
    project: Project, other: Callable[[str], Other]
) -> None:
    """Law 10: not by beginning a chat, and not by what is typed in it."""
    owner, twin = other("same"), other("same")
    owner.does("says", "/rage start 5")
    before = run_of(project)
    twin.does("begins")
    for text in ("/rage status", "/rage resume", "/rage start 5", "a message"):
        twin.does("says", text)
        assert twin.does("asks") is None
        assert twin.does("rests") == "NoneType"
    assert run_of(project) == before
    owner.kill()
    twin.does("begins")
    assert twin.does("asks") is not None, "its process is dead: the chat goes on in this one"


def test_whoever_was_taken_over_from_writes_nothing_more(
    project: Project, chat: Callable[..., Chat]
) -> None:
    """Fencing: every hook of the old session is neutral, and its writes fail."""
    old, new = chat("old"), chat("new")
    old.says("/rage start 5")
    old.asks()
    stale = run_of(project)
    new.says("/rage pause")
    new.says("/rage resume")
    before = run_of(project)
    assert (before.run.session, before.run.status) == ("new", "active")
    assert old.asks() is None
    assert isinstance(old.tool(), Block), "its agent is in the middle of a turn, and must rest"
    assert not isinstance(old.rests("DONE"), Continue)
    assert (old.asks(), old.tool(), old.rests()) == (None, None, None)
    assert old.says("a message") is None
    old.manager.hook.rage_session_end(session=old.session)
    assert run_of(project) == before
    room = bootstrap.open_workspace(str(project.root))
    try:
        lease, ended = loop.Lease.of(stale.run), loop.Ended(Turn("DONE"))
        ticked = loop.tick(room.parts, stale.run.id, lease, ended, lambda line: None)
        assert ticked.text is None
        control.interrupt(room.parts, stale.run.id, PauseReason.SESSION_ENDED, "", lease.fence)
        event = room.store.events(stale.run.id)[0].event
        with pytest.raises(StaleWrite):
            room.store.append(stale.run.id, stale.run.version, [event], time.time())
    finally:
        room.close()
    assert run_of(project) == before
    assert new.asks() is not None


@pytest.mark.parametrize("days", [-1, 1, 400])
def test_a_clock_that_jumps_kills_nobody(
    project: Project,
    chat: Callable[..., Chat],
    other: Callable[[str], Other],
    monkeypatch: pytest.MonkeyPatch,
    days: int,
) -> None:
    """Neither does a lease end early nor a breaker open; nor does a dead holder come to life."""
    theirs = other("theirs")
    theirs.does("says", "/rage start 5")
    before = run_of(project)
    monkeypatch.setattr(bootstrap.WallClock, "now", lambda self: time.time() + 86_400 * days)
    mine = chat("mine")
    assert "Its host is gone" not in str(mine.says("/rage status"))
    mine.refused(f"/rage adopt {before.run.id}")
    assert run_of(project) == before
    theirs.kill()
    assert "Its host is gone" in str(mine.says("/rage status"))
    said = mine.says(f"/rage adopt {before.run.id}")
    assert said is not None
    assert not said.error, said.text
    mine.asks()
    assert isinstance(mine.rests(), Continue)
    assert run_of(project).run.active_seconds < 600


def test_a_process_with_a_reused_pid_is_not_the_holder(
    project: Project, chat: Callable[..., Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id is this very process's; it began at another time, so it was another process."""
    head, _, start = holder.holder().rpartition(":")
    assert head.endswith(f":{os.getpid()}")
    before = f"{float(start) - 60:.2f}" if "." in start else int(start) - 1
    with monkeypatch.context() as patched:
        patched.setattr(holder, "holder", lambda: f"{head}:{before}")
        chat("old").says("/rage start 5")
    run = run_of(project).run
    assert holder.liveness(run.holder) == "dead"
    mine = chat("mine")
    assert mine.asks() is None
    said = mine.says(f"/rage adopt {run.id}")
    assert said is not None
    assert not said.error, said.text
    assert run_of(project).run.holder == holder.holder()
