"""One tick of the control loop: load, decide, act, record.

The decision is `core/decide.py`; the acts go through `core/ports.py`. A tick writes once, and once
more before an external effect. Nothing here knows git, SQL or a host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from . import briefing
from .core import facts, lifecycle, proposal, recovery, replay
from .core.decide import (
    Begin,
    Commit,
    Fail,
    Halt,
    Judge,
    Record,
    Rest,
    Seen,
    Walk,
    count_turn,
    next_step,
)
from .core.errors import RageError, StaleWrite
from .core.events import Event
from .core.fold import apply
from .core.judgement import Judgement, JudgeRequest
from .core.markers import Marker, scan
from .core.model import Base, Item, PauseReason, Phase, Run, RunState, RunStatus
from .core.order import next_item
from .core.ports import Progress
from .core.retrace import followed
from .core.rows import evidence
from .hookspecs import Turn
from .parts import Parts, write

STALE_RETRIES = 5


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a tick came to: the message that starts the next turn, or None when the agent rests."""

    state: RunState
    text: str | None


@dataclass(frozen=True, slots=True)
class Lease:
    """Who drives a run: whoever took it since moved its fence on, and this driver is done."""

    host: str
    session: str
    fence: int

    @classmethod
    def of(cls, run: Run) -> Lease:
        """The lease as the run tells it now."""
        return cls(run.host, run.session, run.fence)


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished turn, with what was booked while it lasted."""

    turn: Turn
    tokens: int = 0
    elapsed: float = 0.0
    """Seconds since the turn before it was counted, on a clock that cannot jump."""
    plan_version: int = 0
    """The plan that it began under; 0 where that is not known."""
    stuck: str = ""
    """An action that failed the same way again and again in it."""


@dataclass(slots=True)
class _Journal:
    """The events of one tick that are not yet written."""

    parts: Parts
    run: str
    lease: Lease
    version: int = 0
    pending: list[Event] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    counted: bool = False
    """The turn is counted in what was written already."""
    receipt: Callable[[RunState], list[Event]] | None = None
    """Of an effect that took place and is not written yet: git holds it, whoever writes first."""

    def flush(self, at: float) -> None:
        if self.pending:
            self.version = self.parts.store.append(self.run, self.version, self.pending, at)
            self.counted = self.counted or any(event.kind == "turn" for event in self.pending)
            self.receipt = None
            self.pending.clear()

    def tell(self, state: RunState) -> None:
        for what in self.told:
            self.parts.sink(state, what)
        self.told.clear()


def base_of(run: Run, item: Item) -> Base:
    """The tree an item started from."""
    return Base(item.base_tree, item.base_commit, tuple(json.loads(run.untracked)))


def tick(parts: Parts, run: str, lease: Lease, ended: Ended | None, progress: Progress) -> Ticked:
    """Take a finished turn (or, with None, a resume) as far as the evidence goes.

    A person's word that arrives meanwhile wins: the tick then decides again from what holds now;
    checks that were already run are answered from the verdict cache. A commit that was made while
    the word arrived stays made, so it is recorded all the same.
    """
    for _ in range(STALE_RETRIES):
        journal = _Journal(parts, run, lease)
        try:
            return _tick(parts, journal, ended, progress)
        except StaleWrite:
            progress("the run changed meanwhile: deciding again")
            if journal.receipt is not None:
                write(parts, run, journal.receipt)
            if journal.counted:
                ended = None
    return _tick(parts, _Journal(parts, run, lease), ended, progress)


def _tick(parts: Parts, journal: _Journal, ended: Ended | None, progress: Progress) -> Ticked:
    state = parts.store.load(journal.run)
    journal.version = state.run.version
    if state.run.status is not RunStatus.ACTIVE or Lease.of(state.run) != journal.lease:
        return Ticked(state, None)
    if (elsewhere := _elsewhere(parts, state.run)) is not None:
        return _paused(parts, journal, state, PauseReason.WORKSPACE_MOVED, elsewhere)
    try:
        walk = Walk(state, _observe(parts, state, ended))
    except RageError as error:
        return _paused(parts, journal, state, PauseReason.CHECK_COULD_NOT_RUN, error)
    journal.pending.append(lifecycle.seen(replay.recorded(walk.seen)))
    text: str | None = briefing.GO_ON
    while True:
        step = next_step(walk)
        try:
            match step:
                case Record():
                    walk = _record(walk, journal, step)
                    _announce(step.event, walk, progress)
                case Judge():
                    walk = replace(walk, judgement=_judge(parts, walk, step, progress))
                case Commit():
                    walk = _commit(parts, walk, journal, step, progress)
                case Fail():
                    walk = _fail(parts, walk, journal, step, progress)
                case Begin():
                    walk, text = _begin(parts, walk, journal, step, progress)
                    break
                case Rest():
                    text = briefing.ASK_AGAIN if step.ask_again else briefing.GO_ON
                    break
                case Halt():
                    text = None
                    break
        except StaleWrite:
            raise
        except RageError as error:
            return _paused(parts, journal, walk.state, _reason(step), error)
    journal.flush(walk.seen.now)
    journal.tell(walk.state)
    return Ticked(walk.state, text)


def evidence_now(parts: Parts, state: RunState) -> str:
    """What a tool call's outcome may depend on, as the workspace is now."""
    item = state.item
    tree = ""
    if item is not None and item.base_tree:
        tree = parts.verifier.snapshot(base_of(state.run, item))
    return recovery.evidence_state(state, tree)


