"""The golden logs: what they hold, that they are today's, and that they replay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from rage_plugin.core.fold import apply
from rage_plugin.core.model import RunState
from rage_plugin.core.phases import PHASE_EDGES
from rage_plugin.core.replay import replay, replayed
from rage_plugin.store import open_store

from ..core.simulated import RUN, Logged
from .make import FOLDER, lines, read
from .scenarios import SCENARIOS

NOT_COMPARABLE = {"more_tests_fail_than_the_log_names": 2}
"""Ticks of a log that saw more than it keeps."""
UNREACHED = {"delegation", "test"}
"""Evidence that nothing gives yet."""


def golden(name: str) -> list[Logged]:
    return list(read((FOLDER / f"{name}.jsonl").read_text("utf-8")))


def folded(rows: list[Logged]) -> list[tuple[RunState | None, Logged, RunState]]:
    """Each event between the states before and after it."""
    steps, state = [], None
    for row in rows:
        after = apply(state, row.event)
        steps.append((state, row, after))
        state = after
    return steps


def test_each_scenario_has_its_log() -> None:
    """F026: a log that no scenario writes any more is no golden log."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(SCENARIOS)
    assert len(SCENARIOS) >= 12


@pytest.mark.parametrize("name", SCENARIOS)
def test_golden_log(name: str) -> None:
    """F026: the log is what the run would write today, and replays to the same decisions."""
    text = (FOLDER / f"{name}.jsonl").read_text("utf-8")
    assert lines(SCENARIOS[name]()) == text, "python -m tests.golden.make, then read the diff"
    done = replay(read(text))
    assert done.differences == ()
    assert done.skipped == NOT_COMPARABLE.get(name, 0)
    assert done.ticks == text.count('"kind": "tick"')
    assert done.decisions > done.ticks


def test_the_logs_take_every_step_and_every_edge() -> None:
    """F025, F026: each phase edge, by each kind of evidence for it that there is today."""
    edges, kinds, ends = set(), set(), set()
    for name in SCENARIOS:
        steps = folded(golden(name))
        rows = {}
        for before, row, after in steps:
            kinds.add(row.event.kind)
            rows |= {p.key[0]: p.values["kind"] for p in row.event.puts if p.table == "evidence"}
            if before is None or before.run.phase is after.run.phase or not row.event.evidence:
                continue
            known = {rows[e] for e in row.event.evidence}
            edge = (before.run.phase, after.run.phase)
            edges |= {(edge, kind) for kind in known & PHASE_EDGES.get(edge, frozenset())}
        for _, tick in groupby(steps, key=lambda step: step[1].version):
            last = list(tick)[-1]
            ends.add((last[2].run.status, last[1].event.kind))
    wanted = {(edge, kind) for edge, known in PHASE_EDGES.items() for kind in known - UNREACHED}
    assert edges == wanted
    assert kinds >= {
        *("tick", "phase", "judged", "turn", "intent", "item_began", "item_done"),
        *("item_unverified", "item_failed", "reasked", "approach_refused", "budget_alert"),
        *("budget_reached", "corrected", "ruled", "confirmed", "criteria_adopted", "limits"),
        *("resumed", "ground_moved", "run_paused", "run_stopped", "run_done"),
    }
    assert ("active", "turn") in ends, "the agent went on"
    assert ("active", "item_began") in ends


def test_the_logs_pass_through_a_real_database(tmp_path: Path) -> None:
    """F026, F160: what SQLite gives back of each log replays as the log itself."""
    for name in SCENARIOS:
        store = open_store(tmp_path / name / "rage.db")
        try:
            rows = golden(name)
            for version, events in groupby(rows, key=lambda row: row.version):
                several = list(events)
                store.append(RUN, version - 1, [r.event for r in several], several[0].at)
            read_back = store.events(RUN)
            assert [(r.seq, r.version) for r in read_back] == [(r.seq, r.version) for r in rows]
            assert replay(read_back) == replay(rows), name
            assert replayed(read_back)[1]["same"]
        finally:
            store.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("retired_approach_comes_back_with_a_new_candidate", "proposal"),
        ("retired_approach_comes_back_by_a_correction", "correction"),
        ("retired_approach_comes_back_by_another_error", "judgement"),
    ],
)
def test_a_retired_approach_names_what_opened_it_again(name: str, kind: str) -> None:
    """F014: the row of the approach names newer evidence, which is in the log before it."""
    kinds: dict[object, object] = {}
    retired, again = [], []
    for row in golden(name):
        for put in row.event.puts:
            if put.table == "evidence":
                kinds[put.key[0]] = put.values["kind"]
            if put.table == "approaches" and put.values.get("status") == "retired":
                retired.append((put.key, kinds[put.values["retired_by"]]))
            if put.table == "approaches" and put.values.get("readmitted_by"):
                again.append((put.key, kinds[put.values["readmitted_by"]]))
    assert retired[0][1] == "judgement"
    assert again == [(retired[0][0], kind)]


def test_no_hash_seed_changes_anything() -> None:
    """F015, F026: another process with another hash seed writes and replays the same bytes."""
    code = (
        "import hashlib; from tests.golden.make import *; from rage_plugin.core.replay import *\n"
        "for name, make in SCENARIOS.items():\n"
        "    text = lines(make())\n"
        "    print(name, hashlib.sha256(text.encode()).hexdigest(), replay(read(text)))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=FOLDER.parent.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "4242")
    }
    assert len(said) == 1
    assert said.pop().count("differences=()") == len(SCENARIOS)


def test_events_are_small() -> None:
    """F048: a usual tick says what it saw in far less than 1.5 KB."""
    sizes = [
        len(json.dumps(json.loads(line)["body"], ensure_ascii=False).encode())
        for name in SCENARIOS
        for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
        if json.loads(line)["kind"] == "tick"
    ]
    assert max(sizes) < 500
