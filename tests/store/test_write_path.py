"""The one write path: compare-and-set, legal edges, named evidence, nothing written on refusal."""

from __future__ import annotations

import sqlite3
from itertools import product
from pathlib import Path

import pytest

from rage_plugin.core.errors import IllegalTransition, Refused, StaleWrite
from rage_plugin.core.events import GENESIS, Event, Put
from rage_plugin.core.model import ItemState
from rage_plugin.core.phases import ITEM_EDGES
from rage_plugin.store import RunStore, open_store

from .ticks import evidence, run_row, started


def dump(store: RunStore) -> list[str]:
    """Everything in the database, as SQL."""
    with sqlite3.connect(store.db.path) as connection:
        lines = list(connection.iterdump())
    connection.close()
    return lines


def test_a_tick_bumps_the_version_and_chains_its_events(store: RunStore) -> None:
    """F012: what a phase rests on and the move itself are in one transaction."""
    assert store.head("r1") == GENESIS
    assert store.append("r1", 0, [started()], 1.0) == 1
    moved = Event(
        "phase",
        "Reviewed",
        (evidence("r1", "e1", "review"), Put("runs", ("r1",), {"phase": "analyze"})),
        ("e1",),
    )
    assert store.append("r1", 1, [moved, Event("turn", "One turn")], 2.0) == 2
    run = store.run("r1")
    assert run is not None
    assert (run.phase, run.version, run.title) == ("analyze", 2, "Five")
    events = store.events("r1")
    assert [(e.seq, e.version, e.kind) for e in events] == [
        (1, 1, "run_started"),
        (2, 2, "phase"),
        (3, 2, "turn"),
    ]
    assert events[1].event == moved
    assert store.head("r1") == events[-1].hash
    assert [e.id for e in store.evidence("r1", "0")] == ["e1"]


def test_a_lost_race_writes_nothing(store: RunStore, path: Path) -> None:
    """F094: compare-and-set on the version; the loser reads again and decides anew."""
    store.append("r1", 0, [started()], 1.0)
    other = open_store(path)
    other.append("r1", 1, [Event("turn", "Theirs")], 2.0)
    before = dump(store)
    for expected in (0, 1, 3):
        with pytest.raises(StaleWrite, match="is at version 2 and not at"):
            store.append("r1", expected, [Event("turn", "Ours")], 3.0)
    with pytest.raises(StaleWrite):
        store.append("unknown", 1, [Event("turn", "Ours")], 3.0)
    assert dump(store) == before
    other.close()


@pytest.mark.parametrize(("source", "to"), list(product(ItemState, ItemState)))
def test_only_the_eleven_edges_of_an_item_can_be_written(
    store: RunStore, source: ItemState, to: ItemState
) -> None:
    """F092: every pair of states; what is no edge raises and leaves the database as it was."""
    version = 1
    store.append("r1", 0, [started()], 1.0)
    for state in {
        ItemState.PENDING: [],
        ItemState.CLAIMED: ["CLAIMED"],
        ItemState.IN_PROGRESS: ["CLAIMED", "IN_PROGRESS"],
        ItemState.DONE: ["CLAIMED", "DONE"],
        ItemState.FAILED: ["CLAIMED", "FAILED"],
        ItemState.SKIPPED: ["SKIPPED"],
    }[source]:
        event = Event("item", "Walk there", (Put("items", ("r1", "0"), {"state": state}),))
        version = store.append("r1", version, [event], 2.0)
    before = dump(store)
    event = Event("item", "Move", (Put("items", ("r1", "0"), {"state": to}),))
    if source is to or (source, to) in ITEM_EDGES:
        store.append("r1", version, [Event("turn", "First"), event], 3.0)
        assert store.load("r1").items["0"].state is to
    else:
        with pytest.raises(IllegalTransition):
            store.append("r1", version, [Event("turn", "First"), event], 3.0)
        assert dump(store) == before


