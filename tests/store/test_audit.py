"""The chain shows every change to the log, and the log rebuilds every table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rage_plugin.audit_command import verify
from rage_plugin.core.errors import IllegalTransition, RageError
from rage_plugin.core.events import GENESIS, Event, Put
from rage_plugin.core.fold import apply
from rage_plugin.core.model import ItemState, RunState
from rage_plugin.store import RunStore, open_store
from rage_plugin.store.write_path import STATE_TABLES

from .ticks import correction, evidence, failure, gate, observed, run_row, slice_, started


@contextmanager
def forging(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody with the same user id and sqlite3 on the command line."""
    connection = sqlite3.connect(path, isolation_level=None)
    for table in ("events", "ledger"):
        for verb in ("update", "delete"):
            connection.execute(f"DROP TRIGGER {table}_no_{verb}")
    yield connection
    connection.close()


@pytest.fixture
def head(store: RunStore) -> str:
    """A run of five events in four ticks; the head that its report would have printed."""
    store.append("r1", 0, [started()], 1.0)
    store.append("r1", 1, [observed("e1")], 2.0)
    both = [observed("e2"), Event("turn", "Turn 1 ended")]
    store.append("r1", 2, both, 3.0)
    store.append("r1", 3, [Event("turn", "Turn 2 ended")], 4.0)
    return store.head("r1")


def test_an_untouched_log_holds(store: RunStore, head: str) -> None:
    assert store.verify_chain("r1", head) == []
    assert store.rebuild("r1") == []


def test_a_time_that_the_database_spells_differently_holds(store: RunStore) -> None:
    """SQLite gives -0.0 back as 0.0: what is hashed is what will be read."""
    store.append("r1", 0, [started()], -0.0)
    store.ledger.add("s1", "inactive", -0.0)
    assert store.verify_chain("r1") == []
    assert store.ledger.verify("s1") == []


@pytest.mark.parametrize(
    ("forgery", "problem"),
    [
        ("UPDATE events SET body = replace(body, 'Seen', 'Sawn') WHERE seq = 2", "2 was altered"),
        ("UPDATE events SET kind = 'person' WHERE seq = 3", "3 was altered"),
        ("UPDATE events SET at = at + 1 WHERE seq = 1", "1 was altered"),
        ("UPDATE events SET hash = prev WHERE seq = 5", "5 was altered"),
        ("DELETE FROM events WHERE seq = 2", "event 2 is missing"),
        ("DELETE FROM events WHERE seq = 1", "event 1 is missing"),
        ("UPDATE events SET seq = 10 - seq WHERE seq IN (4, 6)", "event 4 is missing"),
        ("UPDATE events SET version = 9 WHERE seq = 5", "jumps from version 3 to 9"),
        ("DELETE FROM events WHERE seq = 5", "the run is at version 4, its last event is of 3"),
        ("UPDATE runs SET version = 7", "the run is at version 7"),
        ("DELETE FROM events", "event"),
    ],
)
def test_every_change_to_the_log_is_named(
    store: RunStore, path: Path, head: str, forgery: str, problem: str
) -> None:
    """F136, law 3: altered, moved and missing rows."""
    with forging(path) as connection:
        connection.execute(forgery)
    found = store.verify_chain("r1", head)
    assert problem in " | ".join(found)


def test_two_rows_that_changed_places_are_named(store: RunStore, path: Path, head: str) -> None:
    with forging(path) as connection:
        connection.execute("UPDATE events SET seq = 99 WHERE seq = 2")
        connection.execute("UPDATE events SET seq = 2 WHERE seq = 3")
        connection.execute("UPDATE events SET seq = 3 WHERE seq = 99")
    assert "event 2 does not follow the event before it" in store.verify_chain("r1")


def test_a_tail_cut_off_with_its_version_needs_the_head(
    store: RunStore, path: Path, head: str
) -> None:
    """A consistent forgery of log and runs row: the head that a report printed tells it."""
    with forging(path) as connection:
        connection.execute("DELETE FROM events WHERE seq = 5")
        connection.execute("UPDATE runs SET version = 3")
    assert store.verify_chain("r1") == []
    assert "the log ends at" in store.verify_chain("r1", head)[0]


def test_a_missing_run_is_a_problem(store: RunStore) -> None:
    assert store.verify_chain("r9") == ["there is no run r9"]
    assert "does not follow" not in " ".join(store.verify_chain("r9", GENESIS))


