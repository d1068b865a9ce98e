"""What a target's items stand for: epics become their parts, dependencies what is still to do.

Pure. An epic is an item with parts; it stands for them and is not worked itself, so its own gates
and criteria are not checked. Whoever depends on an epic depends on its parts, and a part needs
what its epic needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from rage_plugin.core.errors import Refused
from rage_plugin.core.model import ItemSpec
from rage_plugin.core.order import arrange, find_cycle, missing, path_text


class Hierarchy:
    """The items of one backlog by id, with who is part of whom."""

    def __init__(self, specs: Iterable[ItemSpec]) -> None:
        self.items: Mapping[str, ItemSpec] = {s.id: s for s in specs}
        self.parts = _parts(self.items)
        known = {i: [p for p in parts if p in self.items] for i, parts in self.parts.items()}
        ring = find_cycle(known)
        if ring:
            raise Refused(
                f"An epic is a part of itself: {path_text(ring)}",
                next="remove one of these `Parent:` lines or task list entries",
            )
        self._leaves: dict[str, tuple[str, ...]] = {}
        self._epics: dict[str, set[str]] = {i: set() for i in self.items}
        inner_first = tuple(TopologicalSorter(known).static_order())
        for item_id in inner_first:
            below = [leaf for p in known[item_id] for leaf in self._leaves[p]]
            self._leaves[item_id] = tuple(dict.fromkeys(below)) if below else (item_id,)
        for item_id in reversed(inner_first):
            for part in known[item_id]:
                self._epics[part] |= {item_id} | self._epics[item_id]

    def is_epic(self, item_id: str) -> bool:
        """Whether an item has parts."""
        return bool(self.parts[item_id])

    def work(self, roots: Iterable[str]) -> tuple[ItemSpec, ...]:
        """The open items that the roots stand for and those they wait for, in order of work.

        Each item's `depends_on` names items of the result only: what is closed is met. Raises
        `Refused` with the path of a missing id, a self-edge or a cycle.
        """
        came_from: dict[str, str | None] = {}
        for root in roots:
            for leaf in self._open_leaves((root,)):
                came_from.setdefault(leaf, None)
        chosen: list[ItemSpec] = []
        queue = list(came_from)
        for item_id in queue:  # grows while it is walked
            needed = self._needed(item_id, came_from)
            chosen.append(
                replace(self.items[item_id], depends_on=needed, parent=self._epic_of(item_id))
            )
            for other in needed:
                if other not in came_from:
                    came_from[other] = item_id
                    queue.append(other)
        return arrange(chosen)

    def _needed(self, item_id: str, came_from: Mapping[str, str | None]) -> tuple[str, ...]:
        """The open items that one item waits for, its epics' dependencies included."""
        epics = self._epics[item_id]
        needed: list[str] = []
        for holder in (item_id, *sorted(epics)):
            for other in self.items[holder].depends_on:
                if other not in self.items:
                    above = _path(item_id, came_from)
                    raise missing((*above, *((holder,) if holder != item_id else ()), other))
                if other != item_id and other in epics:
                    raise Refused(
                        f"Item {holder} depends on an epic that it is a part of: "
                        f"{path_text((holder, other))}",
                        next=f"write `Parent: #{other}` in item {holder} instead",
                    )
                if holder in self._epics[other]:
                    continue  # an epic that waits for its own part says only that it has it
                needed += self._open_leaves((holder, other))
        return tuple(dict.fromkeys(needed))

    def _open_leaves(self, path: Sequence[str]) -> list[str]:
        """The open items that the last of a path stands for; a closed dependency is met."""
        item_id = path[-1]
        if len(path) > 1 and self.items[item_id].closed:
            return []
        for inner in self._inside(item_id):
            for part in self.parts[inner]:
                if part not in self.items:
                    raise Refused(
                        f"There is no item {part}, which epic {inner} lists: "
                        f"{path_text((*path[:-1], inner, part))}",
                        next=f"write item {part}, or remove it from item {inner}",
                    )
        return [leaf for leaf in self._leaves[item_id] if not self.items[leaf].closed]

    def _inside(self, item_id: str) -> list[str]:
        found = {item_id: None}
        queue = [item_id]
        for epic in queue:  # grows while it is walked
            new = [p for p in self.parts[epic] if p in self.items and p not in found]
            found |= dict.fromkeys(new)
            queue += new
        return queue

    def _epic_of(self, item_id: str) -> str | None:
        own = self.items[item_id].parent
        if own is not None:
            return own
        return next((e for e in sorted(self._epics[item_id]) if item_id in self.parts[e]), None)


def _parts(items: Mapping[str, ItemSpec]) -> dict[str, list[str]]:
    """Each item's parts: what its own text lists, then whoever names it as the parent."""
    parts = {i: list(dict.fromkeys(s.children)) for i, s in items.items()}
    for item_id, spec in items.items():
        if spec.parent in parts and item_id not in parts[spec.parent]:
            parts[spec.parent].append(item_id)
    return parts


def _path(item_id: str, came_from: Mapping[str, str | None]) -> tuple[str, ...]:
    """The dependencies that led to an item, the target's own item first."""
    path = [item_id]
    while (before := came_from.get(path[-1])) is not None:
        path.append(before)
    return tuple(reversed(path))
