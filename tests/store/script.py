"""A run of some twenty steps, word for word as the product itself wrote it, to be written again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from benchmarks.rehearsal import RUN, Rehearsal
from rage_plugin.core.events import GENESIS, Event
from rage_plugin.store import RunStore, open_store

ITEMS, TURNS = 4, 4
STEPS = 1 + ITEMS * (TURNS + 1)
"""The start; then a tick a turn, and one more for the intent of each commit."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one transaction of the run holds, and the log's head after it."""

    events: Sequence[Event]
    at: float
    head: str


def record(folder: Path) -> list[Step]:
    """Items, slices, gates, checks, failures, approaches, evidence and commits of four items."""
    store = open_store(folder / "recorded.db")
    rehearsal = Rehearsal(store, ITEMS, TURNS)
    for _ in range(ITEMS * TURNS):
        state = rehearsal.tick()
    assert state.run.status == "done"
    steps = []
    for _, rows in groupby(store.events(RUN), key=attrgetter("version")):
        tick = list(rows)
        steps.append(Step([row.event for row in tick], tick[0].at, tick[-1].hash))
    store.close()
    assert len(steps) == STEPS
    return steps


def head_at(steps: Sequence[Step], version: int) -> str:
    """The log's head when a run stands at a version."""
    return steps[version - 1].head if version else GENESIS


def version_of(store: RunStore) -> int:
    """Where the run stands; 0 before its first step."""
    run = store.run(RUN)
    return run.version if run else 0


def problems(store: RunStore, steps: Sequence[Step]) -> list[str]:
    """How a store differs from one that took the first steps of the run and nothing else."""
    version = version_of(store)
    found = []
    if version:
        found += [*store.verify_chain(RUN, head_at(steps, version)), *store.rebuild(RUN)]
    with sqlite3.connect(store.db.path) as connection:
        damage = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    connection.close()
    return found + [line for line in damage if line != "ok"]
