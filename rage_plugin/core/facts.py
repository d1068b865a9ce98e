"""Builders of events: one function a thing that can happen, so each row is set in one place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from .events import Event, Put, Scalar
from .fold import columns
from .model import (
    Evidence,
    Gate,
    Item,
    ItemSpec,
    ItemState,
    Judgement,
    PauseReason,
    Phase,
    Proposal,
    Run,
    RunState,
    RunStatus,
    Slice,
    Verification,
)
from .phases import check_item_edge, check_phase_edge

WHOLE_SCOPE = ("**",)
NAMES = 50
"""Names that an evidence row keeps of each list of a judgement; the rest is counted."""


def short_id(*parts: object) -> str:
    """A deterministic id of 12 hexadecimal digits: same parts, same id, in any process."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


def item_from(spec: ItemSpec, run: str, position: int) -> Item:
    """The item's row at intake; its criteria are hashed (F143)."""
    return Item(
        run=run,
        id=spec.id,
        position=position,
        title=spec.title,
        source=spec.source,
        criteria=json.dumps(spec.criteria, ensure_ascii=False),
        criteria_hash=hashlib.sha256("\n".join(spec.criteria).encode()).hexdigest(),
        gates=json.dumps(spec.gates),
        depends_on=json.dumps(spec.depends_on),
        unseal=json.dumps(spec.unseal),
        parent=spec.parent,
    )


def run_started(run: Run, items: Sequence[Item], why: str) -> Event:
    """A run and its items exist."""
    puts = [_put_run(run.id, _without(columns(run), "id"))]
    puts += [Put("items", (run.id, i.id), _without(columns(i), "run", "id")) for i in items]
    return Event("run_started", why, tuple(puts), data={"target": run.target})


def evidence(
    state: RunState,
    kind: str,
    tree: str,
    data: Mapping[str, object],
    at: float,
) -> Evidence:
    """An evidence row; its id follows from what it says."""
    run = state.run
    item = run.current_item or ""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, default=str)
    key = short_id(run.id, item, kind, tree, run.iteration, run.plan_version, text)
    return Evidence(key, run.id, item, kind, tree, text, at)


def moved(
    state: RunState,
    to: Phase,
    row: Evidence,
    why: str,
    extra: Sequence[Put] = (),
) -> Event:
    """A phase edge with the evidence that justifies it; raises `IllegalTransition` without."""
    check_phase_edge(state.run.phase, to, frozenset({row.kind}))
    return Event(
        "phase",
        why,
        (_put_evidence(row), *extra, _put_run(state.run.id, {"phase": to})),
        (row.id,),
        {"from": state.run.phase, "to": to},
    )


def item_began(
    state: RunState, item_id: str, tree: str, commit: str, row: Evidence, review: str
) -> Event:
    """An item is claimed and started, reviewed, and waits for its slice."""
    run, item = state.run, state.items[item_id]
    check_phase_edge(run.phase, Phase.ANALYZE, frozenset({row.kind}))
    puts = [_put_evidence(row)]
    if item.state is ItemState.PENDING:
        puts.append(_put_item(run.id, item_id, {"state": ItemState.CLAIMED}))
    start: dict[str, Scalar] = {"base_tree": tree, "base_commit": commit}
    if item.state is not ItemState.IN_PROGRESS:
        check_item_edge(ItemState.CLAIMED, ItemState.IN_PROGRESS)
        start["state"] = ItemState.IN_PROGRESS
    puts.append(_put_item(run.id, item_id, start))
    puts.append(_put_run(run.id, {"current_item": item_id, "phase": Phase.ANALYZE}))
    return Event("item_began", review, tuple(puts), (row.id,), {"item": item_id})


