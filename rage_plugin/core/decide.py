"""What follows at a turn's end: a pure function from state and observation to the next step.

`loop.py` carries out one step, folds what happened back into the state and asks again, until the
step is `Rest` or `Halt`. Evidence is looked at before limits.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from . import facts, lifecycle, limits, recovery
from .events import Event
from .judgement import Judgement
from .markers import Marker
from .model import (
    Change,
    Evidence,
    ItemState,
    PauseReason,
    Phase,
    Proposal,
    RunState,
    RunStatus,
    Verification,
)
from .order import next_item
from .rows import evidence


@dataclass(frozen=True, slots=True)
class Seen:
    """What RAGE observed itself when a turn ended (or, with `turn` False, at a resume)."""

    tree: str
    changes: Sequence[Change]
    """From the item's base tree to `tree`."""
    proposal: Proposal | None
    proposal_problem: str
    """Why there is no proposal: empty when the agent wrote no line at all."""
    reason: Literal["done", "limit", "interrupt", "error"]
    tokens: int
    now: float
    error: str = ""
    turn: bool = True
    cosmetic: bool = False
    """The tree differs from the one judged last in comments and white space alone."""
    elapsed: float = 0.0
    """Seconds since the last turn was counted, on a clock that cannot jump."""
    size: tuple[int, int] = (0, 0)
    """Files and lines of `changes`."""
    markers: tuple[Marker, ...] = ()
    """What the agent said, or wrote into the workspace, that only a person can decide."""
    deviation: str = ""
    """How the item's criteria differ from those of the intake; empty while they are the same."""
    stale: bool = False
    """The turn began under a plan that a correction superseded: its result is discarded."""
    stuck: str = ""
    """An action that failed the same way again and again, and its error."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How far one tick has come."""

    state: RunState
    seen: Seen
    edges: int = 0
    """Phase edges and settled items so far in this tick."""
    counted: bool = False
    used: bool = False
    """The proposal was consumed."""
    asked: bool = False
    """This tick spends the re-ask."""
    waits: bool = False
    """The agent was asked for something; nothing more follows before its answer."""
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """Fold this event and go on; the other fields say what it does to the walk."""

    event: Event
    edge: bool = True
    uses_proposal: bool = False
    uses_judgement: bool = False
    asks: bool = False
    waits: bool = False
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """Run the checks on the candidate."""

    proposed: tuple[str, ...]
    claim_no_change: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the judged tree; `status` is the trailer's word."""

    status: Literal["verified", "unverified"]
    empty: bool
    """True where the candidate is the base: there is nothing to commit."""
    then: Phase
    """`DONE` after the last item of a run, else `REVIEW`."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Keep the item's changes under a ref, take them back, mark it failed."""

    why: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Review and begin the next item; its brief starts the next turn."""

    item: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing more follows from what was seen; the agent goes on."""

    ask_again: bool = False


@dataclass(frozen=True, slots=True)
class Halt:
    """The run ends or waits; the agent rests."""


Step: TypeAlias = Record | Judge | Commit | Fail | Begin | Rest | Halt


def next_step(walk: Walk) -> Step:
    """The next step of a tick."""
    state = walk.state
    if state.run.status is not RunStatus.ACTIVE:
        return Halt()
    if state.item is None:
        return _after_item(walk)
    if walk.judgement is not None:
        return _from_judgement(walk, walk.judgement)
    if _settled(state):
        return _after_item(walk)
    if walk.waits:
        return _close_turn(walk)
    if asked := undecided(state, walk.seen):
        return Record(lifecycle.blocked(state, asked, walk.seen.tree, walk.seen.now))
    if walk.seen.stale or _cut_short(walk):
        return _close_turn(walk)
    step = {
        Phase.ANALYZE: _analyze,
        Phase.GENERATE: _generate,
        Phase.EXECUTE: _execute,
    }[state.run.phase](walk)
    return step if not isinstance(step, Rest) else _close_turn(walk)


def _cut_short(walk: Walk) -> bool:
    """Whether the agent was stopped in the middle, so that its work must not be judged yet.

    At the last provider error allowed it is judged all the same: evidence comes before limits.
    """
    run, seen = walk.state.run, walk.seen
    if seen.reason == "error":
        errors = run.provider_errors + (not walk.counted)  # this one included
        return errors < limits.read(run).provider_errors
    return seen.reason == "interrupt" or (not seen.turn and run.phase is not Phase.EXECUTE)


def outside(changes: Sequence[Change], scope: Sequence[str], gates: Sequence[str]) -> list[str]:
    """Changed paths that a slice's scope and its gates' own files do not cover."""
    files = [g.split("::", 1)[0] for g in gates if g]
    return [c.path for c in changes if not any(_covers(p, c.path) for p in [*scope, *files])]


def _covers(pattern: str, path: str) -> bool:
    pattern = pattern.removeprefix("./").rstrip("/")
    if pattern in ("**", ".", ""):
        return True
    return path == pattern or path.startswith(pattern + "/") or fnmatch.fnmatchcase(path, pattern)


