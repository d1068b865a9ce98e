"""Processes and chats of the machine: the real plugin in each, over one world and one database.

A process that is killed leaves its objects as they are, unclosed; whoever comes next opens a new
store on the same file. Which processes live is told by this table instead of `/proc`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar
from unittest import mock

import pluggy

from rage_plugin import answers, bootstrap, holder, resume
from rage_plugin.active import ActiveHooks
from rage_plugin.hookspecs import (
    Continue,
    Hold,
    HostSpec,
    ModelRequest,
    Reply,
    Session,
    Stop,
    ToolCall,
    ToolOutcome,
    Turn,
    Usage,
)
from rage_plugin.plugin import RagePlugin
from rage_plugin.store import open_store

from .world import FOLDER, Killed, World, compose

T = TypeVar("T")


class Process:
    """One host process with one chat: its plugin manager, its plugin, its own connection."""

    def __init__(self, table: Table, session: Session) -> None:
        self.table, self.session = table, session
        self.holder = f"process-{len(table.all)}"
        self.alive = True
        table.all.append(self)
        self.manager = pluggy.PluginManager("rage")
        self.manager.add_hookspecs(HostSpec)
        self.plugin = RagePlugin(self.manager)
        self.manager.register(self.plugin)

    def call(self, act: Callable[[], T]) -> T | None:
        """Let this process do something; None where it was killed meanwhile."""
        before, self.table.running = self.table.running, self
        try:
            return act()
        except Killed:
            self.alive = False
            return None
        finally:
            self.table.running = before

    def kill(self) -> None:
        self.alive = False

    def says(self, text: str, session: Session | None = None) -> Reply | None:
        """A person types something in this process's chat, or in one of another name."""
        hook = self.manager.hook.rage_user_message
        said: Reply | None = self.call(lambda: hook(session=session or self.session, text=text))
        return said

    def begins(self, session: Session | None = None) -> None:
        hook = self.manager.hook.rage_session_start
        self.call(lambda: hook(session=session or self.session))

    def ends(self) -> None:
        self.call(lambda: self.manager.hook.rage_session_end(session=self.session))

    def asks(self, worst: int) -> str | Hold | None:
        hook, request = self.manager.hook.rage_before_model_call, ModelRequest(tokens=worst)
        told: str | Hold | None = self.call(lambda: hook(session=self.session, request=request))
        return told

    def used(self, tokens: int) -> None:
        usage = Usage(tokens, 0)
        hook = self.manager.hook.rage_after_model_call
        self.call(lambda: hook(session=self.session, usage=usage))

    def tool(self, args: dict[str, object], outcome: ToolOutcome) -> object:
        """A tool call; what the guard said to it, None where it ran."""
        call, hook = ToolCall("read_file", args), self.manager.hook
        said = self.call(lambda: hook.rage_before_tool_call(session=self.session, call=call))
        if said is None and self.alive:
            after = hook.rage_after_tool_call
            self.call(lambda: after(session=self.session, call=call, outcome=outcome))
        return said

    def rests(self, turn: Turn) -> Continue | Stop | None:
        hook = self.manager.hook.rage_turn_end
        told: Continue | Stop | None = self.call(lambda: hook(session=self.session, turn=turn))
        return told

    @property
    def hooks(self) -> ActiveHooks | None:
        return self.plugin._active

    @property
    def bound(self) -> bool:
        """Whether hooks of a run are registered here."""
        return self.plugin.active


@dataclass
class Table:
    """All processes there ever were, and the one that runs just now."""

    world: World
    database: Path
    all: list[Process] = field(default_factory=list)
    running: Process | None = None
    opened: list[bootstrap.Workspace] = field(default_factory=list)
    runs: int = 0

    def open(self, folder: str) -> bootstrap.Workspace:
        if not self.database.exists():
            self.database.write_bytes(_migrated())
        room = compose(self.world, self.database)
        self.opened.append(room)
        return room

    def new_run(self) -> str:
        self.runs += 1
        return f"{self.runs:08x}"

    def name(self) -> str:
        return self.running.holder if self.running else "nobody"

    def liveness(self, name: str) -> holder.Liveness:
        return "alive" if any(p.alive for p in self.all if p.holder == name) else "dead"

    def fault(self, folder: str, text: str) -> str:
        self.world.faults.append(text)
        return "rage.log"

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While it lasts, the composition root wires this world's rooms."""
        known = self.database.parent
        with ExitStack() as stack:
            for where, name, value in (
                (answers, "new_run_id", self.new_run),
                (bootstrap, "open_workspace", self.open),
                (bootstrap, "known_state", lambda folder: known),
                (bootstrap, "log_fault", self.fault),
                (holder, "holder", self.name),
                (holder, "liveness", self.liveness),
                (resume, "holder", self.name),
                (resume, "liveness", self.liveness),
            ):
                stack.enter_context(mock.patch.object(where, name, value))
            stack.enter_context(mock.patch.dict("os.environ", XDG_STATE_HOME=str(known / "user")))
            yield

    def close(self) -> None:
        for room in self.opened:
            room.close()


@cache
def _migrated() -> bytes:
    """A new database as the store makes it, made once: there are hundreds of worlds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rage.db"
        open_store(path).close()
        return path.read_bytes()


def session(host: str, name: str) -> Session:
    return Session(host, name, FOLDER)
