"""A run in memory: the loop and the pure decision, driven by scripted turns, without any room.

The rooms behind the ports are replaced by values of the test's choosing; what is under test is
`core/decide.py` with all that it rests on, and `loop.py`, which carries it out: they are real, and
so are a person's words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import patch

from rage_plugin import commands, control, loop, resume
from rage_plugin.core import facts, lifecycle, limits
from rage_plugin.core.config import Limits, ProjectConfig
from rage_plugin.core.decide import Seen, Walk
from rage_plugin.core.errors import StaleWrite
from rage_plugin.core.events import Event
from rage_plugin.core.fold import apply
from rage_plugin.core.judgement import Judgement, JudgeRequest, Verdict
from rage_plugin.core.model import (
    Base,
    Change,
    Item,
    ItemSpec,
    Phase,
    Proposal,
    Run,
    RunState,
    RunStatus,
    Verification,
)
from rage_plugin.hookspecs import Session, Turn
from rage_plugin.parts import Parts

RUN = "r"
Word = Callable[["Simulation"], object]
"""Something that somebody else does meanwhile."""


@dataclass
class TurnScript:
    """What one turn looks like from outside."""

    tree: str | None = None
    """The tree it leaves; None leaves what was there."""
    proposal: Proposal | None = None
    text: str = ""
    """What the agent says beside its proposal."""
    reason: Literal["done", "limit", "interrupt", "error"] = "done"
    tokens: int = 0
    changes: Sequence[Change] = (Change("M", "src/x.py"),)
    """From the item's base to `tree`, where that is another one."""
    seconds: float = 1.0
    """On the clock that cannot jump."""
    jump: float = 0.0
    """Seconds that the wall clock is set on, or back, beside those."""
    error: str = ""
    size: tuple[int, int] = (1, 3)
    added: str = ""
    """The lines that the candidate adds."""
    cosmetic: bool = False
    stuck: str = ""
    during: Word | None = None
    """While the agent works."""
    judging: Word | None = None
    """While checks run, the first time."""
    acting: Word | None = None
    """After a commit or a ref was made and before it is recorded, the first time."""
    left: Sequence[str] = ()
    """Paths that were left as they are when a failed item was taken back."""


class KilledError(BaseException):
    """The process is gone in the middle of what it did."""


def kill(sim: Simulation) -> None:
    """A `Word`: kill -9."""
    raise KilledError


@dataclass(frozen=True)
class Logged:
    """A row of the log."""

    seq: int
    version: int
    at: float
    event: Event


@dataclass
class Simulation:
    """One run and its log."""

    judge: Callable[[str, str, str], Judgement]
    """(item, base tree, tree) → judgement."""
    items: Sequence[ItemSpec]
    """What the backlog holds now."""
    bounds: Limits = field(default_factory=Limits)
    config: ProjectConfig = field(default_factory=ProjectConfig)
    rows: list[Logged] = field(default_factory=list)
    tree: str = "base"
    now: float = 1000.0
    state: RunState = field(init=False)
    commits: list[tuple[str, str]] = field(default_factory=list)
    """(item, status) in order."""
    head: str = ""
    branch: str = ""
    """That the workspace is on; the run's own is the empty one."""
    items_limit: int | None = None
    script: TurnScript = field(default_factory=TurnScript)
    dead: bool = False
    """The process was killed: the run goes on by `/rage resume` in another."""

    def __post_init__(self) -> None:
        rooms: dict[str, Any] = {
            "store": _Store(self),
            "backlog": SimpleNamespace(resolve=lambda target: self.items),
            "verifier": _Verifier(self),
            "deliver": _Deliver(self),
            "packets": SimpleNamespace(brief=lambda state, spec, pointers: f"brief {spec.id}"),
            "survey": SimpleNamespace(review=lambda item, gates: {}, pointers=tuple),
            "clock": SimpleNamespace(now=lambda: self.now),
        }
        self.parts = Parts("w", "w", self.config, sink=lambda state, what: None, **rooms)
        run = Run(
            id=RUN,
            target="#5",
            title="t",
            status=RunStatus.ACTIVE,
            phase=Phase.REVIEW,
            host="h",
            session="s",
            workspace="w",
            started_at=self.now,
            resumed_at=self.now,
            base_tree="base",
            items_limit=self.items_limit,
            limits=limits.dump(self.bounds),
        )
        rows = [facts.item_from(s, RUN, n) for n, s in enumerate(self.items)]
        events = [lifecycle.run_started(run, rows, "test")]
        state = apply(None, events[0])
        walk = Walk(state, Seen("base", (), None, "", "done", 0, self.now, turn=False))
        loop.begin(self.parts, walk, events, loop.next_ready(state))
        self.parts.store.append(RUN, 0, events, self.now)

    @property
    def log(self) -> list[Event]:
        """The events of the log."""
        return [row.event for row in self.rows]

    @property
    def version(self) -> int:
        return self.rows[-1].version if self.rows else 0

    def turn(self, script: TurnScript) -> RunState:
        """One turn of the agent and the tick that follows it."""
        self.script = replace(script)
        self.now += script.seconds + script.jump
        plan, lease = self.state.run.plan_version, loop.Lease.of(self.state.run)
        if script.tree is not None:
            self.tree = script.tree
        if script.during is not None:
            script.during(self)
        said = Turn(_said(script), script.reason, script.error)
        ended = loop.Ended(said, script.tokens, script.seconds, plan, script.stuck)
        try:
            loop.tick(self.parts, RUN, lease, ended, lambda line: None)
        except KilledError:
            self.dead = True
        return self.state

    def says(self, words: str, session: str = "s") -> RunState:
        """A person's command; they are taken as typed."""
        command = commands.parse(f"/rage {words}")
        self.now += 1
        match command.verb:
            case "pause":
                control.pause(self.parts)
            case "stop":
                control.stop(self.parts)
            case "correct":
                control.correct(self.parts, command.text, instead=command.instead)
            case "accept":
                control.accept(self.parts, command.target)
            case "reject":
                control.reject(self.parts, command.target, command.text)
            case "answer" | "resolve":
                word = command.text if command.verb == "answer" else command.target
                resume.decided(self.parts, command.verb, word)
            case "resume":
                self.script = replace(self.script, judging=None, acting=None)
                chat = Session("h", session, "w")
                alive = "dead" if self.dead else "alive"
                with (
                    patch("rage_plugin.resume.holder", lambda: "driver"),
                    patch("rage_plugin.resume.liveness", lambda holder: alive),
                ):
                    resume.resume(self.parts, chat, command, lambda line: None)
                self.dead = False
            case _:
                raise ValueError(f"a person does not say {words!r} here")
        return self.state


