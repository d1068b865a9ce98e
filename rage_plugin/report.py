"""What a run came to, as the JSON object that scripts read and as lines for a person.

Honest by construction: every line is a row of the store, and nothing is called done that is not.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from .core import limits
from .core.dialogue import dialogue
from .core.events import Scalar
from .core.model import Evidence, Item, ItemState, Run, RunState, RunStatus, Verification
from .core.oneline import one_line
from .core.order import readiness
from .core.ports import Store

WORDS = ("done", "failed", "unverified", "in_progress", "claimed", "pending", "skipped")
"""What an item can be called in a report, in the order of its totals."""
_STARTS = re.compile(r"(?<![\w./-])/rage start (#?[\w:./-]+)")
_SLASH = re.compile(r"(?<![\w./-])/rage (?=[a-z])")
_CUT = re.compile(r"\+(\d+) more")
_NAME, _REASON = 80, 240
"""Characters of a title and of a reason on a line for a person."""


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
    waits_for: list[str]
    avoid: list[str]


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
    counts: dict[str, int]
    budget: dict[str, float | None]
    choice: str
    next_in_chat: str


def report(store: Store, run: str) -> Report:
    """The contract for scripts; see `docs/scripts.md`."""
    state = store.load(run)
    rows, tried = _by_item(store.evidence(run)), defaultdict(list)
    for row in store.rows("approaches", run):
        tried[row["item"]].append(row)
    waiting = waits(state)
    items = [
        _item(i, rows[i.id], tried[i.id], waiting.get(i.id, ("", ())))
        for i in sorted(state.items.values(), key=lambda i: i.position)
    ]
    told, bounds = commands(state)[:2], limits.read(state.run)
    return {
        "run": run,
        "target": state.run.target,
        "status": str(state.run.status),
        "reason": reason(state.run),
        "branch": state.run.branch,
        "items": items,
        "tokens": state.run.tokens,
        "iterations": state.run.iteration,
        "next": " | ".join(for_shell(c, state.run.target) for c in told),
        "head": store.head(run),
        "counts": {word: sum(i["status"] == word for i in items) for word in WORDS},
        "budget": {
            "tokens": bounds.run_tokens,
            "iterations": bounds.run_iterations,
            "seconds": bounds.wall_seconds,
        },
        "choice": for_shell(choice(state), state.run.target),
        "next_in_chat": " | ".join(told),
    }


def commands(state: RunState) -> tuple[str, ...]:
    """What a person may type next, as in a chat; the usual one first."""
    run = state.run
    if run.status is RunStatus.PAUSED:
        return dialogue(state).commands
    if run.status is RunStatus.ACTIVE:
        return ("/rage status",)
    return (f"git log {shlex.quote(run.branch)}",) if run.branch else ()


def choice(state: RunState) -> str:
    """What a person may decide where the run is paused; else empty."""
    return dialogue(state).choice if state.run.status is RunStatus.PAUSED else ""


def for_shell(text: str, target: str) -> str:
    """A chat's commands as a shell takes them: there a run goes on with `rage run TARGET`."""
    run = f"rage run {_quoted(one_line(target))}"
    text = text.replace(f"/rage start {one_line(target)}", run).replace("/rage resume", run)
    return typed_in_a_shell(text)


def typed_in_a_shell(text: str) -> str:
    """A chat's commands without their slash; a path that ends in `/rage` is none."""
    text = _STARTS.sub(lambda m: f"rage run {_quoted(m[1])}", text)
    return _SLASH.sub("rage ", text)


def _quoted(target: str) -> str:
    return shlex.quote(target) if set(target) & set('"$`\\!') else f'"{target}"'