def _elsewhere(parts: Parts, run: Run) -> RageError | None:
    """The error of a workspace that is not on the run's branch.

    What lies there belongs to that branch or to another worktree: it is nobody's candidate, and
    must be neither judged nor committed nor taken back.
    """
    on = parts.deliver.branch()
    if on == run.branch:
        return None
    return RageError(
        f"This workspace is on {on or 'a detached HEAD'}, and the run works on {run.branch}",
        kept="Files and commits are as they are",
        next=f"git switch {run.branch}, then /rage resume; or /rage stop",
    )


def _observe(parts: Parts, state: RunState, ended: Ended | None) -> Seen:
    now, item, verifier = parts.clock.now(), state.item, parts.verifier
    seen = Seen("", (), None, "", "done", 0, now, turn=False)
    if item is not None and item.base_tree:
        base = base_of(state.run, item)
        tree = verifier.snapshot(base)
        changes = tuple(verifier.changes(base.tree, tree))
        seen = replace(seen, tree=tree, changes=changes)
        if changes:
            seen = replace(seen, size=verifier.size(base.tree, tree))
        # Always: a backlog that git does not track is in no tree.
        seen = replace(seen, deviation=briefing.deviation(parts, state))
    if ended is None:
        return seen
    turn, fences = ended.turn, parts.config.scan_code_fences
    parsed = proposal.parse(turn.text)
    found = scan(turn.text, code_fences=fences)
    if seen.changes and item is not None and seen.tree not in state.judged_trees:
        # Hunk by hunk: a fence that one opens hides nothing of another.
        for hunk in verifier.added(item.base_tree, seen.tree).split("\f\n"):
            found += scan(hunk, code_fences=fences)
    return replace(
        seen,
        proposal=parsed.proposal,
        proposal_problem=parsed.reason,
        reason=turn.reason,
        tokens=ended.tokens,
        error=turn.error,
        turn=True,
        cosmetic=bool(item and item.tree and verifier.cosmetic(item.tree, seen.tree)),
        elapsed=ended.elapsed,
        markers=found,
        stale=ended.plan_version not in (0, state.run.plan_version),
        stuck=ended.stuck,
    )


def _record(walk: Walk, journal: _Journal, step: Record) -> Walk:
    journal.pending.append(step.event)
    if step.event.kind in ("run_paused", "run_done"):
        journal.told.append(step.event.kind)
    return followed(walk, step)


def _announce(event: Event, walk: Walk, progress: Progress) -> None:
    item = walk.state.run.current_item or ""
    if event.kind == "phase":
        progress(f"{item}: {event.data['from']} → {event.data['to']} ({event.why})")
    elif event.kind == "judged":
        progress(f"{item}: {event.why}")
    elif event.kind in ("reasked", "approach_refused", "budget_alert"):
        progress(event.why)


def _judge(parts: Parts, walk: Walk, step: Judge, progress: Progress) -> Judgement:
    state, item = walk.state, walk.state.working
    request = JudgeRequest(
        run=state.run.id,
        item=item.id,
        base=base_of(state.run, item),
        tree=walk.seen.tree,
        given=tuple(json.loads(item.gates)),
        proposed=step.proposed,
        unseal=tuple(json.loads(item.unseal)),
        claim_no_change=step.claim_no_change,
        sealed=(item.source,),
    )
    return parts.verifier.judge(request, progress)


def _commit(parts: Parts, walk: Walk, journal: _Journal, step: Commit, progress: Progress) -> Walk:
    state, item = walk.state, walk.state.working
    now = walk.seen.now
    key = f"{state.run.id}:{item.id}:commit:{item.tree}"
    commit = ""
    if not step.empty and parts.config.git.commit:
        if (elsewhere := _elsewhere(parts, state.run)) is not None:
            raise elsewhere
        if not walk.counted and walk.seen.turn:
            walk = _record(walk, journal, Record(count_turn(walk), edge=False, counts=True))
        intent = facts.intended(walk.state, "commit", key, now)
        walk = _record(walk, journal, Record(intent))
        journal.flush(now)
        ids = ",".join(sorted({g.evidence for g in walk.state.gates if g.evidence}))
        base = base_of(state.run, item)
        commit = parts.deliver.commit(
            run=state.run.id, item=item, base=base, tree=item.tree, evidence=ids, status=step.status
        )
        progress(f"{item.id}: commit {commit[:12]} ({step.status})")
    data = {"commit": commit, "status": step.status}
    row = evidence(walk.state, "commit", item.tree, data, now)
    event = facts.committed(walk.state, commit, key, row, step.then)
    if commit:
        journal.receipt = lambda state: (
            [facts.committed(state, commit, key, row, step.then)] if _open(state, item) else []
        )
    journal.told.append(event.kind)
    return replace(_record(walk, journal, Record(event)), judgement=None)


