"""Events of a run as a whole: it starts, turns are counted, a person speaks, it ends.

Separate from `facts.py`, which tells what became of an item.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from .events import Event, Put, Scalar
from .fold import columns
from .model import Evidence, Item, ItemState, PauseReason, Phase, Run, RunState, RunStatus
from .phases import check_item_edge, check_phase_edge
from .rows import evidence, put_evidence, put_item, put_run, short_id, without


def run_started(run: Run, items: Sequence[Item], why: str) -> Event:
    """A run and its items exist."""
    puts = [put_run(run.id, without(columns(run), "id"))]
    puts += [Put("items", (run.id, i.id), without(columns(i), "run", "id")) for i in items]
    return Event("run_started", why, tuple(puts), data={"target": run.target})


def turn_counted(state: RunState, *, tokens: int, noop: bool | None, error: bool) -> Event:
    """A turn of the run is over. `noop` None leaves the streak as it is (an error, a re-ask)."""
    run, item = state.run, state.working
    streak = run.noop_turns if noop is None else (run.noop_turns + 1 if noop else 0)
    errors = run.provider_errors + 1 if error else 0
    puts = (
        put_run(
            run.id,
            {
                "iteration": run.iteration + 1,
                "tokens": run.tokens + tokens,
                "noop_turns": streak,
                "provider_errors": errors,
            },
        ),
        put_item(
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
    puts.append(put_evidence(row))
    if state.slice is not None:
        puts.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    if run.phase in (Phase.GENERATE, Phase.EXECUTE) and run.current_item:
        check_phase_edge(run.phase, Phase.ANALYZE, frozenset({"correction"}))
        change["phase"] = Phase.ANALYZE
    puts.append(put_run(run.id, change))
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
    return Event("resumed", f"Resumed by {session[0]}", (put_run(run.id, values),))


def person(state: RunState, item_id: str, values: Mapping[str, Scalar], row: Evidence) -> Event:
    """A person's word on an item (`accept`, `reject`), bound to the item's tree."""
    to = ItemState(str(values["state"]))
    check_item_edge(state.items[item_id].state, to)
    puts = (put_evidence(row), put_item(state.run.id, item_id, values))
    kind = "item_done" if to is ItemState.DONE else "item_failed"
    return Event(kind, str(json.loads(row.data).get("why", "")), puts, (row.id,))


def limits_changed(state: RunState, limits: str, why: str) -> Event:
    """A person raised or lowered a limit."""
    return Event("limits", why, (put_run(state.run.id, {"limits": limits}),))


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
    return Event(f"run_{status}", detail, (put_run(run.id, values),), data={"reason": reason})
