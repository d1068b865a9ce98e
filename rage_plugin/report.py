"""What a run came to, as the JSON object that scripts read and as lines for a person.

Honest by construction: every line is a row of the store, and nothing is called done that is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypedDict

from .core.model import Evidence, Item, ItemState, Run, RunState, RunStatus, Verification
from .core.ports import Store

_CUT = re.compile(r"\+(\d+) more")


class ItemReport(TypedDict):
    """One item of a report; ids of tests are exact, long lists end with their rest's count."""

    id: str
    title: str
    status: str
    state: str
    verification: str
    origin: str
    evidence: list[dict[str, str]]
    red: list[str]
    preexisting: list[str]
    regressions: list[str]
    unstable: list[str]
    warnings: list[str]
    commits: list[str]
    attempts: int
    iterations: int
    tokens: int
    reason: str
    next: str
    criteria_not_checked: list[str]


class Report(TypedDict):
    """What `--json` prints at the end of a run."""

    run: str
    target: str
    status: str
    reason: str
    branch: str
    items: list[ItemReport]
    tokens: int
    iterations: int
    next: str
    head: str


def report(store: Store, run: str) -> Report:
    """The contract for scripts; see `docs/reference.md`."""
    state = store.load(run)
    rows = store.evidence(run)
    items = sorted(state.items.values(), key=lambda i: i.position)
    return {
        "run": run,
        "target": state.run.target,
        "status": str(state.run.status),
        "reason": reason(state.run),
        "branch": state.run.branch,
        "items": [_item(i, [e for e in rows if e.item == i.id]) for i in items],
        "tokens": state.run.tokens,
        "iterations": state.run.iteration,
        "next": _next(state),
        "head": store.head(run),
    }


def no_report(status: str, why: str) -> dict[str, object]:
    """The object that scripts read where there is no run to report."""
    return {"run": None, "status": status, "reason": why, "items": [], "tokens": 0, "head": ""}


def reason(run: Run) -> str:
    """Why a run is where it is, in one line; the typed reason comes first when it is paused."""
    if run.pause_reason:
        return f"{run.pause_reason}: {run.pause_detail}" if run.pause_detail else run.pause_reason
    return run.pause_detail


def _item(item: Item, rows: Sequence[Evidence]) -> ItemReport:
    judged = [json.loads(e.data) for e in rows if e.kind == "judgement"]
    last = judged[-1] if judged else {}
    return {
        "id": item.id,
        "title": item.title,
        "status": _word(item),
        "state": str(item.state),
        "verification": str(item.verification),
        "origin": item.origin,
        "evidence": [{"id": e.id, "kind": e.kind, "tree": e.tree} for e in rows],
        "red": last.get("red", []),
        "preexisting": last.get("preexisting", []),
        "regressions": last.get("regressions", []),
        "unstable": last.get("unstable", []),
        "warnings": last.get("warnings", []),
        "commits": [item.commit] if item.commit else [],
        "attempts": item.attempts,
        "iterations": item.iteration,
        "tokens": item.tokens,
        "reason": item.reason,
        "next": item.next,
        "criteria_not_checked": json.loads(item.criteria) if item.gates == "[]" else [],
    }


def _word(item: Item) -> str:
    if item.state is ItemState.IN_PROGRESS and item.verification is Verification.UNVERIFIED:
        return "unverified"
    return str(item.state).lower()


def _next(state: RunState) -> str:
    waiting = [i for i in state.items.values() if _word(i) == "unverified"]
    if state.run.status is RunStatus.PAUSED:
        if waiting:
            return f"rage accept {waiting[0].id} | rage reject {waiting[0].id} --why TEXT"
        return f'rage run "{state.run.target}" | rage stop'
    if state.run.status is RunStatus.ACTIVE:
        return "rage status"
    return f"git log {state.run.branch}" if state.run.branch else ""


def lines(data: Report) -> str:
    """The report for a terminal or a chat."""
    out = [f"RAGE run {data['run']} ({data['target']}): {data['status']}"]
    if data["reason"]:
        out.append(f"  {data['reason']}")
    for item in data["items"]:
        out.append(f"  {_mark(item['status'])} {item['id']} {item['title']}: {_detail(item)}")
        for label, values in (
            ("failed before and still", item["preexisting"]),
            ("worked before, not now", item["regressions"]),
            ("unstable", item["unstable"]),
            ("note", item["warnings"]),
            ("not machine-checked", item["criteria_not_checked"]),
        ):
            if values:
                out.append(f"      {label}: {_first(values, 3)}")
        if item["next"]:
            out.append(f"      next: {item['next']}")
    turns = data["iterations"]
    out.append(f"  {turns} turn{'s' * (turns != 1)}, {data['tokens']:,} tokens")
    if data["branch"]:
        out.append(f"  branch {data['branch']}")
    out.append(f"  chain head {data['head']}")
    if data["next"]:
        out.append(f"  next: {data['next']}")
    return "\n".join(out)


def status_line(state: RunState) -> str:
    """Where a run stands, in one line."""
    run, item = state.run, state.item
    done = sum(i.state is ItemState.DONE for i in state.items.values())
    text = f"RAGE run {run.id} ({run.target}) is {run.status}: {done} of {len(state.items)} done"
    if item is not None and run.status in (RunStatus.ACTIVE, RunStatus.PAUSED):
        text += f", {item.id} in {run.phase}, turn {run.iteration}, {run.tokens:,} tokens"
    why = reason(run)
    return f"{text}. {why}" if why else text


def _mark(status: str) -> str:
    return {"done": "✓", "failed": "✗", "unverified": "?", "pending": "·"}.get(status, "…")


def _detail(item: ItemReport) -> str:
    status = item["status"]
    commit = f", commit {item['commits'][0][:12]}" if item["commits"] else ""
    if status != "done":
        return f"{status}{commit}" + (f", {item['reason']}" if item["reason"] else "")
    red = item["red"]
    if not red:
        return f"done, on the word of: {item['origin']}{commit}"
    was = "was red and is" if len(red) == 1 else "were red and are"
    return f"done, {_first(red, 1)} {was} green{commit}"


def _first(names: Sequence[str], most: int) -> str:
    """The first names and how many there are besides; a list that was cut ends with its rest."""
    cut = _CUT.fullmatch(names[-1])
    rest = len(names) - most + (int(cut[1]) - 1 if cut else 0)
    return "; ".join(names[:most]) + (f" (+{rest} more)" if rest > 0 else "")