@pytest.mark.parametrize(
    ("forgery", "problem"),
    [
        ("UPDATE items SET verification = 'pass' WHERE id = '1'", "verification is 'pass'"),
        ("UPDATE runs SET limits = '{\"x\": 1}'", "limits is"),
        ("DELETE FROM evidence WHERE id = 'e2'", "evidence e2 is missing"),
        (
            "INSERT INTO evidence VALUES ('e9', 'r1', '0', 'judgement', 't', '{}', 1.0)",
            "evidence e9 comes from no event",
        ),
    ],
)
def test_a_row_that_no_event_made_is_named(
    store: RunStore, path: Path, head: str, forgery: str, problem: str
) -> None:
    """Law 4: evidence that was put into the tables by hand is not in the log."""
    with forging(path) as connection:
        connection.execute(forgery)
    assert problem in " | ".join(store.rebuild("r1"))
    assert store.verify_chain("r1", head) == []


def test_a_log_that_cannot_be_folded_says_where(store: RunStore, path: Path, head: str) -> None:
    with forging(path) as connection:
        connection.execute("UPDATE events SET body = '{' WHERE seq = 3")
        assert "cannot be folded at version 3" in store.rebuild("r1")[0]
        connection.execute("DELETE FROM events WHERE seq = 1")
        assert "cannot be folded at version 1" in store.rebuild("r1")[0]


def test_the_audit_in_words_and_as_json(store: RunStore, path: Path, head: str) -> None:
    """F048: `rage audit verify`, for a person and for a script."""
    store.close()
    told, data = verify(path, None, head)
    assert told == f"intact: 1 run, 5 events, head {head}; nothing was altered, moved or cut"
    assert (data["ok"], data["problems"], data["head"]) == (True, [], head)
    with forging(path) as connection:
        connection.execute("UPDATE events SET body = replace(body, 'Seen', 'Sawn') WHERE seq = 2")
    told, data = verify(path, "r1", None)
    assert data["ok"] is False
    lines = told.splitlines()
    assert lines[0] == f"NOT intact: {len(data['problems'])} problems"
    assert "  run r1: event 2 was altered" in lines
    assert [line for line in lines if line.startswith("  next: mv ")]


def test_no_database_is_one_line_and_a_database_that_is_gone_a_problem(
    store: RunStore, path: Path, head: str, tmp_path: Path
) -> None:
    with pytest.raises(RageError, match="no run was recorded"):
        verify(tmp_path / "rage" / "rage.db", None, None)
    assert not (tmp_path / "rage").exists()
    store.close()
    path.unlink()
    assert verify(path, None, None)[1]["problems"] == [f"{path} is not there"]


def test_bytes_that_are_no_text_are_a_problem_of_the_run(
    store: RunStore, path: Path, head: str
) -> None:
    with forging(path) as connection:
        connection.execute("UPDATE events SET body = CAST(X'7bff' AS TEXT) WHERE seq = 3")
        connection.execute("UPDATE items SET title = CAST(X'ff' AS TEXT) WHERE id = '1'")
    assert "the log of run r1 cannot be read" in " ".join(store.verify_chain("r1", head))
    assert "the log cannot be folded" in " ".join(store.rebuild("r1"))


text = st.text(max_size=20)
number = st.integers(-(2**40), 2**40)
real = st.floats(allow_nan=True, allow_infinity=True)
ITEMS = ("0", "1", "2")


