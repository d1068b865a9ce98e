"""Events of a run as a whole: it starts, turns are counted, a person speaks, it ends.

Separate from `facts.py`, which tells what became of an item.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from .directives import superseded
from .events import Event, Put, Scalar
from .fold import columns
from .limits import Reached
from .markers import Marker
from .model import (
    Blocker,
    Evidence,
    Item,
    ItemState,
    PauseReason,
    Phase,
    Run,
    RunState,
    RunStatus,
    Verification,
)
from .phases import check_item_edge, check_phase_edge
from .rows import evidence, put_evidence, put_item, put_run, short_id, without


def run_started(run: Run, items: Sequence[Item], why: str) -> Event:
    """A run and its items exist."""
    puts = [put_run(run.id, without(columns(run), "id"))]
    puts += [Put("items", (run.id, i.id), without(columns(i), "run", "id")) for i in items]
    return Event("run_started", why, tuple(puts), data={"target": run.target})


def turn_counted(
    state: RunState, *, tokens: int, noop: bool | None, error: bool, elapsed: float = 0.0
) -> Event:
    """A turn of the run is over. `noop` None leaves the streak as it is (an error, a re-ask).

    `elapsed` are the seconds since the last one, on a clock that cannot jump.
    """
    run, item = state.run, state.working
    streak = run.noop_turns if noop is None else (run.noop_turns + 1 if noop else 0)
    errors = run.provider_errors + 1 if error else 0
    puts = (
        put_run(
            run.id,
            {
                "iteration": run.iteration + 1,
                "tokens": run.tokens + tokens,
                "active_seconds": run.active_seconds + max(0.0, elapsed),
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


def corrected(
    state: RunState, text: str, at: float, *, instead: bool = False, said: str | None = None
) -> Event:
    """A person's correction: the plan version moves on and the open slice is superseded.

    Earlier corrections that it contradicts hold no longer; with `instead` none of them does.
    `said` are the person's own words in it, where it quotes an agent's: only they contradict.
    """
    run = state.run
    version = run.plan_version + 1
    correction = short_id(run.id, "correction", version)
    row = evidence(state, "correction", "", {"text": text}, at)
    older, own = state.corrections, text if said is None else said
    gone = [older[n] for n in superseded(own, [c.text for c in older], instead=instead)]
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
                "evidence": row.id,
            },
        )
    ]
    puts += [Put("corrections", (c.id,), {"superseded_by": correction}) for c in gone]
    change: dict[str, Scalar] = {"plan_version": version, "noop_turns": 0}
    puts.append(put_evidence(row))
    if state.slice is not None:
        puts.append(Put("slices", (state.slice.id,), {"superseded": 1}))
    if run.phase in (Phase.GENERATE, Phase.EXECUTE) and run.current_item:
        check_phase_edge(run.phase, Phase.ANALYZE, frozenset({"correction"}))
        change["phase"] = Phase.ANALYZE
    puts.append(put_run(run.id, change))
    why = f"Correction {version}: {text[:200]}"
    data = {"supersedes": [c.text[:200] for c in gone]}
    return Event("corrected", why, tuple(puts), (row.id,), data)


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
        "refused_call": "",
    }
    if run.pause_reason is PauseReason.ITEM_FAILED:
        values["current_item"] = None  # it is over: the next one may begin
    puts = [put_run(run.id, values)]
    item = state.item
    if item is not None and item.state is ItemState.IN_PROGRESS:
        # The claim goes over with the run: whoever held it before writes with an old token.
        claim: dict[str, Scalar] = {"host": session[0], "session": session[1], "at": now}
        puts.append(Put("claims", (run.id, item.id), {**claim, "fence": run.fence + 1}))
    return Event("resumed", f"Resumed by {session[0]}", tuple(puts))


def blocked(state: RunState, marker: Marker, tree: str, now: float) -> Event:
    """Something that only a person can decide was found: it is recorded, and the run waits."""
    item, words = state.working, shown(marker)
    row = evidence(state, "marker", tree, {"kind": marker.kind, "text": words}, now)
    values: dict[str, Scalar] = {"run": state.run.id, "item": item.id, "reason": marker.kind}
    blocker = Put(
        "blockers", (blocker_id(state, marker, tree),), {**values, "detail": words, "at": now}
    )
    event = paused(state, marker.kind, f"{item.id}: {words}" if words else item.id, now)
    puts = (put_evidence(row), blocker, *event.puts)
    return Event(event.kind, event.why, puts, (row.id,), event.data)


def shown(marker: Marker) -> str:
    """A marker's words with its options: what identifies it once a person has decided it."""
    return marker.text + (f" - {' | '.join(marker.options)}" if marker.options else "")