def _fresh(walk: Walk) -> bool:
    """Whether the workspace holds a candidate that this item was not judged on yet."""
    return recovery.unseen(walk.state, walk.seen.tree, cosmetic=walk.seen.cosmetic)


def undecided(state: RunState, seen: Seen) -> Marker | None:
    """The first thing of the current item that a person has to decide and has not.

    What a person let stand (`code`, an answer, a confirmation) is not asked again while its words
    are the same; `spec` settles it for the tree that it was said about.
    """
    found = list(seen.markers)
    if seen.deviation:
        found.insert(0, Marker(PauseReason.SPEC_DEVIATION, seen.deviation))
    ruled = [b for b in state.blockers if b.resolved_at is not None]
    for marker in found:
        here, words = lifecycle.blocker_id(state, marker, seen.tree), lifecycle.shown(marker)
        stands = {
            b.detail
            for b in ruled
            if (b.reason == marker.kind and b.resolved_by != "spec")
            or b.reason != PauseReason.SPEC_DEVIATION
        }
        if here not in {b.id for b in ruled} and not (words and words in stands):
            return marker
    return None


def _analyze(walk: Walk) -> Step:
    state, seen, item = walk.state, walk.seen, walk.state.working
    if seen.proposal is not None and not walk.used:
        data = {
            "objective": seen.proposal.objective,
            "gates": seen.proposal.gates,
            "scope": seen.proposal.scope,
            "no_change": seen.proposal.no_change,
        }
        row = evidence(state, "proposal", seen.tree, data, seen.now)
        why = f"The agent proposed one slice of {item.id}"
        return _sliced(walk, seen.proposal, row, why)
    data = {"reason": seen.proposal_problem or "no RAGE line"}
    row = evidence(state, "default_slice", seen.tree, data, seen.now)
    if state.slice is not None:
        if not _fresh(walk):
            return Rest()
        why = f"The slice of {item.id} still holds"
        return Record(facts.moved(state, Phase.GENERATE, row, why))
    # A person's gates leave nothing to ask for once there is something to check.
    if item.reasked or (item.gates != "[]" and _fresh(walk)):
        why = f"Took the whole of {item.id} as its slice: {data['reason']}"
        return _sliced(walk, None, row, why)
    return Record(facts.reasked(state, str(data["reason"])), asks=True, waits=True, edge=False)


def _sliced(walk: Walk, proposal: Proposal | None, row: Evidence, why: str) -> Step:
    """The slice, unless it stands for a retired approach that nothing new speaks for (F014)."""
    state, item, uses = walk.state, walk.state.working, proposal is not None
    targets = recovery.gates_of(state, proposal.gates if proposal else ())
    key = recovery.approach_key(item.id, facts.objective_of(state, proposal), targets)
    approach, newer = recovery.retired(state, key), None
    if approach is not None:
        newer = row.id if _fresh(walk) else recovery.newer_evidence(state, approach)
        if not newer:
            refused = facts.approach_refused(state, approach)
            return Record(refused, edge=False, waits=True, uses_proposal=uses)
    return Record(facts.sliced(state, proposal, row, why, newer), uses_proposal=uses)


def _generate(walk: Walk) -> Step:
    state, seen, item = walk.state, walk.seen, walk.state.working
    claim = seen.proposal.no_change if seen.proposal else ""
    if claim and seen.tree == item.base_tree:
        row = evidence(state, "no_change", seen.tree, {"claim": claim[:300]}, seen.now)
        return Record(
            facts.moved(state, Phase.EXECUTE, row, "The agent claims no change is needed")
        )
    if not _fresh(walk):
        if seen.stuck and not item.replanned:
            row = evidence(state, "replan", seen.tree, {"stuck": seen.stuck[:300]}, seen.now)
            why = f"Failed again and again with nothing changed: {seen.stuck}"
            return Record(facts.replanned(state, row, why[:300]), waits=True)
        return Rest()
    if reached := limits.breaker(state, seen.size):
        return _pause(walk, reached.reason, reached.detail)
    scope = json.loads(state.slice.scope) if state.slice else list(facts.WHOLE_SCOPE)
    strays = outside(seen.changes, scope, [g.target for g in state.gates])
    if strays:
        row = evidence(state, "scope", seen.tree, {"outside": strays[:10]}, seen.now)
        if item.replanned:
            detail = f"{item.id} left its scope again: {', '.join(strays[:3])}"
            return Record(lifecycle.paused(state, PauseReason.SCOPE, detail, seen.now))
        return Record(facts.rescoped(state, row, strays), waits=True)
    paths = [f"{c.status} {c.path}" for c in seen.changes]
    data = {"changed": paths[:10], "count": len(paths)}
    row = evidence(state, "change", seen.tree, data, seen.now)
    why = f"{len(paths)} file{'s' * (len(paths) != 1)} changed for {item.id}"
    return Record(facts.moved(state, Phase.EXECUTE, row, why))


