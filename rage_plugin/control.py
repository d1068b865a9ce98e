"""A person's words on a run: pause, stop, correct, accept, reject; `resume.py` has the others.

Each is one transaction and no model call, and takes effect at the next hook boundary whoever
drives the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .core import facts, lifecycle, limits
from .core.errors import Refused
from .core.events import Event, Scalar
from .core.fold import apply
from .core.judgement import Origin
from .core.model import (
    Evidence,
    Item,
    ItemState,
    PauseReason,
    Run,
    RunState,
    RunStatus,
    Verification,
)
from .core.order import next_item
from .core.rows import evidence
from .parts import Parts, write

NO_RUN = "There is no run in this workspace"


def current(parts: Parts) -> Run:
    """The run that is active or paused here, or `Refused`."""
    run = parts.store.active_run(parts.workspace)
    if run is not None:
        return run
    over = parts.store.last_run(parts.workspace)
    if over is not None:
        raise Refused(
            f"Run {over.id} on {over.target} is {over.status} already", next="/rage report"
        )
    raise Refused(NO_RUN, next="/rage start TARGET")


def pause(parts: Parts, detail: str = "A person paused the run") -> RunState:
    """The run waits; the workspace stays as it is."""
    return _write(parts, current(parts).id, lambda s, now: _pause(s, PauseReason.USER, detail, now))


def interrupt(
    parts: Parts, run: str, reason: PauseReason, detail: str, fence: int | None = None
) -> RunState:
    """Pause a given run for a typed reason; absorbing: a run that is not active stays as it is.

    With the `fence` of a driver only as long as nobody took the run over from it.
    """

    def events(state: RunState, now: float) -> list[Event]:
        mine = fence is None or fence == state.run.fence
        return _pause(state, reason, detail, now) if mine else []

    return _write(parts, run, events)


def stop(parts: Parts, detail: str = "A person stopped the run") -> RunState:
    """The run is over; commits stay, the workspace stays as it is."""

    def write(state: RunState, now: float) -> list[Event]:
        return [lifecycle.stopped(state, detail, now)]

    return _write(parts, current(parts).id, write)


def alert(parts: Parts, run: str, unbooked: int, fence: int | None = None) -> RunState:
    """Record that a budget is nearly spent; once a budget, whoever sees it first (F044)."""

    def events(state: RunState, now: float) -> list[Event]:
        due = limits.alert_due(state, unbooked) if _driven(state, fence) else None
        return [lifecycle.alerted(state, *due)] if due else []

    return _write(parts, run, events)


def refuse_call(
    parts: Parts, run: str, reached: limits.Reached, fence: int | None = None
) -> RunState:
    """Record that the next model call would not fit its budget; the turn's end decides (F117)."""

    def events(state: RunState, now: float) -> list[Event]:
        known = state.run.refused_call or not _driven(state, fence)
        return [] if known else [lifecycle.call_refused(state, reached)]

    return _write(parts, run, events)


def _driven(state: RunState, fence: int | None) -> bool:
    return state.run.status is RunStatus.ACTIVE and fence in (None, state.run.fence)


def correct(parts: Parts, text: str, run: str = "", *, instead: bool = False) -> RunState:
    """A versioned correction of a run, else of the current one: its slice is superseded.

    Earlier corrections that it contradicts hold no longer; with `instead` none does (F141).
    """

    def write(state: RunState, now: float) -> list[Event]:
        return [lifecycle.corrected(state, text[:2000], now, instead=instead)]

    return _write(parts, run or current(parts).id, write)


def accept(parts: Parts, item_id: str) -> RunState:
    """A person's word that an unverified item is done; bound to its tree, once (F163)."""

    def write(state: RunState, now: float) -> list[Event]:
        item = _waiting(state, item_id)
        values: dict[str, Scalar] = {
            "state": ItemState.DONE,
            "verification": Verification.PASS,
            "origin": Origin.PERSON,
            "reason": "a person accepted it",
            "next": "",
        }
        data = {"why": f"A person accepted {item_id}", "tree": item.tree, "commit": item.commit}
        row = evidence(state, "accept", item.tree, data, now)
        return _with_end(state, lifecycle.person(state, item_id, values, row), row, now)

    return _write(parts, last(parts), write)


def reject(parts: Parts, item_id: str, why: str) -> RunState:
    """A person's word against an unverified item: its commit is taken back by a new commit."""
    run = last(parts)
    state = parts.store.load(run)
    item = _waiting(state, item_id)
    revert = parts.deliver.revert(run, item_id, item.commit) if item.commit else ""
    before, tree = parts.deliver.made(revert) if revert else ("", "")

    def write(state: RunState, now: float) -> list[Event]:
        item = _waiting(state, item_id)
        values: dict[str, Scalar] = {
            "state": ItemState.FAILED,
            "verification": Verification.FAIL,
            "reason": f"rejected: {why[:500]}",
            "next": "",
        }
        data = {"why": f"A person rejected {item_id}: {why[:500]}", "revert": revert}
        row = evidence(state, "reject", item.tree, data, now)
        ended = _with_end(state, lifecycle.person(state, item_id, values, row), row, now)
        return [*ended, *(facts.ground_moved(state, revert, before, tree) if revert else [])]

    return _write(parts, run, write)


def last(parts: Parts) -> str:
    """The current run, else the newest; `Refused` where there is none."""
    run = parts.store.active_run(parts.workspace) or parts.store.last_run(parts.workspace)
    if run is None:
        raise Refused(NO_RUN, next="/rage start TARGET")
    return run.id


def _pause(state: RunState, reason: PauseReason, detail: str, now: float) -> list[Event]:
    if state.run.status is not RunStatus.ACTIVE:
        return []
    return [lifecycle.paused(state, reason, detail, now)]


def _with_end(state: RunState, event: Event, row: Evidence, now: float) -> list[Event]:
    """A paused run in which nothing is left to begin is done, or waits for another reason now."""
    after = apply(state, event)
    waits = after.run.pause_reason in (PauseReason.UNVERIFIED, PauseReason.ITEM_FAILED)
    if after.run.status is not RunStatus.PAUSED or not waits:
        return [event]
    if next_item(tuple(after.items.values())) is not None:
        detail = "The next item can be begun"
        return [event, lifecycle.paused(after, PauseReason.USER, detail, now)]
    end = lifecycle.closing(after, now)
    return [event, replace(end, evidence=(row.id,)) if end.kind == "run_done" else end]


def _waiting(state: RunState, item_id: str) -> Item:
    wanted = item_id.removeprefix("#")
    item = state.items.get(wanted)
    if item is None:
        raise Refused(
            f"Run {state.run.id} has no item {item_id}",
            kept="Nothing was changed",
            next=f"/rage report lists {', '.join(list(state.items)[:5])}",
        )
    open_one = item.state is ItemState.IN_PROGRESS and item.next
    if not open_one or item.verification is not Verification.UNVERIFIED:
        raise Refused(
            f"Item {wanted} is {item.state.lower()} ({item.verification}): "
            "only an unverified item waits for a person",
            kept="Nothing was changed",
            next="/rage report",
        )
    return item


def _write(parts: Parts, run: str, events: Callable[[RunState, float], list[Event]]) -> RunState:
    return write(parts, run, lambda state: events(state, parts.clock.now()))
