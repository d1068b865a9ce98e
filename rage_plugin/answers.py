"""A command and its answer: the one place that carries out what a person types, chat or shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from . import control, handoff, holder, intake, report, resume, why
from .commands import Command, help_text
from .core import dialogue
from .core.errors import Refused
from .core.model import RunState, RunStatus
from .core.oneline import one_line
from .core.ports import Progress
from .core.replay import replayed
from .hookspecs import Session
from .parts import Parts

SHELL = "shell"
"""The host's name of a session that is a shell and no chat."""
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
    failed: bool = False
    """The command was carried out and found something wrong: exit code 1."""


class Room(Protocol):
    """What of an open workspace is needed here."""

    @property
    def parts(self) -> Parts: ...

    def context(self) -> tuple[str, dict[str, object]]: ...

    def audit(self, run: str, head: str) -> tuple[str, dict[str, object]]: ...

    def kill(self) -> RunState: ...

    def reap(self) -> None: ...


def answer(room: Room, session: Session, command: Command, progress: Progress) -> Answer:
    """Carry out a command; raises `RageError` where it is refused."""
    parts = room.parts
    if command.verb in ("start", "resume", "adopt"):
        room.reap()
    match command.verb:
        case "help":
            return Answer(help_text())
        case "plan":
            planned = intake.plan(parts, command)
            return Answer(intake.plan_lines(planned), dict(planned))
        case "start" if _resumable(parts, command):
            return _resume(parts, session, command, progress)
        case "start":
            owned(session)
            started = intake.start(parts, session, command, new_run_id(), holder.holder())
            return Answer(started.text, _report(parts, started.state), started.state, started.brief)
        case "status":
            return _status(parts, session)
        case "report":
            return _full_report(parts)
        case "context":
            text, data = room.context()
            return Answer(text, data)
        case "kill":
            state = room.kill()
            return Answer(report.status_line(state), _report(parts, state), state)
        case "handoff":
            handed = handoff.handoff(parts.store, _named(parts, ""))
            return Answer(handoff.lines(handed), dict(handed))
        case "why":
            told = why.why(parts.store, _named(parts, command.target), command.last)
            return Answer(why.lines(told), dict(told))
        case "audit":
            text, data = room.audit(command.target, command.head)
            return Answer(text, data, failed=bool(data["problems"]))
        case "replay":
            text, data = replayed(parts.store.events(_named(parts, command.target)))
            return Answer(text, data, failed=bool(data["differences"]))
        case "resume" | "adopt":
            return _resume(parts, session, command, progress)
        case "answer" | "resolve":
            word = command.text if command.verb == "answer" else command.target
            state = resume.decided(parts, command.verb, word)
            if session.host == SHELL:  # it has no agent that could go on
                text = f"Recorded. Next: rage run {shlex.quote(state.run.target)}, or rage resume"
                return Answer(text, _report(parts, state), state)
            return _resume(parts, session, command, progress)
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
            return control.correct(parts, command.text, instead=command.instead)
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
            said = f"Recorded as correction {state.run.plan_version}: the plan is superseded.\n"
            holding = "; ".join(one_line(text, 120) for text in state.directives[-3:])
            return f"{said}What holds now: {holding}\n"
        case "accept":
            return f"Accepted: {item} is done, on your word.\n"
        case "reject":
            return f"Rejected: {item} failed, and its commit was taken back by a new one.\n"
    return ""


def _resumable(parts: Parts, command: Command) -> bool:
    """Whether `start` names the run that waits here already: then it goes on (F004)."""
    run = parts.store.active_run(parts.workspace)
    if run is None or run.target != command.target:
        return False
    if run.status is RunStatus.PAUSED:
        return True
    return holder.liveness(run.holder) == "dead"


def _resume(parts: Parts, session: Session, command: Command, progress: Progress) -> Answer:
    owned(session)
    act = resume.adopt if command.verb == "adopt" else resume.resume
    ticked = act(parts, session, command, progress)
    text = report.status_line(ticked.state)
    if ticked.state.run.status is RunStatus.PAUSED:
        text = dialogue.lines(dialogue.dialogue(ticked.state))
        if session.one_run:  # typed as `rage run` in a shell
            text = report.for_shell(text, ticked.state.run.target)
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


def _named(parts: Parts, run: str) -> str:
    """The run that a person named, else the workspace's current or last one."""
    if not run:
        return control.last(parts)
    known = [r.id for r in parts.store.runs(parts.workspace)]
    found = [r for r in known if r.startswith(run)]
    if len(found) != 1:
        raise Refused(
            f"There is no run {run[:40]} in this workspace"
            if not found
            else f"{len(found)} runs begin with {run[:40]}",
            next=f"one of {', '.join(known[:5])}" if known else "/rage start TARGET",
        )
    return found[0]


def _report(parts: Parts, state: RunState) -> dict[str, object]:
    return dict(report.report(parts.store, state.run.id))


def _status(parts: Parts, session: Session) -> Answer:
    run = parts.store.active_run(parts.workspace) or parts.store.last_run(parts.workspace)
    if run is None:
        return Answer(f"{control.NO_RUN}. Next: /rage start TARGET", {"status": "none"})
    state = parts.store.load(run.id)
    text = report.status_line(state)
    if run.status is RunStatus.ACTIVE and holder.liveness(run.holder) == "dead":
        text += f". Its host is gone. Next: /rage start {run.target}"
    if session.host == SHELL:
        text = report.typed_in_a_shell(text)
    return Answer(text, _report(parts, state), state)


def _full_report(parts: Parts) -> Answer:
    run = parts.store.active_run(parts.workspace) or parts.store.last_run(parts.workspace)
    if run is None:
        raise Refused(control.NO_RUN, next="/rage start TARGET")
    data = report.report(parts.store, run.id)
    return Answer(report.lines(data), dict(data), parts.store.load(run.id))
