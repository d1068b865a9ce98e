"""The smallest sequences of faults that the state machine found, each by its own name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rage_plugin.core.model import ItemSpec, RunState
from rage_plugin.flag import active_flag
from rage_plugin.hookspecs import Continue, ToolOutcome, Turn

from .processes import Process, Table, session
from .world import REPOSITORY, World, code_of, source_of

LINE = 'RAGE {"slice": "do it", "scope": ["src"]}'


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    world = World()
    for number in "12":
        world.add_item(ItemSpec(number, "t", "b", source_of(number), ("c",), ("t",)))
    world.targets = {"#9": ("1", "2")}
    opened = Table(world, tmp_path / "rage.db")
    with opened.installed():
        yield opened
    opened.close()


@pytest.fixture
def chat(table: Table) -> Process:
    process = Process(table, session("chat", "s1"))
    said = process.says("/rage start #9")
    assert said is not None
    assert said.then is not None
    return process


def now(table: Table) -> RunState:
    store = table.open("").store
    run = store.last_run(REPOSITORY)
    assert run is not None
    return store.load(run.id)


def test_a_claim_that_no_change_is_needed_waits_for_a_person(table: Table, chat: Process) -> None:
    """It was an internal fault: a receipt was written for a commit that nobody had intended."""
    chat.asks(0)
    chat.rests(Turn('RAGE {"no_change": "it works already"}'))
    assert table.world.faults == []
    assert now(table).items["1"].verification == "unverified"


def test_a_correction_typed_in_the_driving_chat_discards_its_turn(
    table: Table, chat: Process
) -> None:
    """F141: `/rage correct` bound the chat anew, so the old plan's result was judged."""
    chat.asks(0)
    table.world.files[code_of("1")] = "green 1"
    chat.says("/rage correct keep the names")
    assert isinstance(chat.rests(Turn(LINE)), Continue)
    assert table.world.judged == []
    chat.asks(0)
    chat.rests(Turn(LINE))
    assert now(table).items["1"].state == "DONE"


def test_a_correction_between_two_turns_discards_neither(table: Table, chat: Process) -> None:
    """The turn that begins after it works by it, so its result counts."""
    Process(table, session("chat", "s2")).says("/rage correct keep the names")
    assert "keep the names" in str(chat.asks(0))
    table.world.files[code_of("1")] = "green 1"
    chat.rests(Turn(LINE))
    assert now(table).items["1"].state == "DONE"


def test_a_glance_at_the_status_gives_no_time_away(table: Table, chat: Process) -> None:
    """Law 8: `/rage status` in the driving chat set the beginning of the turn to now."""
    chat.asks(0)
    table.world.passed += 100
    chat.says("/rage status")
    table.world.passed += 10
    chat.rests(Turn(LINE))
    assert now(table).run.active_seconds == 110


@pytest.mark.parametrize("text", ["/rage status", "/rage resume", "/rage start #9", "hello"])
def test_a_reused_id_drives_nothing(table: Table, chat: Process, text: str) -> None:
    """Law 10: another living process with a chat of the same name is not the owner."""
    twin = Process(table, session("chat", "s1"))
    twin.begins()
    twin.says(text)
    before = now(table)
    assert twin.asks(0) is None
    assert twin.tool({"path": "x"}, ToolOutcome("ok")) is None
    assert twin.rests(Turn(LINE)) is None
    assert now(table) == before
    assert chat.asks(0) is not None


def test_a_chat_that_crashed_drives_its_run_again(table: Table, chat: Process) -> None:
    """F007: and is known as alive from then on, so that nobody takes the run from it."""
    chat.kill()
    again = Process(table, session("chat", "s1"))
    again.begins()
    assert again.asks(0) is not None
    assert now(table).run.holder == again.holder
    said = Process(table, session("chat", "s2")).says("/rage start #9")
    assert said is not None
    assert said.error


def test_a_session_that_was_taken_over_from_ends_without_the_run(
    table: Table, chat: Process
) -> None:
    """Law 10: the old chat's end paused the run that another chat drove by then."""
    second = Process(table, session("chat", "s2"))
    second.says("/rage pause")
    second.says("/rage resume")
    chat.ends()
    assert now(table).run.status == "active"
    assert Path(active_flag()).exists(), "hosts that look for the flag see the run"
    assert second.asks(0) is not None


def test_work_that_an_error_cut_short_is_not_judged_before_the_last_one(
    table: Table, chat: Process
) -> None:
    """F147: the second of three errors counted as the last, and cost an attempt."""
    for number in range(2):
        chat.asks(0)
        table.world.files[code_of("1")] = f"red {number}"
        chat.rests(Turn(LINE, "error", "boom"))
    assert table.world.judged == []
    chat.asks(0)
    chat.rests(Turn(LINE, "error", "boom"))
    assert len(table.world.judged) == 1
    assert now(table).run.pause_reason == "PROVIDER_ERRORS"


@pytest.mark.xfail(strict=True, reason="an open intent is looked up for the tree of now alone")
def test_a_commit_without_its_receipt_is_found_whatever_the_files_are_now(
    table: Table, chat: Process
) -> None:
    """F007: the run waits with COMMIT_FAILED, and the commit is in no report."""
    chat.asks(0)
    table.world.files[code_of("1")] = "green 1"
    table.world.dies_at = "commit:after"
    chat.rests(Turn(LINE))
    again = Process(table, session("chat", "s1"))
    again.begins()
    again.asks(0)
    table.world.files[code_of("1")] = "green 2"
    again.rests(Turn(LINE))
    state = now(table)
    assert state.items["1"].commit == table.world.head, state.run.pause_detail
