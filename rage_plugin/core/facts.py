"""Events of an item's work: begun, sliced, judged, committed, failed. One function a thing.

What happens to a run as a whole is in `lifecycle.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from . import recovery
from .events import Event, Put, Scalar
from .fold import columns
from .judgement import Judgement
from .model import (
    Approach,
    Evidence,
    Gate,
    Item,
    ItemSpec,
    ItemState,
    Phase,
    Proposal,
    RunState,
    Slice,
    Verification,
)
from .phases import check_item_edge, check_phase_edge
from .rows import put_evidence, put_item, put_run, short_id, without

WHOLE_SCOPE = ("**",)
NAMES = 50
"""Names that an evidence row keeps of each list of a judgement; the rest is counted."""


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
        expected_tokens=spec.expected_tokens,
        expected_files=spec.expected_files,
        expected_lines=spec.expected_lines,
    )


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
        (put_evidence(row), *extra, put_run(state.run.id, {"phase": to})),
        (row.id,),
        {"from": state.run.phase, "to": to},
    )


def item_began(
    state: RunState, item_id: str, tree: str, commit: str, row: Evidence, review: str
) -> Event:
    """An item is claimed and started, reviewed, and waits for its slice."""
    run, item = state.run, state.items[item_id]
    check_phase_edge(run.phase, Phase.ANALYZE, frozenset({row.kind}))
    puts = [put_evidence(row)]
    if item.state is ItemState.PENDING:
        puts.append(put_item(run.id, item_id, {"state": ItemState.CLAIMED}))
    start: dict[str, Scalar] = {"base_tree": tree, "base_commit": commit}
    if item.state is not ItemState.IN_PROGRESS:
        check_item_edge(ItemState.CLAIMED, ItemState.IN_PROGRESS)
        start["state"] = ItemState.IN_PROGRESS
    puts.append(put_item(run.id, item_id, start))
    claim: dict[str, Scalar] = {"host": run.host, "session": run.session, "fence": run.fence}
    puts.append(Put("claims", (run.id, item_id), {**claim, "at": row.at}))
    change: dict[str, Scalar] = {"current_item": item_id, "phase": Phase.ANALYZE}
    puts.append(put_run(run.id, {**change, "refused_call": ""}))
    return Event("item_began", review, tuple(puts), (row.id,), {"item": item_id})


def objective_of(state: RunState, proposal: Proposal | None) -> str:
    """What a slice says it will do: the proposal's words, else the item's title."""
    return (proposal.objective if proposal else "") or state.working.title


def sliced(
    state: RunState,
    proposal: Proposal | None,
    row: Evidence,
    why: str,
    readmitted_by: str | None = None,
) -> Event:
    """analyze → generate: one slice with its gates is recorded, and the approach it stands for.

    `readmitted_by` is the evidence that opens a retired approach again (F014).
    """
    run, item = state.run, state.working
    given = tuple(json.loads(item.gates))
    objective = objective_of(state, proposal)
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
    extra.append(Put("slices", (slice_id,), without(columns(new), "id")))
    targets = recovery.gates_of(state, proposal.gates if proposal else ())
    key = recovery.approach_key(item.id, objective, targets)
    extra.append(recovery.tried(state, key, objective, readmitted_by))
    for number, target in enumerate(targets):
        origin = "profile" if not target else "given" if target in given else "agent"
        gate = Gate(f"{slice_id}-{number}", run.id, item.id, slice_id, target, origin)
        extra.append(Put("gates", (gate.id,), without(columns(gate), "id")))
    return moved(state, Phase.GENERATE, row, why, extra)


def approach_refused(state: RunState, approach: Approach) -> Event:
    """A retired approach was proposed again and nothing new speaks for it (F014)."""
    item = state.working
    why = f"{item.id}: “{approach.objective[:120]}” failed the same way twice and stays retired"
    return Event("approach_refused", why, data={"retired_by": approach.retired_by})


def replanned(state: RunState, row: Evidence, why: str) -> Event:
    """generate → analyze: the same action failed again and again without new evidence (F013)."""
    item = state.working
    puts = [put_item(state.run.id, item.id, {"replanned": item.replanned + 1})]
    if state.slice is not None:
        puts.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    failures, _ = recovery.failed(replace(state, slice=None, gates=()), why, (), row)
    return moved(state, Phase.ANALYZE, row, why, [*puts, *failures])


def reasked(state: RunState, reason: str) -> Event:
    """The one re-ask of an item was spent."""
    item = state.working
    why = f"Asked once more for the slice of {item.id}: {reason}"
    return Event("reasked", why, (put_item(state.run.id, item.id, {"reasked": 1}),))


def rescoped(state: RunState, row: Evidence, outside: Sequence[str]) -> Event:
    """generate → analyze: the change left the slice's scope for the first time."""
    item = state.working
    puts = [put_item(state.run.id, item.id, {"replanned": item.replanned + 1})]
    if state.slice is not None:
        puts.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    message = f"{', '.join(outside[:3])} lies outside the scope: declare it or take it back"
    failures, _ = recovery.failed(replace(state, slice=None, gates=()), message, outside, row)
    return moved(state, Phase.ANALYZE, row, message, [*puts, *failures])


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
    """execute → analyze: a gate did not pass; the attempt is counted.

    The same error as before retires the approach, and the next attempt needs a slice of its own.
    """
    item = state.working
    failing = (*judgement.failing, *judgement.regressions)
    failures, again = recovery.failed(state, judgement.message, failing, row)
    puts = [
        *check_puts(state, judgement, row.id, row.at),
        put_item(
            state.run.id,
            item.id,
            {
                "attempts": item.attempts + 1,
                "verification": Verification.FAIL,
                "tree": judgement.tree,
                "reason": judgement.message,
                # A new approach has to be named, so it may be asked for once more.
                **({"reasked": 0} if again else {}),
            },
        ),
    ]
    puts += [Put("gates", (g.id,), {"verdict": judgement.verdict}) for g in state.gates]
    why = judgement.message
    if again:
        why = f"{why} (the same error again: this approach is retired)"
    return moved(state, Phase.ANALYZE, row, why, [*puts, *failures])


