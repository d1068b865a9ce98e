"""Items from markdown files: one file an item, or one file whose task list holds many.

The built-in source. It is registered through the hook `rage_backlog_source` like a third party's,
and knows nothing of runs: it reads a whole place, or refuses with everything that is wrong in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rage_plugin.core.errors import Refused, UsageError
from rage_plugin.core.model import ItemSpec
from rage_plugin.core.targets import TargetKind, parse_target
from rage_plugin.hookspecs import BacklogSource, hookimpl

from . import files
from .items import Found, read_items


class MarkdownPlugin:
    """The plugin that offers the built-in source to RAGE."""

    @hookimpl
    def rage_backlog_source(self, workspace: str, sources: Sequence[str]) -> BacklogSource:
        """The markdown source of a workspace."""
        return MarkdownSource(Path(workspace), sources)


class MarkdownSource(BacklogSource):
    """Reads a workspace's markdown backlog; `sources` replaces the built-in places."""

    name = "markdown"

    def __init__(self, root: Path, sources: Sequence[str] = ()) -> None:
        self.root = root
        self.sources = tuple(sources)
        self.warnings: tuple[str, ...] = ()
        """What the last `read` noticed and did not refuse, each with file and line."""

    def places(self) -> tuple[str, ...]:
        """Where items are read from, relative to the workspace; empty when there is nothing."""
        if self.sources:
            return tuple(files.relative_path(self.root, s) for s in self.sources)
        built_in = files.built_in_place(self.root)
        return (built_in,) if built_in else ()

    def claims(self, target: str) -> bool:
        """Whether the target is a markdown path, or there is a backlog that may hold the item."""
        try:
            parsed = files.settled(self.root, parse_target(target))
        except UsageError:
            return False
        if parsed.kind is TargetKind.PATH:
            path = self.root / parsed.value
            return not path.is_file() or path.name.lower().endswith(files.SUFFIXES)
        return parsed.kind is not TargetKind.FOREIGN and bool(self.places())

    def read(self, target: str) -> Sequence[ItemSpec]:
        """Every item of the backlog, and of the path when the target is one outside it.

        Raises `Refused` with all files that cannot be read, or with both places of an id that
        two items have.
        """
        parsed = files.settled(self.root, parse_target(target))
        reading = _Reading(self.root)
        for place in self.places():
            reading.add(place, is_list=(self.root / place).is_file())
        if parsed.kind is TargetKind.PATH:
            known = frozenset(f.spec.id for f in reading.found)
            reading.add(files.relative_path(self.root, parsed.value), known=known)
        _refuse_all(reading.problems)
        _refuse_collisions(reading.found)
        self.warnings = tuple(reading.warnings)
        return [f.spec for f in _close_ticked(reading.found)]


class _Reading:
    """What was found so far, each file once, and everything that could not be read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.read: set[str] = set()
        self.found: list[Found] = []
        self.problems: list[Refused] = []
        self.warnings: list[str] = []

    def add(
        self, place: str, *, is_list: bool = False, known: frozenset[str] | None = None
    ) -> None:
        unreadable: list[str] = []
        for path in files.files_of(self.root, place, unreadable):
            if path in self.read:
                continue
            self.read.add(path)
            try:
                text = files.read_text(self.root, path)
                items = read_items(text, path, is_list=is_list, known=known)
            except Refused as error:
                self.problems.append(error)
                continue
            self.found += items
            self.warnings += [w for f in items for w in f.warnings]
            if not items and text.strip():
                name = files.shown(path)
                self.warnings.append(f"{name}: no item in it: write `- [ ] #1 Title` lines")
        self.problems += [Refused(u) for u in unreadable]


def _refuse_all(problems: Sequence[Refused]) -> None:
    if len(problems) == 1:
        raise problems[0]
    if problems:
        listed = "; ".join(p.what for p in problems)
        raise Refused(
            f"{len(problems)} backlog files cannot be read: {listed}",
            kept="Nothing was started",
            next="mend or remove them",
        )


def _refuse_collisions(found: Iterable[Found]) -> None:
    first: dict[str, Found] = {}
    collisions = []
    for item in found:
        other = first.setdefault(item.spec.id, item)
        if other is not item:
            collisions.append(f"#{item.spec.id} is {other.place} and {item.place}")
    if collisions:
        raise Refused(
            f"Two items have one id: {'; '.join(collisions)}",
            next="give one another id: `id:` in its front matter, or `#n` before its title",
        )


def _close_ticked(found: Sequence[Found]) -> list[Found]:
    """Close items whose epic ticks them off, unless they say themselves what they are."""
    ticked = frozenset(i for f in found for i in f.ticked)
    return [
        replace(f, spec=replace(f.spec, closed=True)) if f.spec.id in ticked and not f.stated else f
        for f in found
    ]
