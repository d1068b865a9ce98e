"""A run handed over to a person: what is done, what failed, what is open, what to do now (F060).

Separate from `report.py`, which lists every item for scripts: this is short, whatever the run's
size, and says for each failure what was tried and where the work is kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypedDict

from .core.dialogue import dialogue, sentence
from .core.model import RunState, RunStatus
from .core.oneline import one_line
from .core.ports import Store
from .report import (
    ItemReport,
    both,
    clean,
    commands,
    for_shell,
    mark,
    proof,
    report,
    spend,
)

SHOWN = 10
"""Items of each kind, and corrections, that are told; the rest is counted."""
TRIED = 3
"""Approaches that are told of each item, those given up last."""
_NAME, _LONG = 80, 200


class Done(TypedDict):
    """An item that is done."""

    id: str
    title: str
    commit: str
    evidence: str
    """What it rests on, in words."""


class Tried(TypedDict):
    """An approach that was given up, and the error that came again."""

    objective: str
    why: str


class Failed(TypedDict):
    """An item that failed."""

    id: str
    title: str
    why: str
    ref: str
    """The git ref that keeps its changes; empty where there were none."""
    left: list[str]
    """Files that were not taken back, since they changed meanwhile."""
    revert: str
    """The commit that took its commit back, on a person's word."""
    attempts: int
    turns: int
    tokens: int
    retired: list[Tried]


class Open(TypedDict):
    """An item that is neither done nor failed, and what it waits for."""

    id: str
    title: str
    status: str
    waits: str
    retired: list[Tried]


class HandoffData(TypedDict):
    """The whole handover; each list holds its first entries, `counts` has every item."""

    run: str
    target: str
    status: str
    reason: str
    counts: dict[str, int]
    completed: list[Done]
    failed: list[Failed]
    open: list[Open]
    corrections: list[str]
    """What the person said that still holds, newest last."""
    now: list[str]
    """What happened and what the person may do, in sentences."""
    next: list[str]
    """Commands for a shell, each another way on; the usual one first."""
    next_in_chat: list[str]
    spend: str
    branch: str
    head: str


def handoff(store: Store, run: str) -> HandoffData:
    """What a person needs to know to take a run over, whatever its status."""
    state, data = store.load(run), report(store, run)
    tried = _retired(store, run)
    typed, target = _typed(state), data["target"]
    done = [i for i in data["items"] if i["status"] == "done"]
    failed = [i for i in data["items"] if i["status"] == "failed"]
    rest = [i for i in data["items"] if i["status"] not in ("done", "failed")]
    # What waits for a word or is being worked on comes before what was not begun.
    rest.sort(key=lambda i: i["status"] == "pending")
    return {
        "run": run,
        "target": target,
        "status": data["status"],
        "reason": data["reason"],
        "counts": data["counts"],
        "completed": [_done(i) for i in done[:SHOWN]],
        "failed": [_failed(store, run, i, tried[i["id"]]) for i in failed[:SHOWN]],
        "open": [_open(state, i, tried[i["id"]]) for i in rest[:SHOWN]],
        "corrections": list(state.directives[-SHOWN:]),
        "now": [for_shell(text, target) for text in _now(state)],
        "next": [for_shell(c, target) for c in typed],
        "next_in_chat": list(typed),
        "spend": spend(data),
        "branch": data["branch"],
        "head": data["head"],
    }


def lines(data: HandoffData) -> str:
    """The handover for a terminal or a chat."""
    out = [f"RAGE handoff of run {data['run']} ({data['target']}): {data['status']}"]
    counts = data["counts"]
    if data["completed"]:
        out.append(f"Done: {counts['done']}")
        for done in data["completed"]:
            commit = f", commit {done['commit'][:12]}" if done["commit"] else ", nothing to commit"
            out.append(f"  {mark('done')} {_title(done)}: {done['evidence']}{commit}")
        out += _more(counts["done"] - len(data["completed"]))
    if data["failed"]:
        out.append(f"Failed: {counts['failed']}")
        for failed in data["failed"]:
            out += _failed_lines(failed)
        out += _more(counts["failed"] - len(data["failed"]))
    if data["open"]:
        rest = sum(counts.values()) - counts["done"] - counts["failed"]
        out.append(f"Not done: {rest}")
        for item in data["open"]:
            out.append(f"  {mark(item['status'])} {_title(item)}: {item['waits']}")
            out += _retired_lines(item["retired"])
        out += _more(rest - len(data["open"]))
    if data["corrections"]:
        out.append("What you said that still holds:")
        out += [f"  {one_line(text, _LONG)}" for text in data["corrections"]]
    out.append("What you should do now:")
    out += [f"  {one_line(text, 2 * _LONG)}" for text in data["now"]]
    chat = data["next_in_chat"]
    out += [f"    {both(shell, c)}" for shell, c in zip(data["next"], chat, strict=True)]
    where = f", branch {data['branch']}" if data["branch"] else ""
    out += [f"Spent: {data['spend']}{where}", f"Chain head: {data['head']}"]
    return clean(out)