class _Store:
    """The log, and the state that it folds to."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim

    def append(self, run: str, expected_version: int, events: Sequence[Event], at: float) -> int:
        sim = self._sim
        if expected_version != sim.version:
            raise StaleWrite("Another process wrote first")
        version = expected_version + 1
        for event in events:
            sim.state = apply(sim.state if sim.rows else None, event)
            sim.rows.append(Logged(len(sim.rows) + 1, version, at, event))
        return version

    def load(self, run: str) -> RunState:
        state = self._sim.state
        return replace(state, run=replace(state.run, version=self._sim.version))

    def active_run(self, workspace: str) -> Run | None:
        run = self.load(RUN).run
        return run if run.status in (RunStatus.ACTIVE, RunStatus.PAUSED) else None

    def last_run(self, workspace: str) -> Run:
        return self.load(RUN).run


class _Verifier:
    """The workspace is the name of a tree."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim

    def snapshot(self, base: Base) -> str:
        return self._sim.tree

    def changes(self, tree: str, other: str) -> Sequence[Change]:
        return self._sim.script.changes if tree != other else ()

    def added(self, tree: str, other: str) -> str:
        return self._sim.script.added

    def size(self, tree: str, other: str) -> tuple[int, int]:
        return self._sim.script.size

    def cosmetic(self, tree: str, other: str) -> bool:
        return self._sim.script.cosmetic

    def judge(self, request: JudgeRequest, progress: object) -> Judgement:
        word, self._sim.script.judging = self._sim.script.judging, None
        if word is not None:
            word(self._sim)
        return self._sim.judge(request.item, request.base.tree, request.tree)

    def restore(self, base: Base, tree: str) -> Sequence[str]:
        self._sim.tree = base.tree
        return self._sim.script.left


class _Deliver:
    """Git: a commit's id follows from what it holds, so that one is made once."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._made = ("", "")

    def branch(self) -> str:
        return self._sim.branch

    def head(self) -> str:
        return self._sim.head

    def commit(
        self, run: str, item: Item, base: Base, tree: str, evidence: str, status: str
    ) -> str:
        sim, made = self._sim, _id("commit", item.id, tree)
        if made != sim.head:
            sim.head = made
            sim.commits.append((item.id, status))
        self._acted()
        return made

    def keep(self, run: str, item: str, tree: str) -> str:
        self._acted()
        return f"refs/rage/{run}/{item}"

    def _acted(self) -> None:
        word, self._sim.script.acting = self._sim.script.acting, None
        if word is not None:
            word(self._sim)

    def revert(self, run: str, item: str, commit: str) -> str:
        self._made = (self._sim.head, "base")
        self._sim.head = _id("revert", item, commit)
        return self._sim.head

    def made(self, commit: str) -> tuple[str, str]:
        return self._made


def judgement(base: str, tree: str, verification: Verification, message: str = "m") -> Judgement:
    """A judgement of the given kind."""
    verdict = Verdict.FAIL if verification is Verification.FAIL else Verdict.PASS
    return Judgement(verification, verdict, base, tree, message)


def _said(script: TurnScript) -> str:
    """What the agent says at a turn's end."""
    told = script.proposal
    if told is None:
        return script.text
    line: dict[str, object] = {"no_change": told.no_change}
    if not told.no_change:
        line = {"slice": told.objective, "gate": told.gates, "scope": told.scope}
    return f"{script.text}\nRAGE {json.dumps(line)}"


def _id(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:40]