class Ticks(RuleBasedStateMachine):
    """Any sequence of ticks: tables, log and the fold in memory stay the same thing."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.store = open_store(Path(self.folder.name) / "rage.db")
        self.version = self.store.append("r1", 0, [started(items=len(ITEMS))], 0.0)
        self.store.append("r2", 0, [started("r2", "/other")], 0.0)
        self.keys = (f"k{n}" for n in count())
        self.state: RunState | None = self.store.load("r1")
        self.slices: list[str] = []

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def tick(self, *events: Event, at: float = 1.0) -> None:
        self.version = self.store.append("r1", self.version, events, at)
        for event in events:
            self.state = apply(self.state, event)

    @rule(item=st.sampled_from(ITEMS), to=st.sampled_from(ItemState), why=text)
    def move_item(self, item: str, to: ItemState, why: str) -> None:
        event = Event("item", why, (Put("items", ("r1", item), {"state": to}),))
        before = self.store.head("r1")
        try:
            self.tick(event)
        except IllegalTransition:
            assert self.store.head("r1") == before

    @rule(item=st.sampled_from(ITEMS), count=number, reason=text, tokens=number)
    def work(self, item: str, count: int, reason: str, tokens: int) -> None:
        self.tick(
            Event("turn", reason, (Put("items", ("r1", item), {"iteration": count}),)),
            Event("turn", "", (Put("items", ("r1", item), {"reason": reason, "tokens": tokens}),)),
        )

    @rule(values=st.fixed_dictionaries({}, optional={"active_seconds": number, "title": text}))
    def change_run(self, values: dict[str, int | str]) -> None:
        self.tick(Event("run", "", (Put("runs", ("r1",), values),), data=values))

    @rule(item=st.sampled_from(ITEMS))
    def begin(self, item: str) -> None:
        self.tick(Event("item_began", "", (Put("runs", ("r1",), {"current_item": item}),)))

    @rule(tree=st.sampled_from("abc"), kind=st.sampled_from(["judgement", "change"]), at=real)
    def observe(self, tree: str, kind: str, at: float) -> None:
        key = next(self.keys)
        row = evidence("r1", key, kind, self.current, tree)
        self.tick(Event("observed", "", (row,), (key,)), at=at if at == at else 0.0)

    @precondition(lambda self: self.state.run.current_item is not None)
    @rule(gates=st.integers(0, 3))
    def slice(self, gates: int) -> None:
        key = next(self.keys)
        old = self.state.slice if self.state else None
        puts = [Put("slices", (old.id,), {"superseded": 1})] if old else []
        puts.append(slice_(key, self.current))
        puts += [gate(next(self.keys), key, self.current) for _ in range(gates)]
        self.tick(Event("slice", "", tuple(puts)))

    @precondition(lambda self: self.state.run.current_item is not None)
    @rule(message=text)
    def fail(self, message: str) -> None:
        at = float(self.version)
        self.tick(Event("failed", "", (failure(next(self.keys), self.current, message, at),)))

    @rule()
    def correct(self) -> None:
        self.tick(Event("corrected", "", (correction(self.version),)))

    @property
    def current(self) -> str:
        return (self.state and self.state.run.current_item) or "0"

    @invariant()
    def tables_log_and_memory_agree(self) -> None:
        assert self.store.rebuild("r1") == []
        assert self.store.rebuild("r2") == []
        assert self.store.verify_chain("r1", self.store.head("r1")) == []
        loaded = self.store.load("r1")
        assert self.state is not None
        assert loaded.run.version == self.version
        assert loaded.items == self.state.items
        assert loaded.run.current_item == self.state.run.current_item


TestTicks = Ticks.TestCase
TestTicks.settings = settings(
    max_examples=12,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.tuples(text, text, number), min_size=1, max_size=4), max_size=4))
def test_any_batches_are_rebuilt_and_any_text_survives(
    batches: list[list[tuple[str, str, int]]],
) -> None:
    """F026: the log gives back the events exactly as they were decided."""
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "rage.db")
        written = [Event("run_started", "", (Put("runs", ("r1",), run_row()),))]
        version = store.append("r1", 0, written, 0.0)
        for batch in batches:
            events = [
                Event(
                    kind, why, (Put("runs", ("r1",), {"title": why, "tokens": n}),), data={"n": n}
                )
                for kind, why, n in batch
            ]
            version = store.append("r1", version, events, 1.5)
            written += events
        assert [row.event for row in store.events("r1")] == written
        assert store.verify_chain("r1", store.head("r1")) == []
        assert store.rebuild("r1") == []
        store.close()


def test_rebuild_compares_every_table_of_state(store: RunStore, path: Path) -> None:
    """A table that the comparison forgot would let a forged row pass."""
    store.append("r1", 0, [started(items=1)], 1.0)
    rows = {
        "items": "('r1', 'x', 9, 'T')",
        "claims": "('r1', '0', 'h', 's', 1, 1.0)",
    }
    names = {
        "items": "(run, id, position, title)",
        "claims": "(run, item, host, session, fence, at)",
    }
    with forging(path) as connection:
        for table in set(STATE_TABLES) - {"runs"}:
            if table not in rows:
                info = connection.execute(f"PRAGMA table_info({table})").fetchall()
                needed = [c for c in info if c[3] and c[4] is None]
                names[table] = f"({', '.join(c[1] for c in needed)})"
                known = {"run": "'r1'", "item": "'0'", "verdict": "'pass'", "state": "'done'"}
                rows[table] = f"({', '.join(known.get(c[1], '0') for c in needed)})"
            connection.execute(f"INSERT INTO {table} {names[table]} VALUES {rows[table]}")
    problems = store.rebuild("r1")
    for table in set(STATE_TABLES) - {"runs"}:
        assert any(p.startswith(f"{table} ") and "no event" in p for p in problems), table
