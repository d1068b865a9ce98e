"""From a target to a run: everything that is looked at before the first model call.

Nothing is written until every source was read, a check was found and git was seen to be able to
take commits; a refusal leaves no trace.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from . import briefing, loop
from .commands import Command
from .core import facts, lifecycle, limits
from .core.config import Limits
from .core.decide import Seen, Walk
from .core.errors import Refused
from .core.events import Event
from .core.fold import apply
from .core.model import Base, Item, ItemSpec, Phase, Run, RunState, RunStatus
from .core.ports import Expected
from .hookspecs import Session
from .parts import Parts


@dataclass(frozen=True, slots=True)
class Started:
    """A run that began, was there already, or had nothing to do."""

    state: RunState
    text: str
    brief: str | None


def start(parts: Parts, session: Session, command: Command, run: str, holder: str) -> Started:
    """Begin a run on a target; the same run when it is active already (F004)."""
    held = parts.store.active_run(parts.workspace)
    if held is not None:
        return _already(parts, session, command, held)
    parts.verifier.preflight()
    specs = parts.backlog.resolve(command.target)
    parts.verifier.check_targets([t for s in specs for t in s.gates])
    done = delivered(parts, specs)
    todo = [s for s in specs if s.id not in done]
    title = parts.backlog.title(command.target)
    if not todo:
        return _nothing(parts, session, command, run, title)
    notes = [parts.deliver.preflight(command.snapshot)]
    before = parts.deliver.branch()
    branch = parts.deliver.begin(run, command.target, title)
    made = f", made for this run; {before or 'HEAD'} stays as it is" if branch != before else ""
    notes.append(f"On branch {branch}{made}.")
    if command.snapshot:
        notes.append(parts.deliver.snapshot(run))
    base = parts.verifier.open(run)
    parts.deliver.pin(run, base)
    state, events = _first(parts, session, command, run, holder, title, branch, base, todo)
    walk = Walk(state, Seen(base.tree, (), None, "", "done", 0, state.run.started_at, turn=False))
    first = loop.next_ready(state)
    walk = loop.begin(parts, walk, events, first)
    brief = briefing.brief(parts, walk.state)
    parts.store.append(run, 0, events, state.run.started_at)
    state = parts.store.load(run)
    count = f"{len(todo)} items, #{first} first" if len(todo) > 1 else f"item #{first}"
    lines = [f"RAGE run {run} started on {command.target}: {count}."]
    return Started(state, "\n".join([*lines, *[n for n in notes if n]]), brief)


def delivered(parts: Parts, specs: Sequence[ItemSpec]) -> frozenset[str]:
    """Ids of items that an earlier run finished, as the database and HEAD's history agree.

    The backlog's own files are edited by nobody, so this is how RAGE knows. An item whose criteria
    or gates were changed since is work again.
    """
    wanted = {s.id: facts.item_from(s, "", 0) for s in specs}
    found: set[str] = set()
    for item in parts.store.finished(parts.workspace):
        now = wanted.get(item.id)
        same = now and (now.criteria_hash, now.gates) == (item.criteria_hash, item.gates)
        if same and item.id not in found and parts.deliver.holds(item.run, item.id, item.commit):
            found.add(item.id)
    return frozenset(found)


class PlannedItem(TypedDict):
    """One item of a plan."""

    id: str
    title: str
    source: str
    depends_on: list[str]
    criteria: list[str]
    gates: list[str]
    done: bool
    """An earlier run finished it, so `start` leaves it out."""


class Plan(TypedDict):
    """What `rage plan --json` prints."""

    target: str
    title: str
    items: list[PlannedItem]
    checks: list[dict[str, object]]
    limits: dict[str, object]
    estimate: str
    protected: list[str]
    problem: str


def plan(parts: Parts, command: Command) -> Plan:
    """What `start` would do: no model call, nothing written (F158)."""
    specs = parts.backlog.resolve(command.target)
    done = delivered(parts, specs)
    checks: list[dict[str, object]] = []
    problem = ""
    try:
        parts.verifier.preflight()
        parts.verifier.check_targets([t for s in specs for t in s.gates])
        checks = [
            {"name": c.name, "command": list(c.command), "required": c.required}
            for c in parts.verifier.commands()
        ]
        parts.deliver.preflight(command.snapshot)
        held = parts.store.active_run(parts.workspace)
        if held is not None and held.target != command.target:
            raise taken(held)
    except Refused as error:
        problem = error.line()
    return {
        "target": command.target,
        "title": parts.backlog.title(command.target),
        "items": [
            {
                "id": s.id,
                "title": s.title,
                "source": s.source,
                "depends_on": list(s.depends_on),
                "criteria": list(s.criteria),
                "gates": list(s.gates),
                "done": s.id in done,
            }
            for s in specs
        ],
        "checks": checks,
        "limits": json.loads(limits.dump(_limits(parts, command))),
        "estimate": parts.store.estimate(parts.workspace),
        "protected": list(parts.config.git.protected),
        "problem": problem,
    }


def plan_lines(data: Plan) -> str:
    """The plan for a terminal or a chat."""
    out = [f"Plan for {data['target']}: {data['title']}"]
    for number, item in enumerate(data["items"], 1):
        gates = ", ".join(item["gates"]) or "none given, so a test has to be found red before"
        after = f", after {', '.join(item['depends_on'])}" if item["depends_on"] else ""
        word = " (done already)" if item["done"] else ""
        out.append(f"  {number}. #{item['id']} {item['title']}{word}{after}")
        count = len(item["criteria"])
        many = "criterion" if count == 1 else "criteria"
        out.append(f"     {count} {many}; gate: {gates}")
    for check in data["checks"]:
        word = "required" if check["required"] else "optional"
        argv = check["command"]
        shown = " ".join(map(str, argv)) if isinstance(argv, list) else str(argv)
        out.append(f"  check {check['name']} ({word}): {shown}")
    out.append(f"  estimate: {data['estimate']}")
    bounds = ", ".join(f"{k} {v}" for k, v in data["limits"].items())
    out.append(f"  limits: {bounds}")
    if data["problem"]:
        out.append(f"  start would be refused: {data['problem']}")
    return "\n".join(out)


def _already(parts: Parts, session: Session, command: Command, held: Run) -> Started:
    state = parts.store.load(held.id)
    same_owner = (held.host, held.session) == (session.host, session.id)
    if held.target == command.target and same_owner:
        hint = "" if held.status is RunStatus.ACTIVE else " /rage resume goes on."
        return Started(
            state, f"Run {held.id} on {held.target} is {held.status} already.{hint}", None
        )
    raise taken(held)


def taken(held: Run) -> Refused:
    """The refusal where another run has the workspace."""
    return Refused(
        f"Run {held.id} on {held.target} is {held.status} in this workspace "
        f"({held.host}, session {held.session})",
        kept="Nothing was changed",
        next=f"/rage start {held.target}, or /rage stop"
        if held.status is RunStatus.PAUSED
        else "/rage status, /rage pause or /rage stop",
    )


def _nothing(parts: Parts, session: Session, command: Command, run: str, title: str) -> Started:
    now = parts.clock.now()
    state, events = _first(parts, session, command, run, "", title, "", Base("", ""), [])
    done = lifecycle.finished(state, "Nothing to do: all of the target is closed or done", now)
    parts.store.append(run, 0, [*events, done], now)
    return Started(apply(state, done), done.why, None)


def _first(
    parts: Parts,
    session: Session,
    command: Command,
    run: str,
    holder: str,
    title: str,
    branch: str,
    base: Base,
    todo: Sequence[ItemSpec],
) -> tuple[RunState, list[Event]]:
    now = parts.clock.now()
    row = Run(
        id=run,
        target=command.target,
        title=title,
        status=RunStatus.ACTIVE,
        phase=Phase.REVIEW,
        host=session.host,
        session=session.id,
        workspace=parts.workspace,
        started_at=now,
        resumed_at=now,
        branch=branch,
        base_commit=base.commit,
        base_tree=base.tree,
        items_limit=command.items,
        limits=limits.dump(_limits(parts, command)),
        untracked=json.dumps(base.untracked),
        holder=holder,
    )
    chosen, known = {s.id for s in todo}, parts.store.expected(parts.workspace)
    items: list[Item] = []
    for position, spec in enumerate(todo):
        # A dependency that is closed already holds nothing up.
        open_ones = tuple(d for d in spec.depends_on if d in chosen)
        item = facts.item_from(replace(spec, depends_on=open_ones), run, position)
        items.append(_expecting(item, known))
    event = lifecycle.run_started(row, items, f"{session.host} started {command.target}")
    return apply(None, event), [event]


def _expecting(item: Item, known: Expected) -> Item:
    """The item with what it may come to: a person's estimate, else the workspace's history."""
    return replace(
        item,
        expected_tokens=item.expected_tokens or known.tokens,
        expected_files=item.expected_files or known.files,
        expected_lines=item.expected_lines or known.lines,
    )


def _limits(parts: Parts, command: Command) -> Limits:
    """The project's limits with what the person typed on top."""
    return limits.typed(parts.config.limits, command.budget, command.max_iterations, command.time)