def _execute(walk: Walk) -> Step:
    item = walk.state.working
    proposed = tuple(g.target for g in walk.state.gates if g.origin == "agent")
    return Judge(proposed, claim_no_change=walk.seen.tree == item.base_tree)


def _from_judgement(walk: Walk, judgement: Judgement) -> Step:
    state, seen, item = walk.state, walk.seen, walk.state.working
    data = facts.judgement_data(judgement)
    row = evidence(state, "judgement", judgement.tree, data, seen.now)
    if judgement.verification in (Verification.PASS, Verification.UNVERIFIED):
        if item.verification is not judgement.verification or item.tree != judgement.tree:
            return Record(facts.judged(state, judgement, row, seen.size))
        passed = judgement.verification is Verification.PASS
        others = [i for i in state.items.values() if i.id != item.id]
        last = passed and all(i.state in (ItemState.DONE, ItemState.SKIPPED) for i in others)
        return Commit(
            "verified" if passed else "unverified",
            empty=judgement.tree == item.base_tree,
            then=Phase.DONE if last else Phase.REVIEW,
        )
    if judgement.blocked:
        return Record(
            lifecycle.paused(state, PauseReason.CHECK_COULD_NOT_RUN, judgement.message, seen.now)
        )
    return Record(facts.attempt_failed(state, judgement, row), uses_judgement=True)


def _settled(state: RunState) -> bool:
    """Whether the current item needs no further turn."""
    item = state.working
    return item.state in (ItemState.DONE, ItemState.FAILED, ItemState.SKIPPED) or (
        item.verification is Verification.UNVERIFIED and bool(item.next)
    )


def _close_turn(walk: Walk) -> Step:
    """Count the turn, then look at the limits, then let the agent go on."""
    state, seen, item = walk.state, walk.seen, walk.state.working
    if not walk.counted and seen.turn:
        return Record(count_turn(walk), counts=True, edge=False)
    if due := limits.alert_due(state):
        return Record(lifecycle.alerted(state, *due), edge=False)
    allowed = limits.read(state.run)
    if item.attempts > allowed.max_fix_attempts:
        return Fail(f"{item.attempts} attempts did not pass: {state.last_failure or item.reason}")
    if seen.reason == "interrupt":
        return _pause(walk, PauseReason.INTERRUPT, "The turn was interrupted")
    if reached := limits.run_limit(state):
        reason, detail = reached.reason, reached.detail
        if reason is PauseReason.PROVIDER_ERRORS and seen.error:
            detail = f"{detail}; the last: {seen.error[:300]}"
        return _pause(walk, reason, detail)
    spent = limits.item_limit(state)
    if spent:
        reason, detail = spent.reason, spent.detail
        others = tuple(i for i in state.items.values() if i.id != item.id)
        # With nothing else to do the work is left where it is, for a person to raise the limit.
        final = reason is not PauseReason.CIRCUIT_BREAKER and next_item(others) is not None
        return Fail(detail) if final else _pause(walk, reason, detail)
    return Rest(ask_again=walk.asked)


def count_turn(walk: Walk) -> Event:
    """The event that counts this turn: a no-op is one with neither new evidence nor an edge."""
    error = walk.seen.reason == "error"
    quiet = walk.edges == 0
    exempt = walk.asked or error or walk.seen.stale
    return lifecycle.turn_counted(
        walk.state,
        tokens=walk.seen.tokens,
        noop=None if exempt and quiet else quiet,
        error=error,
        elapsed=walk.seen.elapsed,
    )


def _pause(walk: Walk, reason: PauseReason, detail: str) -> Record:
    return Record(lifecycle.paused(walk.state, reason, detail, walk.seen.now), edge=False)


def _after_item(walk: Walk) -> Step:
    """An item is settled (or none has begun): the next one, or the end of the run."""
    state, seen = walk.state, walk.seen
    if not walk.counted and seen.turn and state.item is not None:
        return Record(count_turn(walk), counts=True, edge=False)
    if due := limits.alert_due(state):
        return Record(lifecycle.alerted(state, *due), edge=False)
    allowed = limits.read(state.run)
    item = state.item
    failed = item is not None and item.state is ItemState.FAILED
    chosen = next_item(tuple(state.items.values()))
    if chosen is None:
        return Record(lifecycle.closing(state, seen.now), edge=False)
    if failed and item is not None and allowed.on_failed_item == "pause":
        return _pause(walk, PauseReason.ITEM_FAILED, f"{item.id} failed: {item.reason}")
    if seen.reason == "interrupt":
        return _pause(walk, PauseReason.INTERRUPT, "The turn was interrupted")
    settled = sum(i.state is not ItemState.PENDING for i in state.items.values())
    if state.run.items_limit is not None and settled >= state.run.items_limit:
        return _pause(walk, PauseReason.LIMIT_ITEMS, f"{settled} items were asked for")
    if reached := limits.run_limit(state):
        return _pause(walk, reached.reason, reached.detail)
    return Begin(chosen)
