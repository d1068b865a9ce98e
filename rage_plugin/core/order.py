"""The order of work: dependencies first, then priority, then id; what is wrong has its path.

Pure: the same items give the same order, in whatever order they were read (F033, F034).
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from .errors import Refused
from .model import Item, ItemSpec, ItemState, Verification

IdKey: TypeAlias = tuple[tuple[int, int, str], ...]


def natural(item_id: str) -> IdKey:
    """A sort key in which numbers inside an id count as numbers: 5 < 10, 5.2 < 5.10, 10 < a."""
    parts = re.findall(r"\d+|\D+", item_id)
    return tuple((0, int(p), p) if p.isdecimal() else (1, 0, p) for p in parts)


def arrange(items: Sequence[ItemSpec]) -> tuple[ItemSpec, ...]:
    """The items with each after all that it depends on, the lowest (priority, id) first.

    Raises `Refused` with the path of a cycle, a self-edge, or an id that no item has; with both
    sources when two items have one id.
    """
    by_id: dict[str, ItemSpec] = {}
    for spec in sorted(items, key=lambda s: (natural(s.id), s.id)):
        if spec.id in by_id:
            raise Refused(
                f"Two items have the id {spec.id}: {by_id[spec.id].source} and {spec.source}",
                next="give one of them another id",
            )
        by_id[spec.id] = spec
    refuse_bad_edges({s.id: s.depends_on for s in by_id.values()})

    sorter = TopologicalSorter({s.id: s.depends_on for s in by_id.values()})
    sorter.prepare()
    waiting: list[tuple[int, IdKey, str]] = []
    ordered: list[ItemSpec] = []
    while sorter.is_active():
        for item_id in sorter.get_ready():
            heapq.heappush(waiting, (by_id[item_id].priority, natural(item_id), item_id))
        chosen = heapq.heappop(waiting)[2]
        ordered.append(by_id[chosen])
        sorter.done(chosen)
    return tuple(ordered)


def refuse_bad_edges(depends_on: Mapping[str, Collection[str]]) -> None:
    """Raise `Refused` with the path of the first self-edge, missing id or cycle there is."""
    for item_id, needed in depends_on.items():
        if item_id in needed:
            raise Refused(
                f"An item depends on itself: {path_text((item_id, item_id))}",
                next=f"remove the dependency from item {item_id}",
            )
        for other in needed:
            if other not in depends_on:
                raise missing((item_id, other))
    cycle = find_cycle(depends_on)
    if cycle:
        raise Refused(
            f"The dependencies form a cycle: {path_text(cycle)}",
            next="remove one of these dependencies",
        )


def find_cycle(depends_on: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The ids on a cycle, each depending on the next, the first again at the end; or empty."""
    names = sorted(depends_on, key=lambda i: (natural(i), i))
    sorter = TopologicalSorter({i: sorted(depends_on[i]) for i in names})
    try:
        sorter.prepare()
    except CycleError as error:
        # graphlib lists predecessors first; a person reads "depends on" the other way round.
        ring = list(reversed(error.args[1]))[:-1]
        start = min(range(len(ring)), key=lambda n: (natural(ring[n]), ring[n]))
        turned = ring[start:] + ring[:start]
        return (*turned, turned[0])
    return ()


def missing(path: Sequence[str]) -> Refused:
    """The error for a path of dependencies whose last id no item has."""
    return Refused(
        f"There is no item {path[-1]}: {path_text(path)}",
        next=f"write item {path[-1]}, or remove it from item {path[-2]}",
    )


def path_text(path: Iterable[str]) -> str:
    """A path of dependencies for a person: `#5 → #7`, each depends on the next."""
    return " → ".join(f"#{i}" for i in path)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Which waiting items may begin, and which never will as things stand."""

    ready: tuple[str, ...] = ()
    """In the order of the items that were asked about."""
    blocked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A waiting item → the path of dependencies to the stuck one, e.g. `("7", "6", "5")`."""


def ready(
    waiting: Mapping[str, Collection[str]],
    done: Collection[str],
    stuck: Collection[str] = (),
) -> Readiness:
    """Sort out waiting items (id → ids it depends on, in order of work).

    `done` satisfies a dependency; `stuck` (failed, skipped, unverified) blocks whoever needs it,
    directly or through others. A dependency in neither, and not waiting, is being worked on.
    """
    able = tuple(i for i, needed in waiting.items() if all(n in done for n in needed))
    paths: dict[str, tuple[str, ...]] = {i: (i,) for i in stuck}
    needed_by: dict[str, list[str]] = {}
    for item_id, needed in waiting.items():
        for other in needed:
            needed_by.setdefault(other, []).append(item_id)
    reached = [i for i in needed_by if i in paths]
    for stone in reached:  # grows while it is walked: breadth first, so paths are short
        for item_id in needed_by.get(stone, ()):
            if item_id not in paths:
                paths[item_id] = (item_id, *paths[stone])
                reached.append(item_id)
    return Readiness(able, {i: paths[i] for i in waiting if i in paths})


def readiness(items: Iterable[Item]) -> Readiness:
    """`ready` for the rows of a run: PENDING waits, DONE satisfies, failed or unverified blocks.

    A dependency that the run has no row of was met before the run began.
    """
    rows = sorted(items, key=lambda i: (i.position, natural(i.id)))
    known = {i.id for i in rows}
    waiting = {
        i.id: [n for n in json.loads(i.depends_on) if n in known]
        for i in rows
        if i.state is ItemState.PENDING
    }
    return ready(
        waiting,
        done={i.id for i in rows if i.state is ItemState.DONE},
        stuck={i.id for i in rows if _stuck(i)},
    )


def next_item(items: Iterable[Item]) -> str | None:
    """The id of the item to begin next, or None when none may begin."""
    found = readiness(items).ready
    return found[0] if found else None


def _stuck(item: Item) -> bool:
    if item.state in (ItemState.FAILED, ItemState.SKIPPED):
        return True
    return item.state is ItemState.IN_PROGRESS and item.verification is Verification.UNVERIFIED