def sliced(state: RunState, proposal: Proposal | None, row: Evidence, why: str) -> Event:
    """analyze → generate: one slice with its gates is recorded."""
    run, item = state.run, state.working
    given = tuple(json.loads(item.gates))
    proposed = proposal.gates if proposal else ()
    objective = (proposal.objective if proposal else "") or item.title
    scope = (proposal.scope if proposal else ()) or WHOLE_SCOPE
    slice_id = short_id(run.id, item.id, "slice", row.id)
    new = Slice(
        id=slice_id,
        run=run.id,
        item=item.id,
        objective=objective,
        scope=json.dumps(scope, ensure_ascii=False),
        origin="agent" if proposal else "default",
        plan_version=run.plan_version,
    )
    extra = []
    if state.slice is not None:
        extra.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    extra.append(Put("slices", (slice_id,), _without(columns(new), "id")))
    targets = [(t, "given") for t in given]
    targets += [(t, "agent") for t in proposed if t not in given]
    if not targets:
        targets = [("", "profile")]
    for number, (target, origin) in enumerate(targets):
        gate = Gate(f"{slice_id}-{number}", run.id, item.id, slice_id, target, origin)
        extra.append(Put("gates", (gate.id,), _without(columns(gate), "id")))
    return moved(state, Phase.GENERATE, row, why, extra)


def reasked(state: RunState, reason: str) -> Event:
    """The one re-ask of an item was spent."""
    item = state.working
    why = f"Asked once more for the slice of {item.id}: {reason}"
    return Event("reasked", why, (_put_item(state.run.id, item.id, {"reasked": 1}),))


def rescoped(state: RunState, row: Evidence, outside: Sequence[str]) -> Event:
    """generate → analyze: the change left the slice's scope for the first time."""
    item = state.working
    puts = [_put_item(state.run.id, item.id, {"replanned": item.replanned + 1})]
    if state.slice is not None:
        puts.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    message = f"{', '.join(outside[:3])} lies outside the scope: declare it or take it back"
    puts.append(_put_failure(state, message, row.tree, row.at))
    return moved(state, Phase.ANALYZE, row, message, puts)


def judgement_data(judgement: Judgement, names: int = NAMES) -> dict[str, object]:
    """What is kept of a judgement; lists are cut after `names`, and then end with `+12 more`."""
    whole = asdict(judgement)
    checks = whole.pop("checks")
    short = {k: v for k, v in whole.items() if v not in ((), None, "")}
    for name, value in short.items():
        if isinstance(value, tuple | list) and len(value) > names:
            short[name] = [*value[:names], f"+{len(value) - names} more"]
    short["checks"] = [f"{c['cell']}:{c['verdict']}" for c in checks]
    return short


def check_puts(state: RunState, judgement: Judgement, evidence_id: str, at: float) -> list[Put]:
    """Rows of `checks` for the runs that a judgement rests on."""
    item = state.working
    puts = []
    for number, check in enumerate(judgement.checks):
        values: dict[str, Scalar] = {
            "run": state.run.id,
            "item": item.id,
            **{k: int(v) if isinstance(v, bool) else v for k, v in asdict(check).items()},
            "at": at,
        }
        puts.append(Put("checks", (f"{evidence_id}-{number}",), values))
    return puts


def attempt_failed(state: RunState, judgement: Judgement, row: Evidence) -> Event:
    """execute → analyze: a gate did not pass; the attempt is counted."""
    item = state.working
    puts = [
        *check_puts(state, judgement, row.id, row.at),
        _put_item(
            state.run.id,
            item.id,
            {
                "attempts": item.attempts + 1,
                "verification": Verification.FAIL,
                "tree": judgement.tree,
                "reason": judgement.message,
            },
        ),
        _put_failure(state, judgement.message, judgement.tree, row.at),
    ]
    puts += [Put("gates", (g.id,), {"verdict": judgement.verdict}) for g in state.gates]
    return moved(state, Phase.ANALYZE, row, judgement.message, puts)


def judged(state: RunState, judgement: Judgement, row: Evidence) -> Event:
    """An item passed, or is unverified: the judgement stands before its commit is made."""
    item = state.working
    puts = [
        _put_evidence(row),
        *check_puts(state, judgement, row.id, row.at),
        _put_item(
            state.run.id,
            item.id,
            {
                "verification": judgement.verification,
                "tree": judgement.tree,
                "origin": judgement.origin or "",
                "reason": judgement.message,
            },
        ),
    ]
    verdict = judgement.verdict if judgement.verification is Verification.PASS else "unverified"
    puts += [Put("gates", (g.id,), {"verdict": verdict, "evidence": row.id}) for g in state.gates]
    short = judgement_data(judgement, names=5)
    return Event("judged", judgement.message, tuple(puts), (row.id,), short)


