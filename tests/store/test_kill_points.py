"""kill -9 at every place of a run of 21 steps: each write, sync, truncation, creation, deletion.

The first opening with its migration, copies of the log back into the database, notes without a
sync, and the closing are among the places.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .script import STEPS

SHARDS = 6


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_run_goes_on_wherever_its_process_was_killed(shard: int) -> None:
    """F007: 100 % resume; no acknowledged step lost, none taken twice, no half of one kept."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.killed", str(shard), str(SHARDS)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "hides the functions" in done.stderr:
        pytest.skip("this Python hides the functions of its SQLite")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    calls = sum((Counter(line["calls"]) for line in lines if "calls" in line), Counter())
    points = [line for line in lines if "calls" not in line]
    for point in points:
        assert point["wrong"] == [], point
        assert point["end"] == STEPS, point
        assert point["acknowledged"] <= point["found"] <= point["acknowledged"] + 1, point
    print(f"{len(points)} places of {dict(calls)}")
    assert len(points) * SHARDS > calls.total()
    assert calls["sync wal"] > STEPS, calls
    assert calls["write wal"] > 20 * STEPS, calls
    assert min(calls[kind] for kind in ("write db", "sync db", "truncate wal", "delete wal")), calls