def blocker_id(state: RunState, marker: Marker, tree: str) -> str:
    """Identity of a marker in one tree of one item."""
    return short_id(state.run.id, state.run.current_item, marker.kind, marker.text, tree)


def open_blocker(state: RunState) -> Blocker | None:
    """What the run waits for a person to decide; None where it waits for something else."""
    waits = [
        b for b in state.blockers if b.resolved_at is None and b.reason == state.run.pause_reason
    ]
    return waits[-1] if waits else None


def ruled(state: RunState, blocker: Blocker, word: str, now: float) -> Event:
    """A person decided what a blocker asked for: `spec`, `code`, `confirmed`, or an answer."""
    data = {"reason": blocker.reason, "detail": blocker.detail, "word": word}
    row = evidence(state, "ruling", "", data, now)
    put = Put("blockers", (blocker.id,), {"resolved_at": now, "resolved_by": word[:2000]})
    why = f"A person decided {blocker.reason} of {blocker.item}: {word[:200]}"
    return Event("ruled", why, (put_evidence(row), put), (row.id,))


def confirmed(state: RunState, size: tuple[int, int]) -> list[Event]:
    """A person lets an item go on that came to twice what was expected: expect that from now."""
    item = state.item
    if item is None:
        return []
    values: dict[str, Scalar] = {}
    if item.expected_tokens:
        values["expected_tokens"] = max(item.expected_tokens, item.tokens)
    for name, now in (("expected_files", size[0]), ("expected_lines", size[1])):
        if before := getattr(item, name):
            values[name] = max(before, now)
    if not values:
        return []
    why = f"A person confirmed what {item.id} came to"
    return [Event("confirmed", why, (put_item(state.run.id, item.id, values),))]


def alerted(state: RunState, spent: int, budget: int) -> Event:
    """The person is told that a budget is nearly spent; once a budget, also across a resume."""
    why = f"{spent:,} of {budget:,} tokens of the run are spent"
    return Event("budget_alert", why, (put_run(state.run.id, {"alerted": budget}),))


def call_refused(state: RunState, reached: Reached) -> Event:
    """The next model call would not fit its budget: the turn ends before it (F043, F117)."""
    put = put_run(state.run.id, {"refused_call": reached.encode()})
    return Event("budget_reached", reached.detail, (put,), data={"reason": reached.reason})


def seen(seen: Mapping[str, object]) -> Event:
    """What a tick decides from, so that the decision can be made again from the log (F026)."""
    return Event("tick", "Looked at the workspace", data={"seen": seen})


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


def closing(state: RunState, now: float) -> Event:
    """No item can be begun: done when all are done, else the run waits for a person."""
    items = state.items.values()
    if all(i.state in (ItemState.DONE, ItemState.SKIPPED) for i in items):
        count = sum(i.state is ItemState.DONE for i in items)
        said = {0: "Nothing to do", 1: "The item is done"}.get(count, f"All {count} items are done")
        return finished(state, said, now)
    unverified = [i.id for i in items if i.verification is Verification.UNVERIFIED]
    failed = [i.id for i in items if i.state is ItemState.FAILED]
    waiting = [i.id for i in items if i.state is ItemState.PENDING]
    parts = []
    if failed:
        parts.append(f"{_ids(failed)} failed")
    if unverified:
        parts.append(f"{_ids(unverified)} waits for `rage accept` or `rage reject`")
    if waiting:
        parts.append(f"{_ids(waiting)} waits for what came before")
    reason = PauseReason.ITEM_FAILED if failed else PauseReason.UNVERIFIED
    return paused(state, reason, "; ".join(parts), now)


def _ended(
    state: RunState, status: RunStatus, detail: str, now: float, reason: PauseReason | None
) -> Event:
    run = state.run
    values: dict[str, Scalar] = {
        "status": status,
        "pause_reason": reason,
        "pause_detail": detail,
        "resumed_at": now,
    }
    if status is RunStatus.DONE:
        values["phase"] = Phase.DONE
    return Event(f"run_{status}", detail, (put_run(run.id, values),), data={"reason": reason})


def _ids(ids: Sequence[str]) -> str:
    shown = ", ".join(f"#{i}" for i in ids[:5])
    return f"{shown} (+{len(ids) - 5} more)" if len(ids) > 5 else shown