def intended(state: RunState, kind: str, key: str, at: float) -> Event:
    """An external effect is about to happen; it is looked up by `key` before it is repeated."""
    put = Put(
        "outbox",
        (key,),
        {
            "run": state.run.id,
            "item": state.run.current_item or "",
            "kind": kind,
            "state": "intent",
            "at": at,
        },
    )
    return Event(
        "intent", f"About to {kind} for {state.run.current_item}", (put,), data={"key": key}
    )


def committed(state: RunState, commit: str, key: str, row: Evidence, then: Phase) -> Event:
    """The receipt of a commit. A verified item is DONE; an unverified one waits for a person.

    Where a correction moved the phase while the commit was made, the phase stays as it is.
    """
    item = state.working
    if state.run.phase is Phase.ANALYZE:
        then = Phase.ANALYZE
    else:
        check_phase_edge(state.run.phase, then, frozenset({"judgement"}))
    rests_on = tuple(g.evidence for g in state.gates[:1] if g.evidence)
    passed = item.verification is Verification.PASS
    change: dict[str, Scalar] = {"commit": commit}
    if passed:
        check_item_edge(item.state, ItemState.DONE)
        change |= {"state": ItemState.DONE, "next": ""}
    else:
        change["next"] = f"rage accept {item.id} | rage reject {item.id} --why TEXT"
    puts = [
        _put_evidence(row),
        Put("outbox", (key,), {"state": "done", "receipt": commit}),
        _put_item(state.run.id, item.id, change),
        _put_run(state.run.id, {"phase": then}),
    ]
    word = "done" if passed else "unverified"
    why = f"{item.id} is {word}" + (f", commit {commit[:12]}" if commit else ", nothing to commit")
    kind = "item_done" if passed else "item_unverified"
    return Event(kind, why, tuple(puts), (*rests_on, row.id), {"from": state.run.phase, "to": then})


def item_failed(state: RunState, why: str, ref: str, row: Evidence) -> Event:
    """An item failed for good; its changes are kept under a ref and taken back."""
    item = state.working
    check_item_edge(item.state, ItemState.FAILED)
    kept = f"git diff HEAD {ref}" if ref else f"rage start {item.id}"
    change: dict[str, Scalar] = {"state": ItemState.FAILED, "reason": why, "next": kept}
    puts = (
        _put_evidence(row),
        _put_item(state.run.id, item.id, change),
        # The slice ends with its item; the next one starts at review.
        _put_run(state.run.id, {"phase": Phase.REVIEW}),
    )
    return Event("item_failed", f"{item.id} failed: {why}", puts, (row.id,), {"ref": ref})


def turn_counted(state: RunState, *, tokens: int, noop: bool | None, error: bool) -> Event:
    """A turn of the run is over. `noop` None leaves the streak as it is (an error, a re-ask)."""
    run, item = state.run, state.working
    streak = run.noop_turns if noop is None else (run.noop_turns + 1 if noop else 0)
    errors = run.provider_errors + 1 if error else 0
    puts = (
        _put_run(
            run.id,
            {
                "iteration": run.iteration + 1,
                "tokens": run.tokens + tokens,
                "noop_turns": streak,
                "provider_errors": errors,
            },
        ),
        _put_item(
            run.id,
            item.id,
            {"iteration": item.iteration + 1, "tokens": item.tokens + tokens},
        ),
    )
    return Event("turn", f"Turn {run.iteration + 1} ended", puts)


def corrected(state: RunState, text: str, at: float) -> Event:
    """A person's correction: the plan version moves on and the open slice is superseded."""
    run = state.run
    version = run.plan_version + 1
    correction = short_id(run.id, "correction", version)
    puts = [
        Put(
            "corrections",
            (correction,),
            {
                "run": run.id,
                "item": run.current_item or "",
                "plan_version": version,
                "text": text,
                "at": at,
            },
        )
    ]
    change: dict[str, Scalar] = {"plan_version": version, "noop_turns": 0}
    row = evidence(state, "correction", "", {"text": text}, at)
    puts.append(_put_evidence(row))
    if state.slice is not None:
        puts.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    if run.phase in (Phase.GENERATE, Phase.EXECUTE) and run.current_item:
        check_phase_edge(run.phase, Phase.ANALYZE, frozenset({"correction"}))
        change["phase"] = Phase.ANALYZE
    puts.append(_put_run(run.id, change))
    return Event("corrected", f"Correction {version}: {text[:200]}", tuple(puts), (row.id,))


