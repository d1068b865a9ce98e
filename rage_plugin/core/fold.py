"""State from events: what an event's rows make of a `RunState`.

The store applies the same rows to SQLite; this is the same fold in memory, so that a tick can walk
several edges before it writes once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import TypeVar

from .events import Event, Put, Scalar
from .model import (
    Approach,
    Blocker,
    Correction,
    Failure,
    Gate,
    Item,
    ItemState,
    PauseReason,
    Phase,
    Run,
    RunState,
    RunStatus,
    Slice,
    Verification,
)

_ENUMS: dict[type, dict[str, type[StrEnum]]] = {
    Run: {"status": RunStatus, "phase": Phase, "pause_reason": PauseReason},
    Item: {"state": ItemState, "verification": Verification},
}
Row = TypeVar("Row", Run, Item, Slice, Gate, Approach, Failure, Correction, Blocker)
Listed = TypeVar("Listed", Gate, Approach, Failure, Correction, Blocker)
KEPT = 20
"""How many failures, approaches, corrections and blockers a state holds: the newest."""


def typed(kind: type, values: Mapping[str, Scalar]) -> dict[str, object]:
    """Column values as a dataclass holds them: enum columns become enums."""
    enums = _ENUMS.get(kind, {})
    return {
        name: enums[name](str(value)) if name in enums and value is not None else value
        for name, value in values.items()
    }


def row(kind: type[Row], values: Mapping[str, Scalar]) -> Row:
    """A row's dataclass from its columns."""
    return kind(**typed(kind, values))  # type: ignore[arg-type]


def columns(value: Run | Item | Slice | Gate | Blocker | Approach) -> dict[str, Scalar]:
    """A row's columns from its dataclass."""
    return {f.name: getattr(value, f.name) for f in fields(value)}


def apply(state: RunState | None, event: Event) -> RunState:
    """The state after the event. The first event of a run must set its `runs` row."""
    for put in event.puts:
        state = _apply(state, put)
    if state is None:
        raise ValueError("the first event of a run sets no run")
    return state


def _apply(state: RunState | None, put: Put) -> RunState:
    if state is None:
        if put.table != "runs":
            raise ValueError("the first event of a run sets no run")
        return RunState(run=row(Run, {"id": str(put.key[0]), **put.values}), items={})
    if put.table == "runs":
        change = typed(Run, put.values)
        moved = put.values.get("current_item", state.run.current_item) != state.run.current_item
        run = replace(state.run, **change)  # type: ignore[arg-type]
        if not moved:
            return replace(state, run=run)
        # What belongs to one item only is left behind with it.
        return replace(
            state,
            run=run,
            slice=None,
            gates=(),
            judged_trees=frozenset(),
            failures=(),
            approaches=(),
            blockers=(),
        )
    if put.table == "items":
        item_id = str(put.key[1])
        old, change = state.items.get(item_id), typed(Item, put.values)
        item = (
            replace(old, **change)  # type: ignore[arg-type]
            if old
            else row(Item, {"run": str(put.key[0]), "id": item_id, **put.values})
        )
        return replace(state, items={**state.items, item_id: item})
    if put.table == "slices":
        return _apply_slice(state, put)
    if put.table == "gates":
        return replace(state, gates=_listed(Gate, state.gates, put))
    if put.table == "corrections":
        known = _listed(Correction, state.corrections, put)
        holding = tuple(c for c in known if c.superseded_by is None)
        return replace(state, corrections=holding[-KEPT:])
    if put.table == "evidence" and put.values.get("kind") == "judgement":
        return replace(state, judged_trees=state.judged_trees | {str(put.values["tree"])})
    if put.table == "failures":
        return replace(state, failures=_listed(Failure, state.failures, put)[-KEPT:])
    if put.table == "approaches":
        return replace(state, approaches=_listed(Approach, state.approaches, put)[-KEPT:])
    if put.table == "blockers":
        return replace(state, blockers=_listed(Blocker, state.blockers, put)[-KEPT:])
    return state


def _listed(kind: type[Listed], rows: tuple[Listed, ...], put: Put) -> tuple[Listed, ...]:
    """The rows with one of them added, or changed where it stands."""
    key = str(put.key[0])
    known = {r.id: r for r in rows}
    if key in known:
        known[key] = replace(known[key], **typed(kind, put.values))  # type: ignore[arg-type]
    elif set(put.values) >= {"run", "item"}:
        known[key] = row(kind, {"id": key, **put.values})
    return tuple(known.values())


def _apply_slice(state: RunState, put: Put) -> RunState:
    slice_id = str(put.key[0])
    if state.slice is not None and state.slice.id == slice_id:
        changed = replace(state.slice, **typed(Slice, put.values))  # type: ignore[arg-type]
        if changed.superseded:
            return replace(state, slice=None, gates=())
        return replace(state, slice=changed)
    if put.values.get("superseded"):
        return state
    new = row(Slice, {"id": slice_id, **put.values})
    return replace(state, slice=new, gates=())
