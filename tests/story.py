"""A run told event by event into a real database, by the builders that the loop uses.

What the loop would have observed (trees, commits, judgements) is the test's to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rage_plugin.core import facts, lifecycle, limits
from rage_plugin.core.config import Limits
from rage_plugin.core.events import Event
from rage_plugin.core.judgement import CheckRecord, Judgement, Origin, Verdict
from rage_plugin.core.markers import Marker
from rage_plugin.core.model import (
    Change,
    ItemSpec,
    PauseReason,
    Phase,
    Proposal,
    Run,
    RunState,
    RunStatus,
    Verification,
)
from rage_plugin.core.rows import evidence
from rage_plugin.store import RunStore, open_store

RUN = "3fa9c01b"
MORNING = 1_767_258_000.0
"""2026-01-01 09:00 UTC."""


def spec(item_id: str, title: str, *depends_on: str, gates: tuple[str, ...] = ()) -> ItemSpec:
    """One backlog item."""
    return ItemSpec(item_id, title, "", "backlog.md", ("it works",), gates, depends_on)


@dataclass
class Story:
    """One run; every method is one thing that happens, a minute after the one before."""

    folder: Path
    items: Sequence[ItemSpec]
    target: str = "backlog"
    bounds: Limits = field(default_factory=Limits)
    now: float = MORNING
    store: RunStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = open_store(self.folder / "rage.db")
        run = Run(
            id=RUN,
            target=self.target,
            title="t",
            status=RunStatus.ACTIVE,
            phase=Phase.REVIEW,
            host="embedded",
            session="s1",
            workspace="/w",
            started_at=self.now,
            branch="rage/work",
            base_tree="b" * 40,
            limits=limits.dump(self.bounds),
        )
        rows = [facts.item_from(s, RUN, n) for n, s in enumerate(self.items)]
        why = f"embedded started {self.target}"
        self.store.append(RUN, 0, [lifecycle.run_started(run, rows, why)], self.now)

    @property
    def state(self) -> RunState:
        return self.store.load(RUN)

    def tell(self, *events: Event) -> None:
        self.now += 60
        self.store.append(RUN, self.state.run.version, events, self.now)

    def begin(self, item: str) -> None:
        state = self.state
        between = replace(state, run=replace(state.run, phase=Phase.REVIEW))
        named = replace(between, run=replace(between.run, current_item=item))
        row = evidence(named, "review", "b" * 40, {"head": "abc"}, self.now)
        why = f"Reviewed {item}: {state.items[item].title}"
        self.tell(facts.item_began(between, item, "b" * 40, "c0ffee", row, why))

    def slice(self, objective: str, *, scope: tuple[str, ...] = (), tree: str = "b" * 40) -> None:
        state = self.state
        proposal = Proposal(objective, (), scope)
        data = {"objective": objective, "gates": (), "scope": scope, "no_change": ""}
        row = evidence(state, "proposal", tree, data, self.now)
        why = f"The agent proposed one slice of {state.working.id}"
        self.tell(facts.sliced(state, proposal, row, why))

    def change(self, tree: str, *paths: str) -> None:
        state = self.state
        changes = [Change("M", p) for p in paths]
        data = {"changed": [f"{c.status} {c.path}" for c in changes], "count": len(paths)}
        row = evidence(state, "change", tree, data, self.now)
        why = f"{len(paths)} file{'s' * (len(paths) != 1)} changed for {state.working.id}"
        self.tell(lifecycle.seen({"tree": tree}), facts.moved(state, Phase.EXECUTE, row, why))

    def turn(self, tokens: int) -> None:
        self.tell(lifecycle.turn_counted(self.state, tokens=tokens, noop=False, error=False))

    def judge(self, judgement: Judgement) -> None:
        """The judgement's event: the attempt failed, or it stands before its commit."""
        state = self.state
        data = facts.judgement_data(judgement)
        row = evidence(state, "judgement", judgement.tree, data, self.now)
        if judgement.verification is Verification.FAIL:
            self.tell(facts.attempt_failed(state, judgement, row))
        else:
            self.tell(facts.judged(state, judgement, row))

    def commit(self, commit: str) -> None:
        state = self.state
        key = f"{RUN}:{state.working.id}"
        self.tell(lifecycle.seen({}), facts.intended(state, "commit", key, self.now))
        row = evidence(state, "commit", state.working.tree, {"commit": commit}, self.now)
        self.tell(facts.committed(state, commit, key, row, Phase.REVIEW))

    def fail(self, why: str, ref: str, left: Sequence[str] = ()) -> None:
        state = self.state
        data = {"why": why, "ref": ref, "left": list(left)}
        row = evidence(state, "failed", "f" * 40, data, self.now)
        self.tell(facts.item_failed(state, why, ref, row))

    def pause(self, reason: PauseReason, detail: str) -> None:
        self.tell(lifecycle.paused(self.state, reason, detail, self.now))

    def block(self, kind: PauseReason, text: str, *options: str) -> None:
        self.tell(lifecycle.blocked(self.state, Marker(kind, text, options), "d" * 40, self.now))

    def correct(self, text: str) -> None:
        self.tell(lifecycle.corrected(self.state, text, self.now))

    def resume(self) -> None:
        self.tell(lifecycle.resumed(self.state, ("embedded", "s2"), "", self.now))

    def stop(self, detail: str = "A person stopped the run") -> None:
        self.tell(lifecycle.stopped(self.state, detail, self.now))

    def done(self, item: str, tree: str, commit: str) -> None:
        """An item from its beginning to its commit."""
        self.begin(item)
        self.slice(f"make {item} work")
        self.change(tree, f"src/{item}.py")
        self.judge(passed(tree, f"tests/test_{item}.py::test_it"))
        self.turn(4_000)
        self.commit(commit)

    def unverified(self, item: str, tree: str, commit: str) -> None:
        """An item that was committed without a proof."""
        self.begin(item)
        self.slice(f"make {item} work")
        self.change(tree, f"src/{item}.py")
        self.judge(
            Judgement(
                Verification.UNVERIFIED, Verdict.PASS, "b" * 40, tree, "no test was red before"
            )
        )
        self.turn(2_000)
        self.commit(commit)

    def failed(self, item: str, ref: str) -> None:
        """An item that fails the same way three times, one approach given up on the way."""
        self.begin(item)
        for number, tree in enumerate(("e1", "e2", "e3")):
            if self.state.run.phase is Phase.ANALYZE:
                self.slice("cache the sums" if number < 2 else "sum without a cache")
            self.change(tree * 20, "src/sums.py")
            self.judge(missed(tree * 20, f"tests/test_{item}.py::test_it"))
            self.turn(5_000)
        self.fail("3 attempts did not pass: tests/test_6.py::test_it fails", ref)


def passed(tree: str, test: str) -> Judgement:
    """A test was red before and is green."""
    return Judgement(
        Verification.PASS,
        Verdict.PASS,
        "b" * 40,
        tree,
        f"{test} was red and is green",
        Origin.GIVEN,
        red=(test,),
        checks=(
            check("red", "b" * 40, Verdict.FAIL, 3, 1, cached=True),
            check("green", tree, Verdict.PASS, 4, 0),
        ),
    )


def missed(tree: str, test: str) -> Judgement:
    """A test is still red."""
    return Judgement(
        Verification.FAIL,
        Verdict.FAIL,
        "b" * 40,
        tree,
        f"fail: {test}: assert 3 == 4",
        failing=(test,),
        checks=(check("green", tree, Verdict.FAIL, 3, 1),),
    )


def check(
    cell: str, tree: str, verdict: Verdict, good: int, bad: int, *, cached: bool = False
) -> CheckRecord:
    """One run of the project's tests."""
    return CheckRecord(
        cell, "pytest -q", tree, "h", "e", verdict, good, bad, 0, 1.5, cached, "overlay"
    )
