"""The ledger of model calls: chained a session, summed a run, never state, never a sync."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rage_plugin.store import RunStore, open_store

from .ticks import started


def fill(store: RunStore) -> None:
    store.append("r1", 0, [started()], 1.0)
    add = store.ledger.add
    add("s1", "inactive", 1.0, calls=7)
    add("s1", "brief", 2.0, run="r1", bytes=4_000, tokens=1_000, phase="analyze", iteration=1)
    add("s1", "packet", 3.0, run="r1", bytes=400, tokens=100, phase="analyze", input_tokens=9_000)
    add("s2", "packet", 4.0, run="r1", bytes=600, tokens=150, phase="generate", estimated=True)
    add("s1", "packet", 5.0, run="r1", bytes=480, tokens=120, phase="analyze", output_tokens=50)
    add("s1", "call", 6.0, run="r1", purpose="side", input_tokens=300)
    add("s1", "inactive", 7.0, calls=2)


def test_sums_by_run_phase_and_kind(store: RunStore) -> None:
    """F027, F136: injected bytes and tokens by source, the peak and the calls' own usage."""
    fill(store)
    sums = {(s.run, s.kind, s.phase): s for s in store.ledger.summary()}
    idle = sums[None, "inactive", ""]
    assert (idle.calls, idle.bytes, idle.tokens) == (9, 0, 0)
    packets = sums["r1", "packet", "analyze"]
    assert (packets.calls, packets.bytes, packets.tokens) == (2, 880, 220)
    assert (packets.peak_tokens, packets.input_tokens, packets.output_tokens) == (120, 9_000, 50)
    assert sums["r1", "packet", "generate"].estimated == 1
    assert {s.kind for s in store.ledger.summary(run="r1")} == {"packet", "brief", "call"}
    assert [s.tokens for s in store.ledger.summary(session="s2")] == [150]
    assert [r.seq for r in store.ledger.rows(session="s1")] == [1, 2, 3, 4, 5, 6]
    assert [r.session for r in store.ledger.rows(run="r1")] == ["s1", "s1", "s2", "s1", "s1"]
    assert store.ledger.sessions() == ["s1", "s2"]


def test_the_chain_of_a_session_holds_across_processes(store: RunStore, path: Path) -> None:
    fill(store)
    other = open_store(path)
    other.ledger.add("s1", "packet", 8, run="r1", bytes=1, tokens=1)
    other.close()
    assert store.ledger.verify("s1") == []
    assert store.ledger.verify("s2") == []
    assert store.ledger.verify("never seen") == []


@pytest.mark.parametrize(
    ("forgery", "problem"),
    [
        ("UPDATE ledger SET bytes = 1 WHERE seq = 2", "row 2 was altered"),
        ("UPDATE ledger SET calls = 1 WHERE seq = 1", "row 1 was altered"),
        ("UPDATE ledger SET at = 9.0 WHERE seq = 3", "row 3 was altered"),
        ("UPDATE ledger SET run = NULL WHERE seq = 4", "row 4 was altered"),
        ("DELETE FROM ledger WHERE session = 's1' AND seq = 3", "row 3 is missing: found row 4"),
        ("UPDATE ledger SET prev = hash WHERE seq = 5", "row 5 does not follow"),
    ],
)
def test_a_forged_row_is_named(store: RunStore, path: Path, forgery: str, problem: str) -> None:
    """F136: verifiable."""
    fill(store)
    with sqlite3.connect(path) as connection:
        connection.executescript("DROP TRIGGER ledger_no_update; DROP TRIGGER ledger_no_delete")
        connection.execute(forgery)
    connection.close()
    assert problem in " | ".join(store.ledger.verify("s1"))
    assert store.ledger.verify("s2") == []


def test_a_row_of_the_past_cannot_be_changed(store: RunStore, path: Path) -> None:
    """Append-only by the database itself: whoever changes a row has to remove the trigger first."""
    fill(store)
    connection = sqlite3.connect(path)
    for statement in (
        "UPDATE ledger SET bytes = 1",
        "DELETE FROM ledger",
        "UPDATE events SET body = '{}'",
        "DELETE FROM events",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("kind", ["inactive", "call"])
def test_an_idle_row_cannot_hold_bytes(store: RunStore, kind: str) -> None:
    """F136: idle rows are 0."""
    with pytest.raises(sqlite3.IntegrityError):
        store.ledger.add("s1", kind, 1.0, bytes=1)
    with pytest.raises(sqlite3.IntegrityError):
        store.ledger.add("s1", "advertisement", 1.0)
    assert store.ledger.rows() == []


def test_observations_are_kept_and_change_no_state(store: RunStore) -> None:
    store.append("r1", 0, [started()], 1.0)
    before = store.load("r1"), store.head("r1")
    for number in range(5):
        store.observe("r1", "0", "tool", {"name": "read_file", "n": number}, float(number))
    assert (store.load("r1"), store.head("r1")) == before
    assert [o["data"] for o in store.observations("r1", 2)] == [
        {"name": "read_file", "n": 3},
        {"name": "read_file", "n": 4},
    ]
    assert store.rebuild("r1") == []