def judged(
    state: RunState, judgement: Judgement, row: Evidence, size: tuple[int, int] = (0, 0)
) -> Event:
    """An item passed, or is unverified: the judgement stands before its commit is made.

    `size` is the change's files and lines: what later items may be expected to come to.
    """
    item = state.working
    puts = [
        put_evidence(row),
        *check_puts(state, judgement, row.id, row.at),
        put_item(
            state.run.id,
            item.id,
            {
                "verification": judgement.verification,
                "tree": judgement.tree,
                "origin": judgement.origin or "",
                "reason": judgement.message,
                "files": size[0],
                "lines": size[1],
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
    # Where nothing is to be committed there was no intent either.
    receipt = [Put("outbox", (key,), {"state": "done", "receipt": commit})] if commit else []
    puts = [
        put_evidence(row),
        *receipt,
        put_item(state.run.id, item.id, change),
        put_run(state.run.id, {"phase": then}),
    ]
    word = "done" if passed else "unverified"
    why = f"{item.id} is {word}" + (f", commit {commit[:12]}" if commit else ", nothing to commit")
    kind = "item_done" if passed else "item_unverified"
    return Event(kind, why, tuple(puts), (*rests_on, row.id), {"from": state.run.phase, "to": then})


def adopted(state: RunState, spec: ItemSpec, row: Evidence) -> Event:
    """A person took the criteria as they stand now for those of the intake (F143)."""
    item = state.working
    fresh = item_from(spec, state.run.id, item.position)
    values: dict[str, Scalar] = {
        "criteria": fresh.criteria,
        "criteria_hash": fresh.criteria_hash,
        "gates": fresh.gates,
        # The file was changed on a person's word: it is no longer sealed for this item.
        "unseal": json.dumps([*json.loads(item.unseal), item.source]),
    }
    why = f"{item.id} is worked on by its criteria as they stand in {item.source} now"
    put = put_item(state.run.id, item.id, values)
    return Event("criteria_adopted", why, (put_evidence(row), put), (row.id,))


def item_failed(state: RunState, why: str, ref: str, row: Evidence) -> Event:
    """An item failed for good; its changes are kept under a ref and taken back."""
    item = state.working
    check_item_edge(item.state, ItemState.FAILED)
    kept = f"git diff HEAD {ref}" if ref else f"rage start {item.id}"
    change: dict[str, Scalar] = {"state": ItemState.FAILED, "reason": why, "next": kept}
    puts = (
        put_evidence(row),
        put_item(state.run.id, item.id, change),
        # The slice ends with its item; the next one starts at review.
        put_run(state.run.id, {"phase": Phase.REVIEW}),
    )
    return Event("item_failed", f"{item.id} failed: {why}", puts, (row.id,), {"ref": ref})


def ground_moved(state: RunState, commit: str, before: str, tree: str) -> list[Event]:
    """A commit by a person's word came below the item that is worked on: it starts from there.

    No event where no item is worked on, or where it did not start from the commit `before`.
    """
    item = state.item
    if item is None or item.state is not ItemState.IN_PROGRESS or item.base_commit != before:
        return []
    put = put_item(state.run.id, item.id, {"base_commit": commit, "base_tree": tree})
    return [Event("ground_moved", f"{item.id} goes on from {commit[:12]}", (put,))]