def _fail(parts: Parts, walk: Walk, journal: _Journal, step: Fail, progress: Progress) -> Walk:
    state, item = walk.state, walk.state.working
    base, tree, ref = base_of(state.run, item), walk.seen.tree, ""
    left: Sequence[str] = ()
    if tree != base.tree:
        journal.flush(walk.seen.now)
        ref = parts.deliver.keep(state.run.id, item.id, tree)
        left = parts.verifier.restore(base, tree)
    data = {"why": step.why, "ref": ref, "left": list(left)[:10]}
    row = evidence(state, "failed", tree, data, walk.seen.now)
    event = facts.item_failed(walk.state, step.why, ref, row)
    if ref:
        journal.receipt = lambda state: (
            [facts.item_failed(state, step.why, ref, row)] if _open(state, item) else []
        )
    journal.told.append("item_failed")
    progress(f"{event.why}" + (f"; its changes are kept under {ref}" if ref else ""))
    walk = _record(walk, journal, Record(event))
    if left:
        detail = f"{', '.join(list(left)[:3])} changed meanwhile and was left as it is"
        moved = lifecycle.paused(walk.state, PauseReason.WORKSPACE_MOVED, detail, walk.seen.now)
        walk = _record(walk, journal, Record(moved))
    return walk


def _begin(
    parts: Parts, walk: Walk, journal: _Journal, step: Begin, progress: Progress
) -> tuple[Walk, str | None]:
    """The next item and its brief; none where its criteria are not those of the start (F143)."""
    walk = begin(parts, walk, journal.pending, step.item)
    progress(f"{step.item}: review → analyze")
    if differs := briefing.deviation(parts, walk.state):
        asked = Marker(PauseReason.SPEC_DEVIATION, differs)
        event = lifecycle.blocked(walk.state, asked, walk.seen.tree, walk.seen.now)
        return _record(walk, journal, Record(event)), None
    return walk, briefing.brief(parts, walk.state)


def _open(state: RunState, item: Item) -> bool:
    """Whether an item is still worked on as it was, its effect not written by anybody."""
    now = state.item
    same = (item.id, item.state, item.commit)
    return now is not None and (now.id, now.state, now.commit) == same


def next_ready(state: RunState) -> str:
    """The item that a new run begins with."""
    chosen = next_item(tuple(state.items.values()))
    if chosen is None:
        raise RageError("No item of the target can be begun", next="/rage plan TARGET")
    return chosen


def begin(parts: Parts, walk: Walk, pending: list[Event], item_id: str) -> Walk:
    """Review an item and begin it: the events are added to `pending`."""
    state, run = walk.state, walk.state.run
    commit = parts.deliver.head()
    done = [i for i in state.items.values() if i.commit and i.commit == commit]
    base = Base(run.base_tree, run.base_commit, tuple(json.loads(run.untracked)))
    tree = done[0].tree if done else parts.verifier.snapshot(base)
    item = state.items[item_id]
    review = parts.survey.review(item_id, json.loads(item.gates))
    review["criteria"] = len(json.loads(item.criteria))
    review["criteria_hash"] = item.criteria_hash[:16]
    named = replace(state, run=replace(run, current_item=item_id, phase=Phase.REVIEW))
    row = evidence(named, "review", tree, review, walk.seen.now)
    why = f"Reviewed {item_id}: {item.title}"
    event = facts.item_began(
        replace(state, run=replace(run, phase=Phase.REVIEW)), item_id, tree, commit, row, why
    )
    pending.append(event)
    return replace(walk, state=apply(state, event), judgement=None)


def _reason(step: object) -> PauseReason:
    if isinstance(step, Commit):
        return PauseReason.COMMIT_FAILED
    if isinstance(step, Judge):
        return PauseReason.CHECK_COULD_NOT_RUN
    return PauseReason.WORKSPACE_MOVED


def _paused(
    parts: Parts, journal: _Journal, state: RunState, reason: PauseReason, error: RageError
) -> Ticked:
    now = parts.clock.now()
    event = lifecycle.paused(state, reason, error.line(), now)
    journal.pending.append(event)
    journal.told.append(event.kind)
    journal.flush(now)
    state = parts.store.load(journal.run)
    journal.tell(state)
    return Ticked(state, None)
