"""The room and its sources: a third party's registers the way the built-in one does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rage_plugin.core.errors import Refused
from rage_plugin.core.model import ItemSpec
from rage_plugin.hookspecs import BacklogSource, hookimpl

from .conftest import MakeRoom


class TicketSource(BacklogSource):
    """What a distribution of somebody else might bring."""

    name = "tickets"

    def __init__(self, specs: Sequence[ItemSpec], fault: Exception | None = None) -> None:
        self.specs = specs
        self.fault = fault
        self.reads = 0

    def claims(self, target: str) -> bool:
        return target.startswith(("ticket:", "#"))

    def read(self, target: str) -> Sequence[ItemSpec]:
        self.reads += 1
        if self.fault:
            raise self.fault
        return self.specs

    @hookimpl
    def rage_backlog_source(self, workspace: str) -> BacklogSource:
        """An implementation may leave out what it does not need."""
        assert Path(workspace).is_dir()
        return self


def spec(item_id: str, *needed: str, closed: bool = False) -> ItemSpec:
    return ItemSpec(item_id, f"T{item_id}", "", "tickets", depends_on=needed, closed=closed)


def test_a_foreign_target_goes_to_who_claims_it(make_room: MakeRoom) -> None:
    """F031: readers are hooks."""
    tickets = TicketSource([spec("A-1", "A-2"), spec("A-2"), spec("A-3")])
    room = make_room({"backlog/1.md": ""}, plugins=(tickets,))
    assert [s.id for s in room.resolve("ticket:A-1")] == ["A-2", "A-1"]
    assert room.title("ticket:A-1") == "TA-1"
    assert [s.id for s in room.resolve("ticket:all")] == ["A-2", "A-1", "A-3"]


def test_sources_are_asked_in_registration_order(make_room: MakeRoom) -> None:
    first, second = TicketSource([spec("7")]), TicketSource([spec("7"), spec("8")])
    room = make_room({"backlog/1.md": ""}, plugins=(first, second))
    assert [s.id for s in room.resolve("#1")] == ["1"]
    assert (first.reads, second.reads) == (0, 0)
    assert [s.source for s in room.resolve("#8")] == ["tickets"]
    assert (first.reads, second.reads) == (1, 1)
    room.resolve("#7")
    assert (first.reads, second.reads) == (2, 1)


def test_a_source_that_cannot_be_reached_refuses(make_room: MakeRoom) -> None:
    """F032: an unreadable source refuses the run."""
    down = TicketSource([], ConnectionRefusedError("no route"))
    with pytest.raises(Refused, match="The backlog source tickets failed: no route"):
        make_room({}, plugins=(down,)).resolve("ticket:1")


def test_a_bug_of_a_source_propagates(make_room: MakeRoom) -> None:
    with pytest.raises(ZeroDivisionError):
        make_room({}, plugins=(TicketSource([], ZeroDivisionError()),)).resolve("ticket:1")


def test_dependencies_that_are_closed_are_met(make_room: MakeRoom) -> None:
    tickets = TicketSource([spec("1", "2", "3"), spec("2", closed=True), spec("3")])
    work = make_room({}, plugins=(tickets,)).resolve("#1")
    assert [(s.id, s.depends_on) for s in work] == [("3", ()), ("1", ("3",))]


def test_what_changed_on_disk_is_seen(make_room: MakeRoom, workspace: Path) -> None:
    room = make_room({"backlog/1.md": "# Old"})
    assert room.title("1") == "Old"
    (workspace / "backlog" / "1.md").write_text("---\nstatus: done\n---\n# New")
    assert room.title("1") == "New"
    assert room.resolve("1") == ()


def test_a_thousand_items(make_room: MakeRoom) -> None:
    """A backlog of a thousand files in one chain is ordered, and no recursion ends it."""
    tree = {f"backlog/{n}.md": f"Depends on #{n + 1}\nParent: #{n + 1000}" for n in range(1, 999)}
    tree["backlog/999.md"] = ""
    assert [s.id for s in make_room(tree).resolve("1")] == [str(n) for n in range(999, 0, -1)]


def test_deep_epics(make_room: MakeRoom) -> None:
    tree = {f"backlog/{n}.md": f"Parent: #{n - 1}" if n else "" for n in range(1200)}
    assert [s.id for s in make_room(tree).resolve("epic:0")] == ["1199"]


def test_the_package_stays_light() -> None:
    """The hook specifications do not load the parsers."""
    heavy = "yaml|markdown_it|pydantic|rage_plugin.backlog"
    code = f"import sys, rage_plugin, rage_plugin.hookspecs; print([m for m in '{heavy}'.split('|') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