def test_an_item_cannot_be_born_done(store: RunStore) -> None:
    born = Put("items", ("r1", "9"), {"position": 9, "title": "Nine", "state": "DONE"})
    with pytest.raises(IllegalTransition):
        store.append("r1", 0, [started(), Event("item", "Nine", (born,))], 1.0)
    assert store.run("r1") is None


def test_a_phase_moves_on_named_evidence_only(store: RunStore) -> None:
    """F025: without evidence, with a made-up id, or with another run's, nothing is written."""
    store.append("r1", 0, [started()], 1.0)
    store.append("r2", 0, [started("r2", "/other")], 1.0)
    there = Event("observed", "Seen", (evidence("r2", "theirs", "review"),), ("theirs",))
    store.append("r2", 1, [there], 2.0)
    before = dump(store)
    to_analyze = Put("runs", ("r1",), {"phase": "analyze"})
    for named in ((), ("invented",), ("theirs",)):
        with pytest.raises(IllegalTransition):
            store.append("r1", 1, [Event("phase", "Trust me", (to_analyze,), named)], 3.0)
    assert dump(store) == before
    end = Put("runs", ("r1",), {"phase": "done", "status": "done"})
    assert store.append("r1", 1, [Event("run_done", "Nothing to do", (end,))], 3.0) == 2


def test_one_active_run_a_workspace(store: RunStore) -> None:
    """A second run is refused by name, paused or active; after a stop it may begin."""
    store.append("r1", 0, [started()], 1.0)
    with pytest.raises(Refused, match=r"Run r1 on #5 is active .*embedded, session s1"):
        store.append("r2", 0, [started("r2")], 2.0)
    pause = Event("run_paused", "Lunch", (Put("runs", ("r1",), {"status": "paused"}),))
    store.append("r1", 1, [pause], 3.0)
    with pytest.raises(Refused, match="is paused"):
        store.append("r2", 0, [started("r2")], 4.0)
    stop = Event("run_stopped", "Enough", (Put("runs", ("r1",), {"status": "stopped"}),))
    store.append("r1", 2, [stop], 5.0)
    assert store.active_run("/w") is None
    assert store.append("r2", 0, [started("r2")], 6.0) == 1
    again = Event("resumed", "Back", (Put("runs", ("r1",), {"status": "active"}),))
    with pytest.raises(IllegalTransition, match="stopped does not become active"):
        store.append("r1", 3, [again], 7.0)
    active, last = store.active_run("/w"), store.last_run("/w")
    assert active is not None
    assert last is not None
    assert (active.id, last.id) == ("r2", "r2")


@pytest.mark.parametrize("end", ["stopped", "done", "failed"])
@pytest.mark.parametrize("later", ["active", "paused", "stopped", "done", "failed"])
def test_the_end_of_a_run_is_absorbing(store: RunStore, end: str, later: str) -> None:
    """F142: no later event, whatever it calls itself, opens a run again."""
    store.append("r1", 0, [started()], 1.0)
    over = Event(f"run_{end}", "Over", (Put("runs", ("r1",), {"status": end}),))
    store.append("r1", 1, [over], 2.0)
    event = Event("resumed", "Back", (Put("runs", ("r1",), {"status": later}),))
    if later == end:
        store.append("r1", 2, [event], 3.0)
    else:
        with pytest.raises(IllegalTransition):
            store.append("r1", 2, [event], 3.0)
    run = store.run("r1")
    assert run is not None
    assert run.status == end


def test_a_pause_ends_by_a_resume_alone(store: RunStore) -> None:
    """F142: a late tick's event does not make a paused run active."""
    store.append("r1", 0, [started()], 1.0)
    pause = Event("run_paused", "Lunch", (Put("runs", ("r1",), {"status": "paused"}),))
    store.append("r1", 1, [pause], 2.0)
    active = (Put("runs", ("r1",), {"status": "active"}),)
    with pytest.raises(IllegalTransition, match="by a person's word"):
        store.append("r1", 2, [Event("turn", "Late", active)], 3.0)
    store.append("r1", 2, [Event("resumed", "Back", active)], 4.0)


