"""A run's last transitions in plain words, each with its evidence; and what moves it on (F159).

Read from the event log alone, newest first, so that it explains a run that ended as well as one
that goes on. What only counts or announces (a turn, a tick, an intent) is left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from .core import limits
from .core.dialogue import dialogue, sentence, waiting_items
from .core.events import Event, Scalar
from .core.model import Item, ItemState, Phase, RunState, RunStatus
from .core.oneline import one_line
from .core.order import next_item
from .core.ports import LoggedEvent, Store
from .report import both, clean, commands, for_shell, reason, status_word, waits

QUIET = frozenset({"turn", "tick", "intent"})
"""Kinds of events that decide nothing."""
NAMES, CHECKS, ITEMS = 3, 6, 5
"""How many names, check runs and items are told in one place; the rest is counted."""
_TEXT = 300


class Named(TypedDict):
    """One piece of evidence that a step rests on."""

    id: str
    kind: str
    tree: str


class Checked(TypedDict):
    """One run of one command behind a judgement."""

    cell: str
    command: str
    verdict: str
    passed: int
    failed: int
    cached: bool


class Step(TypedDict):
    """One thing that happened."""

    seq: int
    at: float
    """Seconds since the epoch."""
    kind: str
    text: str
    evidence: list[Named]
    checks: list[Checked]


class WhyData(TypedDict):
    """What `rage why --json` prints."""

    run: str
    target: str
    status: str
    reason: str
    earlier: int
    """Events of the log before the steps that are shown."""
    steps: list[Step]
    moves: list[str]
    """What would move the run on, in sentences."""
    next: list[str]
    """Commands for a shell, each another way on."""
    next_in_chat: list[str]


def why(store: Store, run: str, last: int = 12) -> WhyData:
    """The last steps of a run, oldest first, and what would move it on."""
    state = store.load(run)
    shown: list[LoggedEvent] = []
    events = store.events(run)
    position = len(events)
    while position and len(shown) < last:
        position -= 1
        if events[position].event.kind not in QUIET:
            shown.append(events[position])
    steps = [_step(e) for e in reversed(shown)]
    _name_evidence(store, run, steps)
    typed, target = commands(state), state.run.target
    return {
        "run": run,
        "target": target,
        "status": str(state.run.status),
        "reason": reason(state.run),
        "earlier": position,
        "steps": steps,
        "moves": [for_shell(text, target) for text in _moves(state)],
        "next": [for_shell(c, target) for c in typed],
        "next_in_chat": list(typed),
    }


def lines(data: WhyData) -> str:
    """The explanation for a terminal or a chat."""
    out = [f"RAGE run {data['run']} ({data['target']}) is {data['status']}; times are UTC"]
    if data["earlier"]:
        out.append(f"  {data['earlier']} earlier events; more with --last {2 * len(data['steps'])}")
    day = ""
    for step in data["steps"]:
        date, at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(step["at"])).split()
        out += [f"  {date}"] if date != day else []
        day = date
        out.append(f"  {at} {one_line(step['text'], _TEXT)}")
        if step["evidence"]:
            out.append(f"      evidence: {', '.join(_evidence(e) for e in step['evidence'])}")
        out += [f"      {_check(c)}" for c in step["checks"][:CHECKS]]
        more = len(step["checks"]) - CHECKS
        out += [f"      … and {more} more checks"] if more > 0 else []
    out.append("What moves it on:")
    out += [f"  {one_line(text, _TEXT)}" for text in data["moves"]]
    pairs = zip(data["next"], data["next_in_chat"], strict=True)
    out += [f"    {both(shell, chat)}" for shell, chat in pairs]
    return clean(out)


def _step(logged: LoggedEvent) -> Step:
    event = logged.event
    rows = {str(p.key[0]): p.values for p in event.puts if p.table == "evidence"}
    named = [_named(key, rows.get(key, {})) for key in event.evidence]
    checks = [_checked(p.values) for p in event.puts if p.table == "checks"]
    told = [json.loads(str(row["data"])) for row in rows.values()]
    return {
        "seq": logged.seq,
        "at": logged.at,
        "kind": event.kind,
        "text": _text(event, told[0] if told else {}),
        "evidence": named,
        "checks": checks,
    }


def _text(event: Event, told: Mapping[str, Any]) -> str:
    """The event's own sentence, with what its rows add to it."""
    said, data = event.why.rstrip("."), event.data
    match event.kind:
        case "run_paused":
            typed = _put(event, "pause_reason")
            return f"Paused, {typed}: {said}" if said else f"Paused, {typed}"
        case "run_stopped":
            return f"Stopped: {said}"
        case "run_done":
            return f"Done: {said}"
        case "item_failed" if data.get("ref"):
            return f"{said}; its changes are kept under {data['ref']}"
        case "corrected":
            gone = data.get("supersedes")
            return (
                f"{said}; it supersedes: {_few(gone)}" if isinstance(gone, list) and gone else said
            )
        case "limits":
            return f"{said}: {_limits(event)}"
        case "judged":
            return f"Checked {_item(event)}: {said}"
        case "phase":
            checked = f"Checked {_item(event)}: " if _put(event, "verification") else ""
            return f"{checked}{said}{_details(event, told)} ({data['from']} → {data['to']})"
    return said


def _item(event: Event) -> str:
    return next((str(p.key[1]) for p in event.puts if p.table == "items"), "")