def _typed(state: RunState) -> tuple[str, ...]:
    """What may be typed now; a run that was ended is followed by a new one on the same target."""
    told = commands(state)
    left = any(i.state.lower() not in ("done", "skipped") for i in state.items.values())
    if state.run.status in (RunStatus.STOPPED, RunStatus.FAILED) and left:
        return (f"/rage start {one_line(state.run.target)}", *told)
    return told


def _now(state: RunState) -> list[str]:
    match state.run.status:
        case RunStatus.PAUSED:
            said = dialogue(state)
            return [said.happened, said.choice]
        case RunStatus.ACTIVE:
            return [f"Nothing: {state.run.host} drives the run, and it goes on by itself."]
        case RunStatus.DONE:
            return ["Nothing is left to do. Look at what was made."]
        case _:
            return [
                sentence(f"The run is over: {state.run.pause_detail or state.run.status}"),
                "Its commits stay. What was not committed lies in the workspace as it was.",
            ]


def _done(item: ItemReport) -> Done:
    commit = item["commits"][0] if item["commits"] else ""
    return {
        "id": item["id"],
        "title": item["title"],
        "commit": commit,
        "evidence": proof(item),
    }


def _failed(store: Store, run: str, item: ItemReport, tried: Sequence[Tried]) -> Failed:
    told: dict[str, object] = {}
    for row in store.evidence(run, item["id"]):
        if row.kind in ("failed", "reject"):
            told = json.loads(row.data)
    left = told.get("left")
    return {
        "id": item["id"],
        "title": item["title"],
        "why": item["reason"],
        "ref": str(told.get("ref", "")),
        "left": [str(path) for path in left] if isinstance(left, list) else [],
        "revert": str(told.get("revert", "")),
        "attempts": item["attempts"],
        "turns": item["iterations"],
        "tokens": item["tokens"],
        "retired": list(tried),
    }


def _open(state: RunState, item: ItemReport, tried: Sequence[Tried]) -> Open:
    said = item["reason"]
    if item["status"] == "unverified":
        decide = f"; decide: {item['next']}" if item["next"] else ""
        waits = f"could not be proven, {said}{decide}"
    elif item["status"] == "pending":
        waits = said or "not begun"
    elif item["id"] == state.run.current_item and item["status"] == "in_progress":
        count = item["attempts"]
        failed = f", {count} failed attempt{'s' * (count != 1)}, the last: {said}" if count else ""
        held = state.run.status in (RunStatus.ACTIVE, RunStatus.PAUSED)
        waits = f"begun, {f'in {state.run.phase}' if held else 'not finished'}{failed}"
    else:
        waits = item["status"].replace("_", " ") + (f", {said}" if said else "")
    return {
        "id": item["id"],
        "title": item["title"],
        "status": item["status"],
        "waits": waits,
        "retired": list(tried),
    }


def _retired(store: Store, run: str) -> Mapping[str, list[Tried]]:
    """The approaches that were given up, by item, each with the error that came again."""
    errors = {row["evidence"]: str(row["message"]) for row in store.rows("failures", run)}
    found: defaultdict[str, list[Tried]] = defaultdict(list)
    for row in store.rows("approaches", run):
        if row["status"] == "retired":
            why = errors.get(row["retired_by"], "")
            found[str(row["item"])].append({"objective": str(row["objective"]), "why": why})
    return found


def _failed_lines(item: Failed) -> list[str]:
    out = [f"  {mark('failed')} {_title(item)}: {one_line(item['why'], _LONG)}"]
    turns = f"{item['turns']} turn{'s' * (item['turns'] != 1)}"
    cost = f"{item['attempts']} failed attempts, {turns}, {item['tokens']:,} tokens"
    if item["ref"]:
        out.append(f"      what it made is kept: git diff HEAD {item['ref']}")
    if item["revert"]:
        out.append(f"      its commit was taken back by {item['revert'][:12]}")
    if item["left"]:
        out.append(f"      left as they are, since they changed meanwhile: {_few(item['left'])}")
    return [*out, f"      {cost}", *_retired_lines(item["retired"])]


def _retired_lines(tried: Sequence[Tried]) -> list[str]:
    out = []
    for one in tried[-TRIED:]:
        why = f": {one_line(one['why'], _LONG)}" if one["why"] else ""
        out.append(f"      given up: “{one_line(one['objective'], _NAME)}”{why}")
    return out + _more(len(tried) - TRIED, "approaches", "      ")


def _few(names: Sequence[str]) -> str:
    more = f" (+{len(names) - 3} more)" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _more(count: int, what: str = "", indent: str = "  ") -> list[str]:
    named = f" {what}" if what else ""
    return [f"{indent}… and {count}{named} more: rage report"] if count > 0 else []


def _title(item: Done | Failed | Open) -> str:
    return f"{one_line(item['id'], _NAME)} {one_line(item['title'], _NAME)}"
