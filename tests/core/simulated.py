"""A run in memory: the pure decision driven by scripted observations, without any room.

The acts of `loop.py` (checks, commits, briefs) are replaced by values of the test's choosing; what
is under test is `core/decide.py` with `core/facts.py` and `core/fold.py`, and they are real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rage_plugin.core import facts, lifecycle, limits
from rage_plugin.core.config import Limits
from rage_plugin.core.decide import (
    Begin,
    Commit,
    Fail,
    Halt,
    Judge,
    Record,
    Rest,
    Seen,
    Walk,
    next_step,
)
from rage_plugin.core.events import Event
from rage_plugin.core.fold import apply
from rage_plugin.core.judgement import Judgement, Verdict
from rage_plugin.core.model import (
    Change,
    ItemSpec,
    Phase,
    Proposal,
    Run,
    RunState,
    RunStatus,
    Verification,
)
from rage_plugin.core.rows import evidence


@dataclass
class TurnScript:
    """What one turn looks like from outside."""

    tree: str | None = None
    """The tree it leaves; None leaves what was there."""
    proposal: Proposal | None = None
    problem: str = ""
    reason: Literal["done", "limit", "interrupt", "error"] = "done"
    tokens: int = 0
    changes: Sequence[Change] = (Change("M", "src/x.py"),)
    seconds: float = 1.0


@dataclass
class Simulation:
    """One run and its log."""

    judge: Callable[[str, str, str], Judgement]
    """(item, base tree, tree) → judgement."""
    items: Sequence[ItemSpec]
    bounds: Limits = field(default_factory=Limits)
    log: list[Event] = field(default_factory=list)
    tree: str = "base"
    now: float = 1000.0
    state: RunState = field(init=False)
    commits: list[tuple[str, str]] = field(default_factory=list)
    """(item, status) in order."""

    def __post_init__(self) -> None:
        run = Run(
            id="r",
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
            limits=limits.dump(self.bounds),
        )
        rows = [facts.item_from(s, "r", n) for n, s in enumerate(self.items)]
        event = lifecycle.run_started(run, rows, "test")
        self.log.append(event)
        self.state = apply(None, event)
        self._walk(Walk(self.state, self._seen(TurnScript(), turn=False)))

    def turn(self, script: TurnScript) -> RunState:
        """One turn of the agent and the tick that follows it."""
        self.now += script.seconds
        if script.tree is not None:
            self.tree = script.tree
        self._walk(Walk(self.state, self._seen(script, turn=True)))
        return self.state

    def _seen(self, script: TurnScript, *, turn: bool) -> Seen:
        return Seen(
            self.tree,
            script.changes,
            script.proposal,
            script.problem,
            script.reason,
            script.tokens,
            self.now,
            turn=turn,
        )

    def _record(self, walk: Walk, event: Event) -> Walk:
        self.log.append(event)
        return replace(walk, state=apply(walk.state, event))

    def _walk(self, walk: Walk) -> None:
        for _ in range(100):
            step = next_step(walk)
            match step:
                case Record():
                    walk = replace(
                        self._record(walk, step.event),
                        edges=walk.edges + step.edge,
                        counted=walk.counted or step.counts,
                        used=walk.used or step.uses_proposal,
                        asked=walk.asked or step.asks,
                        waits=walk.waits or step.waits,
                        judgement=None if step.uses_judgement else walk.judgement,
                    )
                case Judge():
                    item = walk.state.working
                    judgement = self.judge(item.id, item.base_tree, self.tree)
                    walk = replace(walk, judgement=judgement)
                case Commit():
                    item = walk.state.working
                    self.commits.append((item.id, step.status))
                    row = evidence(walk.state, "commit", item.tree, {}, self.now)
                    event = facts.committed(walk.state, "c0ffee", "k" + item.id, row, step.then)
                    walk = replace(self._record(walk, event), judgement=None, edges=walk.edges + 1)
                case Fail():
                    item = walk.state.working
                    row = evidence(walk.state, "failed", self.tree, {}, self.now)
                    self.tree = item.base_tree
                    event = facts.item_failed(walk.state, step.why, "ref", row)
                    walk = replace(self._record(walk, event), edges=walk.edges + 1)
                case Begin():
                    named = replace(
                        walk.state,
                        run=replace(walk.state.run, current_item=step.item, phase=Phase.REVIEW),
                    )
                    row = evidence(named, "review", self.tree, {}, self.now)
                    event = facts.item_began(
                        replace(walk.state, run=replace(walk.state.run, phase=Phase.REVIEW)),
                        step.item,
                        self.tree,
                        "",
                        row,
                        "reviewed",
                    )
                    self.state = self._record(walk, event).state
                    return
                case Rest() | Halt():
                    self.state = walk.state
                    return
        raise AssertionError("a tick did not come to an end")


def judgement(base: str, tree: str, verification: Verification, message: str = "m") -> Judgement:
    """A judgement of the given kind."""
    verdict = Verdict.FAIL if verification is Verification.FAIL else Verdict.PASS
    return Judgement(verification, verdict, base, tree, message)