def _details(event: Event, told: Mapping[str, Any]) -> str:
    """What an edge's evidence says: the slice that was proposed, the files that changed."""
    out = []
    if told.get("objective"):
        out.append(f"“{told['objective']}”")
    for key, label in (("gates", "gates "), ("scope", "scope "), ("changed", "")):
        if told.get(key):
            out.append(f"{label}{_few(told[key])}")
    if opened := _put(event, "readmitted_by"):
        out.append(f"given up before, opened again by evidence {opened}")
    return f": {'; '.join(out)}" if out else ""


def _limits(event: Event) -> str:
    changed = _put(event, "limits")
    if changed is None:
        most = _put(event, "items_limit")
        return "as many items as there are" if most is None else f"{most} items"
    now = json.loads(str(changed))
    figures = [("tokens", "run_tokens"), ("turns", "run_iterations"), ("seconds", "wall_seconds")]
    told = [(what, now.get(key)) for what, key in figures]
    return ", ".join(f"{n:,.0f} {what}" if n else f"no limit of {what}" for what, n in told)


def _put(event: Event, column: str) -> Scalar:
    """What the event sets a column to; None where it does not."""
    return next((p.values[column] for p in event.puts if column in p.values), None)


def _named(key: str, row: Mapping[str, Scalar]) -> Named:
    return {"id": key, "kind": str(row.get("kind", "")), "tree": str(row.get("tree", ""))}


def _name_evidence(store: Store, run: str, steps: Sequence[Step]) -> None:
    """Say what the evidence is that an earlier event recorded."""
    missing = [e for step in steps for e in step["evidence"] if not e["kind"]]
    known = {row.id: row for row in store.evidence(run)} if missing else {}
    for one in missing:
        if one["id"] in known:
            row = known[one["id"]]
            one["kind"], one["tree"] = row.kind, row.tree


def _checked(row: Mapping[str, Scalar]) -> Checked:
    return {
        "cell": str(row["cell"]),
        "command": str(row["command"]),
        "verdict": str(row["verdict"]),
        "passed": int(row["passed"] or 0),
        "failed": int(row["failed"] or 0),
        "cached": bool(row["cached"]),
    }


def _evidence(one: Named) -> str:
    tree = f", tree {one['tree'][:12]}" if one["tree"] else ""
    return f"{one['kind']} {one['id'][:12]}{tree}"


def _check(one: Checked) -> str:
    where = " (from the cache)" if one["cached"] else ""
    counts = f"{one['passed']} passed, {one['failed']} failed"
    command = one_line(one["command"], 80)
    return f"{one['cell']}: {command}: {one['verdict']}, {counts}{where}"


def _moves(state: RunState) -> list[str]:
    """What would move the run on, in sentences."""
    match state.run.status:
        case RunStatus.PAUSED:
            said = dialogue(state)
            more = [] if said.needs == "item" else _held_up(state)
            return [said.happened, said.choice, *more]
        case RunStatus.DONE:
            return ["Nothing: the run is done."]
        case RunStatus.STOPPED | RunStatus.FAILED:
            return [f"Nothing: the run is over. {_over(state)}", *_held_up(state)]
    return [*_active(state), *_held_up(state)]


def _over(state: RunState) -> str:
    left = [i for i in state.items.values() if i.state not in (ItemState.DONE, ItemState.SKIPPED)]
    if not left:
        return "No item is left."
    return f"/rage start {state.run.target} begins a new one with what is left."


def _active(state: RunState) -> list[str]:
    item, run = state.item, state.run
    if item is None or status_word(item) != "in_progress":
        chosen = next_item(state.items.values())
        then = f"begins #{chosen}" if chosen else "ends the run, or has it wait for a person"
        return [f"The end of the turn: then RAGE {then}."]
    match run.phase:
        case Phase.ANALYZE:
            out = [f"The agent names one slice of #{item.id}, or changes the workspace."]
        case Phase.GENERATE:
            scope = json.loads(state.slice.scope) if state.slice else ["**"]
            where = "the workspace" if scope == ["**"] else _few(scope)
            out = [f"The agent's change for #{item.id} in {where}; then RAGE runs the checks."]
        case _:
            out = [f"RAGE runs the checks of #{item.id} at the turn's end."]
    if state.gates:
        named = _few([g.target or "a check of the project" for g in state.gates])
        out.append(f"{named} must go from red to green, and what passed before must still pass.")
    if item.attempts:
        out.append(sentence(f"The last check: {item.reason}. It takes another tree than that one"))
    return [*out, sentence(_left(state, item))]


def _left(state: RunState, item: Item) -> str:
    """What ends it otherwise."""
    if refused := limits.refused_call(state.run):
        return f"The run waits at the turn's end: {refused.detail}"
    most = limits.read(state.run)
    attempts = max(0, most.max_fix_attempts + 1 - item.attempts)
    out = [f"{attempts} attempt{'s' * (attempts != 1)}"]
    if most.max_iterations is not None:
        turns = max(0, most.max_iterations - item.iteration)
        out.append(f"{turns} turn{'s' * (turns != 1)}")
    if most.item_tokens is not None:
        out.append(f"{max(0, most.item_tokens - item.tokens):,} tokens")
    return f"Left for #{item.id}: {', '.join(out)}"


def _held_up(state: RunState) -> list[str]:
    """Items that need more than the run's going on."""
    told = [f"#{i.id} waits for your word: {i.next}" for i in waiting_items(state)]
    told += [f"#{key} {text}" for key, (text, _) in waits(state).items()]
    return [*told[:ITEMS], *([f"… and {len(told) - ITEMS} more"] if len(told) > ITEMS else [])]


def _few(names: Sequence[object]) -> str:
    more = f" (+{len(names) - NAMES} more)" if len(names) > NAMES else ""
    return ", ".join(str(n) for n in names[:NAMES]) + more
