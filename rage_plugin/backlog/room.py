"""The backlog room: from what a person typed to the items of a run, in order.

It asks the sources that are registered through `rage_backlog_source` and knows none of them.
"""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pluggy

from rage_plugin.core.errors import Refused
from rage_plugin.core.model import ItemSpec
from rage_plugin.core.order import natural
from rage_plugin.core.targets import FORMS, Target, TargetKind, normal_id, parse_target
from rage_plugin.hookspecs import BacklogSource

from .epics import Hierarchy
from .files import relative_path, settled

WRITE = "write backlog/1-title.md, or a BACKLOG.md with `- [ ] #1 Title` lines"


class BacklogRoom:
    """Implements `core.ports.Backlog` over every registered source; nothing is cached."""

    def __init__(
        self, root: str | Path, sources: Sequence[str], manager: pluggy.PluginManager
    ) -> None:
        self.root = Path(root)
        self.sources = tuple(sources)
        """The profile's `sources`: handed to every source."""
        self.manager = manager
        self.warnings: tuple[str, ...] = ()
        """What the last `resolve` noticed and did not refuse."""

    def resolve(self, target: str) -> Sequence[ItemSpec]:
        """The open items that a target stands for and all they wait for, in order of work.

        Closed items are not in it: they are not worked, and a dependency on one is met. Empty
        means that nothing is left to do. Raises `Refused` or `UsageError`.
        """
        parsed, specs, warnings = self._read(target)
        hierarchy = Hierarchy(specs)
        roots = self._roots(parsed, specs)
        if parsed.kind is TargetKind.EPIC and not hierarchy.is_epic(roots[0]):
            raise Refused(
                f"Item {roots[0]} is not an epic: no item is a part of it",
                next=f"start #{roots[0]}, or write `Parent: #{roots[0]}` in its parts",
            )
        work = hierarchy.work(roots)
        self.warnings = (*warnings, *_notices(hierarchy, roots, work))
        return work

    def title(self, target: str) -> str:
        """What to call a target: its item's title, the path, or the backlog."""
        parsed, specs, _ = self._read(target)
        roots = self._roots(parsed, specs)
        if parsed.kind in (TargetKind.ITEM, TargetKind.EPIC) or len(roots) == 1:
            return next(s.title for s in specs if s.id == roots[0])
        return parsed.value

    def _read(self, target: str) -> tuple[Target, Sequence[ItemSpec], tuple[str, ...]]:
        """The target settled, and the items of the first source that holds it."""
        parsed = settled(self.root, parse_target(target))
        known: list[ItemSpec] = []
        asked: list[str] = []
        for source in self._asked():
            if not source.claims(target):
                continue
            try:
                specs = source.read(target)
            except OSError as error:
                raise Refused(f"The backlog source {source.name} failed: {error}") from error
            if parsed.kind not in (TargetKind.ITEM, TargetKind.EPIC) or _find(parsed.value, specs):
                return parsed, specs, tuple(getattr(source, "warnings", ()))
            known += specs
            asked.append(source.name)
        if not asked:
            if parsed.kind is TargetKind.FOREIGN:
                raise Refused(f"No backlog source here reads {parsed}", next=f"write {FORMS}")
            raise Refused(f"There is no backlog that could hold {parsed}", next=WRITE)
        raise _unknown(parsed, known)

    def _asked(self) -> Sequence[BacklogSource]:
        # pluggy calls the last registered first; the specification promises registration order.
        found = self.manager.hook.rage_backlog_source(
            workspace=str(self.root), sources=self.sources
        )
        return cast("Sequence[BacklogSource]", found[::-1])

    def _roots(self, target: Target, specs: Sequence[ItemSpec]) -> list[str]:
        """Ids of the items that the target names directly."""
        if target.kind in (TargetKind.ITEM, TargetKind.EPIC):
            return [_find(target.value, specs)]
        if target.kind is TargetKind.PATH:
            path = relative_path(self.root, target.value)
            inside = [s.id for s in specs if path in (".", s.source)]
            return inside or [s.id for s in specs if s.source.startswith(f"{path}/")]
        if target.kind is TargetKind.FOREIGN:
            rest = target.value.partition(":")[2]
            named = [s.id for s in specs if target.value in (s.id, s.source) or s.id == rest]
            return named or [s.id for s in specs]
        return [s.id for s in specs]


def _find(typed: str, specs: Sequence[ItemSpec]) -> str:
    """The id that was typed: as it is, else as a file's name without its ending; else empty."""
    wanted = normal_id(typed)
    if any(s.id == wanted for s in specs):
        return wanted
    stems = {normal_id(posixpath.basename(s.source).rpartition(".")[0]): s.id for s in specs}
    return stems.get(wanted, "")


def _unknown(target: Target, specs: Sequence[ItemSpec]) -> Refused:
    ids = sorted({s.id for s in specs}, key=natural)
    words = [i for i in ids if not i.isdecimal()]  # a number close by is not a likely slip
    near = difflib.get_close_matches(target.value, words, n=1)
    hint = f"; did you mean #{near[0]}?" if near else ""
    listed = ", ".join(f"#{i}" for i in ids[:8]) + (", …" if len(ids) > 8 else "")
    holds = f"the backlog holds {listed}" if ids else "the backlog is empty"
    return Refused(f"There is no item {target.value}: {holds}{hint}", next="rage plan backlog")


def _notices(
    hierarchy: Hierarchy, roots: Sequence[str], work: Sequence[ItemSpec]
) -> tuple[str, ...]:
    """What a person would want to know: gates of an epic, and parents that no item is."""
    found = []
    epics = [i for i in dict.fromkeys((*roots, *(s.parent or "" for s in work))) if i]
    for item_id in epics:
        spec = hierarchy.items.get(item_id)
        if spec is None:
            found.append(f"There is no item {item_id}, which is named as a parent")
        elif hierarchy.is_epic(item_id) and spec.gates:
            found.append(f"{spec.source}: gates of an epic are not run: give them to its parts")
    return tuple(found)
