"""What a decision is given: the current item's open slice, failures, trees, directives."""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from rage_plugin.core.errors import RageError
from rage_plugin.core.events import Event, Put
from rage_plugin.core.judgement import CheckRecord, Verdict
from rage_plugin.core.model import ItemState, Phase, RunStatus
from rage_plugin.store import RunStore, open_store

from .ticks import (
    approach,
    correction,
    evidence,
    failure,
    gate,
    observed,
    run_row,
    slice_,
    started,
)


def test_the_state_of_the_current_item_and_nothing_of_the_others(store: RunStore) -> None:
    """F006, F007: a resume finds all of it in the database."""
    puts = (
        Put("runs", ("r1",), {"current_item": "0"}),
        slice_("s1", "0", superseded=1),
        slice_("s2", "0"),
        Put("blockers", ("b1",), {"run": "r1", "item": "0", "reason": "SPEC_DEVIATION", "at": 1.0}),
        Put("blockers", ("b2",), {"run": "r1", "item": "1", "reason": "SPEC_DEVIATION", "at": 1.0}),
        slice_("s3", "1"),
        gate("g1", "s1"),
        gate("g3", "s2"),
        gate("g2", "s2"),
        gate("g9", "s3", "1"),
        evidence("r1", "e1", "judgement", "0", "tree-a"),
        evidence("r1", "e2", "judgement", "0", "tree-b"),
        evidence("r1", "e3", "judgement", "1", "tree-c"),
        evidence("r1", "e4", "change", "0", "tree-d"),
        failure("f1", "0", "older", 1.0),
        failure("f2", "0", "the clock was set back after it", 3.0),
        failure("f3", "0", "newest", 2.0),
        failure("f4", "1", "another item's", 9.0),
        correction(1, superseded_by="c2"),
        correction(3),
        correction(2),
        approach("a1", "0", 1.0, None),
        approach("a2", "0", 1.0, "e1"),
        approach("a3", "0", None, None),
        approach("a4", "1", 1.0, None),
    )
    store.append("r1", 0, [started(), Event("all", "Everything", puts)], 1.0)
    state = store.load("r1")
    assert state.run.status is RunStatus.ACTIVE
    assert state.run.phase is Phase.REVIEW
    assert state.run.version == 1
    assert list(state.items) == ["0", "1"]
    assert state.items["1"].state is ItemState.PENDING
    assert state.slice is not None
    assert state.slice.id == "s2"
    assert [g.id for g in state.gates] == ["g3", "g2"]
    assert state.judged_trees == {"tree-a", "tree-b"}
    assert state.last_failure == "newest"
    assert state.directives == ("Correction 3", "Correction 2")
    assert state.avoid == ("Try a1",)
    assert [a.id for a in state.approaches] == ["a1", "a2", "a3"]
    assert [b.id for b in state.blockers] == ["b1"]
    none = Event("all", "Between items", (Put("runs", ("r1",), {"current_item": None}),))
    store.append("r1", 1, [none], 2.0)
    state = store.load("r1")
    assert (state.slice, state.gates, state.last_failure, state.avoid) == (None, (), "", ())


def test_an_unknown_run_is_one_line(store: RunStore) -> None:
    with pytest.raises(RageError) as caught:
        store.load("nope")
    assert caught.value.line() == "There is no run nope. Next: rage status"


def test_everything_is_there_after_reopening(store: RunStore, path: Path) -> None:
    """F007: nothing a resume needs lives in the process."""
    store.append("r1", 0, [started(), observed("e1")], 1.0)
    before = store.load("r1"), store.head("r1"), store.evidence("r1")
    store.close()
    again = open_store(path)
    assert (again.load("r1"), again.head("r1"), again.evidence("r1")) == before
    again.close()


def test_runs_of_a_workspace_are_kept_apart_newest_first(store: RunStore) -> None:
    for number, (workspace, status) in enumerate(
        [("/w", "done"), ("/w", "stopped"), ("/x", "paused"), ("/w", "active")]
    ):
        row = run_row(workspace, status=status, started_at=float(number))
        event = Event("run_started", "", (Put("runs", (f"r{number}",), row),))
        store.append(f"r{number}", 0, [event], float(number))
    assert [r.id for r in store.runs("/w")] == ["r3", "r1", "r0"]
    paused = store.active_run("/x")
    assert paused is not None
    assert paused.id == "r2"
    assert store.active_run("/nowhere") is None
    assert store.last_run("/nowhere") is None


def test_checks_and_effects_come_back_as_they_were(store: RunStore) -> None:
    record = CheckRecord(
        cell="green",
        command="pytest -q",
        tree="t",
        command_hash="c",
        environment_hash="e",
        verdict=Verdict.PASS,
        passed=3,
        failed=0,
        skipped=1,
        seconds=0.5,
        cached=True,
        isolation="overlay",
    )
    check = Put("checks", ("k1",), {**asdict(record), "item": "0"})
    intent = Put("outbox", ("r1:0:commit",), {"kind": "commit", "state": "intent", "at": 1.0})
    store.append("r1", 0, [started(), Event("all", "", (check, intent))], 1.0)
    assert store.checks("r1") == store.checks("r1", "0") == [record]
    assert store.checks("r1", "1") == []
    effect = store.effect("r1:0:commit")
    assert effect is not None
    assert effect["state"] == "intent"
    receipt = Put("outbox", ("r1:0:commit",), {"state": "done", "receipt": "abc"})
    store.append("r1", 1, [Event("done", "", (receipt,))], 2.0)
    effect = store.effect("r1:0:commit")
    assert effect is not None
    assert (effect["state"], effect["receipt"], effect["kind"]) == ("done", "abc", "commit")
    assert store.effect("unknown") is None
    assert [row["key"] for row in store.rows("outbox", "r1")] == ["r1:0:commit"]
    with pytest.raises(ValueError, match="not a table of state"):
        store.rows("sqlite_master", "r1")


def test_threads_have_a_connection_each_and_close_ends_them_all(path: Path) -> None:
    store = open_store(path)
    store.append("r1", 0, [started()], 1.0)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                store.observe("r1", "0", "tool", {"name": "read_file"}, 1.0)
                store.load("r1")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(store.observations("r1", 1_000)) == 160
    late = threading.Thread(target=work)
    late.start()
    late.join()
    # The connections of threads that ended were closed when the late one opened its own.
    assert len(store.db._open) == 2
    store.close()
    assert not Path(f"{path}-wal").exists(), "the last connection out copies the log back"


def test_an_estimate_comes_from_history_or_says_unknown(store: RunStore) -> None:
    store.append("r1", 0, [started(items=4)], 1.0)
    assert store.estimate("/w") == "unknown: no item was finished here yet"
    puts = [
        Put("items", ("r1", str(n)), {"state": state, "tokens": tokens, "iteration": n + 1})
        for n, tokens in enumerate((1_000, 3_000, 900_000))
        for state in ("CLAIMED", "DONE")
    ]
    store.append("r1", 1, [Event("all", "", tuple(puts))], 1.0)
    assert store.estimate("/w") == "3,000 tokens and 2 turns an item (median of 3)"
    assert store.estimate("/x").startswith("unknown")
