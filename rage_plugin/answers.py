"""A command and its answer: the one place that carries out what a person types, chat or shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from . import control, intake, report
from .commands import Command, help_text
from .core.errors import Refused
from .core.model import RunState, RunStatus
from .core.ports import Progress
from .hookspecs import Session
from .parts import Parts

NOBODY = frozenset({"", "null", "none", "undefined", "nil"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command came to."""

    text: str
    data: Mapping[str, object] = field(default_factory=dict)
    """The same for `--json`."""
    state: RunState | None = None
    """The run it was about."""
    then: str | None = None
    """The message that begins a turn of the agent."""


class Room(Protocol):
    """What of an open workspace is needed here."""

    @property
    def parts(self) -> Parts: ...

    def context(self) -> tuple[str, dict[str, object]]: ...


def answer(room: Room, session: Session, command: Command, progress: Progress) -> Answer:
    """Carry out a command; raises `RageError` where it is refused."""
    parts = room.parts
    match command.verb:
        case "help":
            return Answer(help_text())
        case "plan":
            planned = intake.plan(parts, command)
            return Answer(intake.plan_lines(planned), dict(planned))
        case "start" if _resumable(parts, session, command):
            control.limit(parts, command)
            return _resume(parts, session, progress)
        case "start":
            owned(session)
            started = intake.start(parts, session, command, new_run_id(), holder())
            return Answer(started.text, _report(parts, started.state), started.state, started.brief)
        case "status":
            return _status(parts)
        case "report":
            return _full_report(parts)
        case "context":
            text, data = room.context()
            return Answer(text, data)
        case "resume":
            return _resume(parts, session, progress)
        case _:
            state = _act(parts, command)
            text = f"{_told(command, state)}{report.status_line(state)}"
            return Answer(text, _report(parts, state), state)


def _act(parts: Parts, command: Command) -> RunState:
    match command.verb:
        case "pause":
            return control.pause(parts)
        case "stop":
            return control.stop(parts)
        case "correct":
            return control.correct(parts, command.text)
        case "accept":
            return control.accept(parts, command.target)
        case "reject":
            return control.reject(parts, command.target, command.text)
    raise Refused(f"{command.verb} is not carried out here", next="/rage help")


def _told(command: Command, state: RunState) -> str:
    """What a command did, where the status does not show it."""
    item = command.target.removeprefix("#")
    match command.verb:
        case "correct":
            return f"Recorded as correction {state.run.plan_version}: the plan is superseded.\n"
        case "accept":
            return f"Accepted: {item} is done, on your word.\n"
        case "reject":
            return f"Rejected: {item} failed, and its commit was taken back by a new one.\n"
    return ""


def _resumable(parts: Parts, session: Session, command: Command) -> bool:
    """Whether `start` names the run that waits here already: then it goes on (F004)."""
    run = parts.store.active_run(parts.workspace)
    if run is None or run.target != command.target:
        return False
    if run.status is RunStatus.PAUSED:
        return True
    return (run.host, run.session) != (session.host, session.id) and not alive(run.holder)


def _resume(parts: Parts, session: Session, progress: Progress) -> Answer:
    owned(session)
    ticked = control.resume(parts, session, holder(), alive, progress)
    text = report.status_line(ticked.state)
    return Answer(text, _report(parts, ticked.state), ticked.state, ticked.text)


def owned(session: Session) -> None:
    """Refuse a session that names nobody: such a run could be taken by any other (law 10)."""
    if session.id.strip().lower() in NOBODY or not session.host.strip():
        raise Refused(
            f"The host gave no usable session id ({session.id!r}), so no run can be bound to it",
            kept="Nothing was changed",
            next="start from a chat that has an id, or use: rage run TARGET",
        )


def new_run_id() -> str:
    """A short random id, unique enough for one repository."""
    return os.urandom(4).hex()


def holder() -> str:
    """This process as `pid:start-time`, so that a reused pid is not mistaken for it."""
    import psutil  # noqa: PLC0415

    return f"{os.getpid()}:{psutil.Process().create_time():.2f}"


def alive(name: str) -> bool:
    """Whether the process that `holder` named still runs."""
    import psutil  # noqa: PLC0415

    pid, _, started = name.partition(":")
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == started
    except (psutil.Error, ValueError):
        return False


def _report(parts: Parts, state: RunState) -> dict[str, object]:
    return dict(report.report(parts.store, state.run.id))


def _status(parts: Parts) -> Answer:
    run = parts.store.active_run(parts.workspace) or parts.store.last_run(parts.workspace)
    if run is None:
        return Answer(f"{control.NO_RUN}. Next: /rage start TARGET", {"status": "none"})
    state = parts.store.load(run.id)
    text = report.status_line(state)
    if run.status is RunStatus.ACTIVE and not alive(run.holder):
        text += ". Its host is gone. Next: /rage resume"
    return Answer(text, _report(parts, state), state)


def _full_report(parts: Parts) -> Answer:
    run = parts.store.active_run(parts.workspace) or parts.store.last_run(parts.workspace)
    if run is None:
        raise Refused(control.NO_RUN, next="/rage start TARGET")
    data = report.report(parts.store, run.id)
    return Answer(report.lines(data), dict(data), parts.store.load(run.id))