@pytest.mark.parametrize(
    "put",
    [
        Put("events", ("r1", 1), {"body": "forged"}),
        Put("ledger", ("s1", 1), {"bytes": 0}),
        Put("sqlite_master", ("runs",), {"sql": ""}),
        Put("items; DROP TABLE runs", ("r1", "0"), {}),
        Put("items", ("r1", "0"), {"title = 'x' --": "y"}),
        Put("items", ("r1", "0"), {"nonsense": 1}),
        Put("items", ("r2", "0"), {"title": "another run's"}),
        Put("runs", ("r2",), run_row("/elsewhere")),
        Put("evidence", ("theirs",), {"data": "forged"}),
        Put("evidence", ("e9",), {"run": "r2", "item": "0", "kind": "review"}),
        Put("items", ("r1",), {"title": "half a key"}),
        Put("items", ("r1", "0"), {"id": "1"}),
    ],
    ids=lambda put: f"{put.table} {put.key} {list(put.values)}",
)
def test_a_put_outside_the_run_or_the_schema_is_a_bug(store: RunStore, put: Put) -> None:
    store.append("r1", 0, [started()], 1.0)
    store.append("r2", 0, [started("r2", "/other")], 1.0)
    store.append("r2", 1, [Event("seen", "", (evidence("r2", "theirs", "review"),))], 1.0)
    before = dump(store)
    with pytest.raises(ValueError):
        store.append("r1", 1, [Event("turn", "ok"), Event("odd", "no", (put,))], 2.0)
    assert dump(store) == before


@pytest.mark.parametrize(
    "put",
    [
        Put("runs", ("r1",), {"status": "finished"}),
        Put("runs", ("r1",), {"current_item": "77"}),
        Put("items", ("r1", "0"), {"verification": "maybe"}),
        Put("slices", ("s",), {"item": "77", "objective": "o", "scope": "[]"}),
        Put("outbox", ("k",), {"kind": "commit", "state": "sent", "at": 1.0}),
    ],
    ids=lambda put: f"{put.table} {list(put.values)}",
)
def test_the_database_itself_refuses_unknown_words_and_dangling_keys(
    store: RunStore, put: Put
) -> None:
    """F006: typed columns; a check or a foreign key that fails takes the whole tick with it."""
    store.append("r1", 0, [started()], 1.0)
    before = dump(store)
    with pytest.raises(sqlite3.IntegrityError):
        store.append("r1", 1, [Event("odd", "no", (put,))], 2.0)
    assert dump(store) == before


def test_rows_of_one_tick_may_come_in_any_order(store: RunStore) -> None:
    puts = (
        Put("gates", ("g",), {"item": "0", "slice": "s", "target": "t", "origin": "given"}),
        Put(
            "slices",
            ("s",),
            {"item": "0", "objective": "o", "scope": "[]", "origin": "agent", "plan_version": 1},
        ),
    )
    current = Put("runs", ("r1",), {"current_item": "0"})
    event = Event("all", "At once", (*puts, *started().puts, current))
    store.append("r1", 0, [event], 1.0)
    state = store.load("r1")
    assert state.slice is not None
    assert [g.id for g in state.gates] == ["g"]


def test_a_name_that_is_not_utf8_survives_in_the_log(store: RunStore) -> None:
    odd = b"caf\xe9 \xff\n.py".decode("utf-8", "surrogateescape")
    event = Event("turn", odd, (Put("items", ("r1", "0"), {"reason": odd}),), data={"p": odd})
    store.append("r1", 0, [started(), event], 1.0)
    assert store.events("r1")[1].event == event
    assert store.load("r1").items["0"].reason == "caf\\udce9 \\udcff\n.py"
    assert store.verify_chain("r1") == []
    assert store.rebuild("r1") == []


def test_a_tick_without_events_is_a_bug(store: RunStore) -> None:
    with pytest.raises(ValueError, match="nothing to write"):
        store.append("r1", 0, [], 1.0)
    with pytest.raises(ValueError, match="must set its row in runs"):
        store.append("r1", 0, [Event("turn", "No run")], 1.0)
