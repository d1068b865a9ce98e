"""Failure memory: what counts as new evidence, and what becomes of an approach that fails again.

*New evidence* is defined here and nowhere else: a tree that the item was not judged on yet, a
changed set of failing tests, a correction, or a worker's result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from .events import Put, Scalar
from .model import Approach, Evidence, RunState
from .rows import short_id
from .signature import error_signature

REPEATED = 2
"""An error seen so often retires the approach that it was seen with (F014)."""


def approach_key(item: str, objective: str, gates: Sequence[str]) -> str:
    """Identity of an approach: the item, the objective's words, the gate targets in any order."""
    return short_id(item, " ".join(objective.casefold().split()), sorted(set(gates)))


def current_key(state: RunState) -> str:
    """The approach that the open slice stands for; empty without a slice."""
    if state.slice is None:
        return ""
    return approach_key(state.slice.item, state.slice.objective, [g.target for g in state.gates])


def unseen(state: RunState, tree: str, *, cosmetic: bool) -> bool:
    """Whether the workspace holds a candidate that the current item was not judged on yet."""
    item = state.working
    return tree != item.base_tree and tree not in state.judged_trees and not cosmetic


def retired(state: RunState, key: str) -> Approach | None:
    """The approach, if it is retired."""
    found = [a for a in state.approaches if a.key == key and a.status == "retired"]
    return found[-1] if found else None


def newer_evidence(state: RunState, approach: Approach) -> str:
    """The evidence that came after an approach was retired and opens it again; empty if none.

    Rows are compared in the order of writing and never by the clock, which may jump.
    """
    told = [c for c in state.corrections if c.plan_version > approach.plan_version and c.evidence]
    if told:
        return told[-1].evidence
    by = [n for n, f in enumerate(state.failures) if f.evidence == approach.retired_by]
    if by:
        known = state.failures[by[-1]]
        later = state.failures[by[-1] + 1 :]
        # A failed tool call or a change out of scope was no attempt: it names no approach.
        others = [f for f in later if f.approach and f.signature != known.signature]
        if others:
            return others[-1].evidence
    return ""


def tried(state: RunState, key: str, objective: str, readmitted_by: str | None) -> Put:
    """An approach is taken: its row is made, or opened again by the evidence named."""
    known = [a for a in state.approaches if a.key == key]
    if known:
        change: dict[str, Scalar] = {"status": "open"}
        if readmitted_by:
            change["readmitted_by"] = readmitted_by
        return Put("approaches", (known[-1].id,), change)
    item = state.working
    values = {"run": state.run.id, "item": item.id, "key": key, "objective": objective}
    return Put("approaches", (short_id(state.run.id, item.id, "approach", key),), values)


def failed(
    state: RunState, message: str, failing: Sequence[str], row: Evidence
) -> tuple[list[Put], bool]:
    """The failure's row, and whether its error came again; then the approach is retired."""
    item, key = state.working, current_key(state)
    signature = error_signature(message, failing)
    count = 1 + sum(f.signature == signature for f in state.failures)
    failure: Mapping[str, Scalar] = {
        "run": state.run.id,
        "item": item.id,
        "signature": signature,
        "message": message,
        "count": count,
        "tree": row.tree,
        "at": row.at,
        "approach": key,
        "evidence": row.id,
    }
    puts = [Put("failures", (short_id(state.run.id, item.id, "failure", row.id),), failure)]
    again = count >= REPEATED and state.slice is not None
    if again and state.slice is not None:
        known = [a.id for a in state.approaches if a.key == key]
        values: dict[str, Scalar] = {
            "status": "retired",
            "retired_at": row.at,
            "retired_by": row.id,
            "readmitted_by": None,
            "plan_version": state.run.plan_version,
        }
        if not known:
            known = [short_id(state.run.id, item.id, "approach", key)]
            values |= {"run": state.run.id, "item": item.id, "key": key}
            values["objective"] = state.slice.objective
        puts.append(Put("approaches", (known[-1],), values))
        puts.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    return puts, again


def stuck(
    failed_calls: Sequence[Mapping[str, object]], evidence_state: str, limit: int
) -> str | None:
    """The error of an action that failed `limit` times on this very evidence, else None (F013).

    `failed_calls` are its last failures in order; each names the evidence state it was seen in. A
    call that failed before something changed says nothing about a call after it.
    """
    streak = 0
    for call in reversed(failed_calls):
        if call.get("evidence") != evidence_state:
            break
        streak += 1
    return str(failed_calls[-1].get("error", "")) if streak >= limit else None


def evidence_state(state: RunState, tree: str) -> str:
    """What an action's outcome may depend on: the tree, the plan, and what failed last."""
    last = state.failures[-1].signature if state.failures else ""
    return short_id(state.run.current_item, tree, state.run.plan_version, last)


def gates_of(state: RunState, proposed: Sequence[str]) -> list[str]:
    """The targets that a slice has: a person's first, then what is proposed beside them."""
    given = [str(target) for target in json.loads(state.working.gates)]
    return [*given, *(t for t in proposed if t not in given)] or [""]