def waits(state: RunState) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Pending items that wait for others: in words, and the ids that they need first."""
    items = state.items
    stuck = readiness(items.values()).blocked
    found = {}
    for item in items.values():
        needed = tuple(n for n in json.loads(item.depends_on) if _unfinished(items.get(n)))
        if item.state is not ItemState.PENDING or not needed:
            continue
        text = f"waits for {', '.join(f'#{n}' for n in needed[:3])}"
        if path := stuck.get(item.id):
            through = "".join(f", which needs #{i}" for i in path[2:])
            text = f"waits for #{path[1]}{through} ({status_word(items[path[-1]])})"
        found[item.id] = (text, needed)
    return found


def _unfinished(item: Item | None) -> bool:
    return item is not None and item.state is not ItemState.DONE


def no_report(status: str, why: str) -> dict[str, object]:
    """The object that scripts read where there is no run to report."""
    return {"run": None, "status": status, "reason": why, "items": [], "tokens": 0, "head": ""}


def reason(run: Run) -> str:
    """Why a run is where it is, in one line; the typed reason comes first when it is paused."""
    if run.pause_reason:
        return f"{run.pause_reason}: {run.pause_detail}" if run.pause_detail else run.pause_reason
    return run.pause_detail


def _by_item(rows: Iterable[Evidence]) -> Mapping[str, list[Evidence]]:
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    for row in rows:
        found[row.item].append(row)
    return found


def _item(
    item: Item,
    rows: Sequence[Evidence],
    tried: Sequence[Mapping[str, Scalar]],
    waiting: tuple[str, Sequence[str]],
) -> ItemReport:
    judged = [json.loads(e.data) for e in rows if e.kind == "judgement"]
    last = judged[-1] if judged else {}
    return {
        "id": item.id,
        "title": item.title,
        "status": status_word(item),
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
        "reason": item.reason or waiting[0],
        "next": item.next,
        "criteria_not_checked": json.loads(item.criteria) if item.gates == "[]" else [],
        "waits_for": list(waiting[1]),
        "avoid": [str(row["objective"]) for row in tried if row["status"] == "retired"],
    }


def status_word(item: Item) -> str:
    """One of `WORDS`: the item's state, but for one that waits for a person's verdict."""
    if item.state is ItemState.IN_PROGRESS and item.verification is Verification.UNVERIFIED:
        return "unverified"
    return str(item.state).lower()


def lines(data: Report) -> str:
    """The report for a terminal or a chat."""
    out = [f"RAGE run {data['run']} ({data['target']}): {data['status']}"]
    out += [f"  {text}" for text in (data["reason"], data["choice"]) if text]
    for item in data["items"]:
        title = one_line(item["title"], _NAME)
        out.append(f"  {mark(item['status'])} {item['id']} {title}: {_detail(item)}")
        for label, values in (
            ("failed before and still", item["preexisting"]),
            ("worked before, not now", item["regressions"]),
            ("unstable", item["unstable"]),
            ("note", item["warnings"]),
            ("not machine-checked", item["criteria_not_checked"]),
            ("given up", item["avoid"]),
        ):
            if values:
                out.append(f"      {label}: {_first(values, 3)}")
        if item["next"]:
            out.append(f"      next: {item['next']}")
    out += [f"  {totals(data)}", f"  {spend(data)}"]
    if data["branch"]:
        out.append(f"  branch {data['branch']}")
    out.append(f"  chain head {data['head']}")
    if data["next"]:
        out.append(f"  next: {both(data['next'], data['next_in_chat'])}")
    return clean(out)


def clean(out: Iterable[str]) -> str:
    """Lines as a terminal may show them: each stays one line, whatever a title holds."""
    return "\n".join(" " * (len(t) - len(t.lstrip(" "))) + one_line(t) for t in out)


def both(shell: str, chat: str) -> str:
    """A command that works where it is read: only a chat has another word for going on."""
    resume = next((c for c in chat.split(" | ") if c.startswith("/rage resume")), "")
    return f"{shell} (in a chat: {resume})" if resume else shell


def totals(data: Report) -> str:
    """How many items there are of each status."""
    count = sum(data["counts"].values())
    each = ", ".join(f"{n} {word.replace('_', ' ')}" for word, n in data["counts"].items() if n)
    return f"{count} item{'s' * (count != 1)}" + (f": {each}" if each else "")


def spend(data: Report) -> str:
    """Turns and tokens, and what the run may spend."""
    turns, most = data["iterations"], data["budget"]["tokens"]
    of = f" of {most:,.0f}" if most is not None else ""
    return f"{turns} turn{'s' * (turns != 1)}, {data['tokens']:,}{of} tokens"


def status_line(state: RunState) -> str:
    """Where a run stands, in one line."""
    run, item = state.run, state.item
    done = sum(i.state is ItemState.DONE for i in state.items.values())
    text = f"RAGE run {run.id} ({run.target}) is {run.status}: {done} of {len(state.items)} done"
    if item is not None and run.status in (RunStatus.ACTIVE, RunStatus.PAUSED):
        text += f", {item.id} in {run.phase}, turn {run.iteration}, {run.tokens:,} tokens"
    why = reason(run)
    return one_line(f"{text}. {why}" if why else text)


def mark(status: str) -> str:
    """One character for the status of an item."""
    return {"done": "✓", "failed": "✗", "unverified": "?", "pending": "·"}.get(status, "…")


def _detail(item: ItemReport) -> str:
    status = item["status"]
    commit = f", commit {item['commits'][0][:12]}" if item["commits"] else ""
    if status != "done":
        said = one_line(item["reason"], _REASON)
        return f"{status.replace('_', ' ')}{commit}" + (f", {said}" if said else "")
    return f"done, {proof(item)}{commit}"


def proof(item: ItemReport) -> str:
    """What a done item rests on."""
    red = item["red"]
    if not red:
        return f"on the word of: {item['origin']}"
    was = "was red and is" if len(red) == 1 else "were red and are"
    return f"{_first(red, 1)} {was} green"


def _first(names: Sequence[str], most: int) -> str:
    """The first names and how many there are besides; a list that was cut ends with its rest."""
    cut = _CUT.fullmatch(names[-1])
    rest = len(names) - most + (int(cut[1]) - 1 if cut else 0)
    return "; ".join(names[:most]) + (f" (+{rest} more)" if rest > 0 else "")
