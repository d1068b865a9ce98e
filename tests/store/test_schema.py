"""The tables against the nouns of `core/model.py`, and the views that people read."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from dataclasses import fields
from enum import StrEnum
from pathlib import Path

import pytest

from rage_plugin.core.events import Event, Put
from rage_plugin.core.judgement import CheckRecord, Verdict
from rage_plugin.core.model import (
    Evidence,
    Gate,
    Item,
    ItemState,
    Phase,
    Run,
    RunStatus,
    Slice,
    Verification,
)
from rage_plugin.store import RunStore, open_store
from rage_plugin.store.db import SCHEMA_VERSION
from rage_plugin.store.schema import MIGRATIONS, VIEWS
from rage_plugin.store.write_path import STATE_TABLES

from .ticks import approach, correction, evidence, failure, gate, observed, slice_, started


def columns(store: RunStore, table: str) -> list[str]:
    return store.db.read(
        lambda c: [row[0] for row in c.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    )


@pytest.mark.parametrize(
    ("table", "noun"),
    [("runs", Run), ("items", Item), ("slices", Slice), ("gates", Gate), ("evidence", Evidence)],
)
def test_a_table_has_the_columns_of_its_noun(store: RunStore, table: str, noun: type) -> None:
    """F006: every group of state is a table with typed columns."""
    assert set(columns(store, table)) == {f.name for f in fields(noun)}


def test_checks_have_the_columns_of_a_check_record(store: RunStore) -> None:
    expected = {f.name for f in fields(CheckRecord)} | {"id", "run", "item", "at"}
    assert set(columns(store, "checks")) == expected


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("runs", "status", RunStatus),
        ("runs", "phase", Phase),
        ("items", "state", ItemState),
        ("items", "verification", Verification),
        ("checks", "verdict", Verdict),
    ],
)
def test_the_checks_of_the_tables_know_the_words_of_the_nouns(
    store: RunStore, table: str, column: str, words: type[StrEnum]
) -> None:
    sql = store.db.read(
        lambda c: c.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    )
    found = re.search(rf"CHECK \(\s*{column} IN \(([^)]*)\)", sql)
    assert found is not None
    assert set(re.findall(r"'(\w+)'", found[1])) == {str(word) for word in words}


def test_every_state_table_is_there_and_the_version_counts_the_migrations(
    store: RunStore,
) -> None:
    for table in STATE_TABLES:
        assert columns(store, table), table
    assert len(MIGRATIONS._migrations) == SCHEMA_VERSION


def test_the_views_read_well(store: RunStore) -> None:
    moved = observed("e1")
    store.append("r1", 0, [started(), moved], 0.0)
    store.ledger.add("s1", "packet", 1.0, run="r1", bytes=10, tokens=3)
    for view in VIEWS:
        store.db.read(lambda c, view=view: c.execute(f"SELECT * FROM {view}").fetchall())
    timeline = store.db.read(lambda c: [dict(r) for r in c.execute("SELECT * FROM v_timeline")])
    assert timeline[1] == {
        "run": "r1",
        "seq": 2,
        "utc": "1970-01-01 00:00:00",
        "kind": "observed",
        "why": "Seen",
        "evidence": '["e1"]',
    }
    runs = store.db.read(lambda c: dict(c.execute("SELECT * FROM v_runs").fetchone()))
    assert (runs["target"], runs["items"], runs["done"]) == ("#5", 2, 0)


def test_a_current_database_opens_without_the_heavy_library(path: Path) -> None:
    """Only a database that must be migrated imports sqlite_utils."""
    program = (
        "import sys; from pathlib import Path; from rage_plugin.store import open_store;"
        "open_store(Path(sys.argv[1])).close(); print('sqlite_utils' in sys.modules)"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert answers == ["True", "False"]


def test_no_read_or_write_of_a_tick_scans_a_table(store: RunStore) -> None:
    """The cost of a tick stays flat: every statement of it goes through an index."""
    statements: list[str] = []
    connection = store.db._durable()
    connection.set_trace_callback(statements.append)
    puts = (
        Put("runs", ("r1",), {"current_item": "0"}),
        evidence("r1", "e1", "review"),
        slice_("s1", "0"),
        gate("g1", "s1"),
        failure("f1", "0", "m", 1.0),
        correction(1),
        approach("a1", "0", 1.0, None),
        Put("items", ("r1", "0"), {"state": "CLAIMED"}),
        Put("claims", ("r1", "0"), {"host": "h", "session": "s", "fence": 1, "at": 1.0}),
        Put("outbox", ("k",), {"kind": "commit", "state": "intent", "at": 1.0}),
    )
    store.append("r1", 0, [started(), Event("all", "Everything", puts, ("e1",))], 1.0)
    store.load("r1")
    store.active_run("/w")
    store.head("r1")
    store.effect("k")
    connection.set_trace_callback(None)
    queries = [s for s in statements if s.split()[0] in ("SELECT", "UPDATE", "INSERT")]
    assert len(queries) > 30
    for query in queries:
        plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
        assert not [step for step in plan if step.startswith("SCAN")], (query, plan)


def test_two_processes_may_create_the_database_at_once(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from rage_plugin.store import open_store;"
        "open_store(Path(sys.argv[1])).close()"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [child.communicate()[1] for child in children] == [b""] * 4
    store = open_store(path)
    assert store.runs("/w") == []
    store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
