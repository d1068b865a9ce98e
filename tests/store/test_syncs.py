"""One sync a tick, none for an observation, checkpoints apart; and what an event costs on disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rage_plugin.core.events import Event, Put
from rage_plugin.store import RunStore, db, open_store

from .syncs import SyncCounter
from .ticks import evidence, failure, started

TICK = """
import sys
from pathlib import Path
from rage_plugin.core.events import Event, Put
from rage_plugin.store import open_store
store = open_store(Path(sys.argv[1]))
version = store.run("r1").version
for number in range(version, version + int(sys.argv[2])):
    row = {"item": "0", "kind": "change", "tree": "t", "data": "{}", "at": 1.0}
    puts = (Put("evidence", (f"e{number}",), row), Put("runs", ("r1",), {"iteration": number}))
    store.append("r1", number, [Event("phase", "why", puts, (f"e{number}",))], 1.0)
    store.observe("r1", "0", "tool", {"name": "read_file"}, 1.0)
    store.load("r1")
"""


def tick(store: RunStore, number: int) -> None:
    """What a turn's end typically records."""
    key = f"{number:012x}"
    row = evidence("r1", key, "change", "0", f"{number:040x}")
    puts = (
        row,
        Put("runs", ("r1",), {"iteration": number, "tokens": 900 * number, "noop_turns": 0}),
        Put("items", ("r1", "0"), {"iteration": number, "tokens": 900 * number}),
    )
    why = "3 files changed for 5 and the gates of its slice can be run"
    event = Event("phase", why, puts, (key,), {"from": "generate", "to": "execute"})
    store.append("r1", number, [event], 1_700_000_000.25 + number)


def test_a_tick_is_one_sync_and_an_observation_none(store: RunStore) -> None:
    store.append("r1", 0, [started()], 1.0)
    durable, quick = SyncCounter(store.db._durable()), SyncCounter(store.db._quick())
    for number in range(1, 51):
        tick(store, number)
        assert (durable.log, durable.database) == (number, 0)
    for number in range(50):
        store.observe("r1", "0", "tool", {"name": "read_file"}, float(number))
        store.ledger.add("s1", "packet", float(number), run="r1", bytes=9, tokens=3)
        store.load("r1")
    assert (durable.log, durable.database, quick.log, quick.database) == (50, 0, 0, 0)
    assert store.db.checkpoint() is True
    assert (quick.log, quick.database) == (1, 1)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_kernel_sees_one_sync_a_tick(store: RunStore, path: Path, tmp_path: Path) -> None:
    """The difference between 10 and 40 ticks is 30 syncs; opening and closing cancel out."""
    store.append("r1", 0, [started()], 1.0)
    counts = []
    for ticks in ("10", "40"):
        log = tmp_path / f"strace-{ticks}"
        traced = ["strace", "-f", "-e", "trace=fsync,fdatasync,sync_file_range,msync", "-o", log]
        child = subprocess.run(
            [*traced, sys.executable, "-c", TICK, path, ticks],
            capture_output=True,
            text=True,
            check=False,
        )
        if "ptrace" in child.stderr:
            pytest.skip("tracing is not allowed here")
        assert child.returncode == 0, child.stderr
        counts.append(len(re.findall(r"sync\w*\(", log.read_text())))
    assert counts[1] - counts[0] == 30, counts


def test_the_log_is_copied_back_when_it_has_grown(
    store: RunStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flat: neither the log nor the syncs of a tick grow with the number of ticks."""
    monkeypatch.setattr(db, "WAL_LIMIT", 400_000)
    store.db._checkpoint_at = 400_000
    store.append("r1", 0, [started()], 1.0)
    copies = []
    monkeypatch.setattr(
        store.db, "checkpoint", lambda real=store.db.checkpoint: copies.append(real()) or copies[-1]
    )
    log = Path(f"{path}-wal")
    store.db._durable().execute("PRAGMA journal_size_limit = 100000")
    store.db._quick().execute("PRAGMA journal_size_limit = 100000")
    sizes = []
    for number in range(1, 200):
        tick(store, number)
        sizes.append(log.stat().st_size)
    assert max(sizes) < 500_000
    assert 3 <= len(copies) < 40
    assert all(copies)


def test_a_reader_that_stays_does_not_make_every_tick_a_checkpoint(
    store: RunStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "WAL_LIMIT", 200_000)
    store.db._checkpoint_at = 200_000
    store.append("r1", 0, [started()], 1.0)
    reader = open_store(path)
    held = reader.db._durable()
    held.execute("BEGIN")
    held.execute("SELECT count(*) FROM runs").fetchone()
    copies = []
    monkeypatch.setattr(
        store.db, "checkpoint", lambda real=store.db.checkpoint: copies.append(real()) or copies[-1]
    )
    for number in range(1, 120):
        tick(store, number)
    held.execute("ROLLBACK")
    reader.close()
    assert 1 <= len(copies) <= 30
    assert store.verify_chain("r1") == []


def test_an_event_costs_at_most_a_kilobyte_and_a_half(store: RunStore, path: Path) -> None:
    store.append("r1", 0, [started(items=20)], 1.0)
    store.db.checkpoint()
    before = path.stat().st_size
    for number in range(1, 401):
        tick(store, number)
    store.db.checkpoint()
    assert (path.stat().st_size - before) / 400 <= 1_536


def test_what_a_tick_reads_does_not_grow(store: RunStore) -> None:
    """Hundreds of turns later a load gives the same amount: the newest 20 of everything."""
    store.append("r1", 0, [started()], 1.0)
    begin = Event("begin", "", (Put("runs", ("r1",), {"current_item": "0"}),))
    store.append("r1", 1, [begin], 1.0)
    rows: list[int] = []
    for turns in (30, 300):
        for number in range(turns):
            version = store.load("r1").run.version
            put = failure(f"f{version}", "0", f"Failure {number}", float(version))
            store.append("r1", version, [Event("failed", "", (put,))], 1.0)
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        store.db._durable().set_progress_handler(count, 1)
        store.load("r1")
        store.db._durable().set_progress_handler(None, 0)
        rows.append(steps)
    assert rows[1] <= rows[0] * 1.1, rows