def paused(state: RunState, reason: PauseReason, detail: str, now: float) -> Event:
    """The run waits for a person."""
    return _ended(state, RunStatus.PAUSED, detail, now, reason)


def stopped(state: RunState, detail: str, now: float) -> Event:
    """The run is over by a person's word."""
    return _ended(state, RunStatus.STOPPED, detail, now, None)


def finished(state: RunState, detail: str, now: float, row: Evidence | None = None) -> Event:
    """Every item is done."""
    event = _ended(state, RunStatus.DONE, detail, now, None)
    return Event(event.kind, event.why, event.puts, (row.id,) if row else ())


def resumed(state: RunState, session: tuple[str, str], holder: str, now: float) -> Event:
    """The run is active again, bound to a session; the fencing token moves on."""
    run = state.run
    values: dict[str, Scalar] = {
        "status": RunStatus.ACTIVE,
        "pause_reason": None,
        "pause_detail": "",
        "host": session[0],
        "session": session[1],
        "holder": holder,
        "fence": run.fence + 1,
        "resumed_at": now,
        "noop_turns": 0,
        "provider_errors": 0,
    }
    return Event("resumed", f"Resumed by {session[0]}", (_put_run(run.id, values),))


def person(state: RunState, item_id: str, values: Mapping[str, Scalar], row: Evidence) -> Event:
    """A person's word on an item (`accept`, `reject`), bound to the item's tree."""
    to = ItemState(str(values["state"]))
    check_item_edge(state.items[item_id].state, to)
    puts = (_put_evidence(row), _put_item(state.run.id, item_id, values))
    kind = "item_done" if to is ItemState.DONE else "item_failed"
    return Event(kind, str(json.loads(row.data).get("why", "")), puts, (row.id,))


def ground_moved(state: RunState, commit: str, before: str, tree: str) -> list[Event]:
    """A commit by a person's word came below the item that is worked on: it starts from there.

    No event where no item is worked on, or where it did not start from the commit `before`.
    """
    item = state.item
    if item is None or item.state is not ItemState.IN_PROGRESS or item.base_commit != before:
        return []
    put = _put_item(state.run.id, item.id, {"base_commit": commit, "base_tree": tree})
    return [Event("ground_moved", f"{item.id} goes on from {commit[:12]}", (put,))]


def limits_changed(state: RunState, limits: str, why: str) -> Event:
    """A person raised or lowered a limit."""
    return Event("limits", why, (_put_run(state.run.id, {"limits": limits}),))


def _ended(
    state: RunState, status: RunStatus, detail: str, now: float, reason: PauseReason | None
) -> Event:
    run = state.run
    values: dict[str, Scalar] = {
        "status": status,
        "pause_reason": reason,
        "pause_detail": detail,
        "active_seconds": run.active_seconds + max(0.0, now - run.resumed_at),
        "resumed_at": now,
    }
    if status is RunStatus.DONE:
        values["phase"] = Phase.DONE
    return Event(f"run_{status}", detail, (_put_run(run.id, values),), data={"reason": reason})


def _without(values: dict[str, Scalar], *names: str) -> dict[str, Scalar]:
    return {k: v for k, v in values.items() if k not in names}


def _put_run(run: str, values: Mapping[str, Scalar]) -> Put:
    return Put("runs", (run,), values)


def _put_item(run: str, item: str, values: Mapping[str, Scalar]) -> Put:
    return Put("items", (run, item), values)


def _put_evidence(row: Evidence) -> Put:
    values = {"run": row.run, "item": row.item, "kind": row.kind}
    return Put("evidence", (row.id,), {**values, "tree": row.tree, "data": row.data, "at": row.at})


def _put_failure(state: RunState, message: str, tree: str, at: float) -> Put:
    item = state.working
    signature = short_id(item.id, message)
    key = short_id(state.run.id, item.id, "failure", state.run.iteration, tree, message)
    return Put(
        "failures",
        (key,),
        {
            "run": state.run.id,
            "item": item.id,
            "signature": signature,
            "message": message,
            "count": 1,
            "tree": tree,
            "at": at,
        },
    )
