"""`rage run` is killed with SIGKILL and typed again: it goes on, and no effect takes place twice.

Around the second item's commit at every place, elsewhere at every twelfth;
`RAGE_CRASH_POINTS=all` takes every commit of the database and every git command that writes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .crashing import ITEMS, PARTS

SHARDS = 3
LAST = "after the last commit of the database"
EVERYTHING = os.environ.get("RAGE_CRASH_POINTS", "some")


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.timeout(3600 if EVERYTHING == "all" else 600)
def test_a_killed_run_goes_on_with_the_same_command(shard: int) -> None:
    """F007: 100 % resume, one commit an item, the report is what git and the log say."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.crashing", str(shard), str(SHARDS), EVERYTHING],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    whole, *points = [json.loads(line) for line in done.stdout.splitlines()]
    assert whole["steps"] >= 15
    assert len(points) >= 2
    print(f"{len(points)} of {len(whole['places'])} places, {whole['steps']} steps")
    for point in points:
        last = point["place"] == len(whole["places"])
        where = LAST if last else f"{point['place']}, {whole['places'][point['place'] - 1]}"
        print(where)
        check(point, where)


def check(point: dict[str, Any], where: str) -> None:
    result, told = point["result"], f"{where}: {point['said']}"
    assert (point["exit"], result["status"]) == ([0, 0], "done"), told
    assert point["wrong"] == [], told
    if point["acknowledged"] is not None:
        assert point["acknowledged"]["head"] in point["hashes"], "an acknowledged step is lost"
    # No effect twice, none missing, and each is reported as it is.
    made = [[item, point["run"], "verified"] for item in ITEMS]
    assert [commit[1:] for commit in point["commits"]] == made, told
    assert point["parts"] == ["line\n" * PARTS] * len(ITEMS), told
    assert point["dirty"] == "", told
    assert point["status"] == "done", told
    if where is LAST:
        # All was recorded, and only the report was not told.
        assert result["reason"].startswith("Nothing to do"), told
        return
    assert (result["run"], result["head"]) == (point["run"], point["hashes"][-1]), told
    reported = [(i["id"], i["status"], i["commits"]) for i in result["items"]]
    assert reported == [(item, "done", [commit]) for commit, item, *_ in point["commits"]], told
    # The turn in which it was killed is taken again, or counted with the next one; no other is.
    assert abs(result["iterations"] - PARTS * len(ITEMS)) <= 1, told
