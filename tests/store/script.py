"""A run of some twenty steps, word for word as the product itself wrote it, to be written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from benchmarks.rehearsal import RUN, Rehearsal
from rage_plugin.core.events import Event, Scalar
from rage_plugin.store import RunStore, open_store
from rage_plugin.store.inspection import inspect
from rage_plugin.store.write_path import STATE_TABLES

ITEMS, TURNS = 4, 4
STEPS = 1 + ITEMS * (TURNS + 1)
"""The start; then a tick a turn, and one more for the intent of each commit."""

Tables = Mapping[str, Sequence[Mapping[str, Scalar]]]


@dataclass(frozen=True, slots=True)
class Step:
    """What one transaction of the run holds, and how everything stands after it."""

    events: Sequence[Event]
    at: float
    head: str
    tables: Tables


def record(folder: Path) -> list[Step]:
    """Items, slices, gates, checks, failures, approaches, evidence and commits of four items."""
    store = open_store(folder / "recorded.db")
    rehearsal = Rehearsal(store, ITEMS, TURNS)
    for _ in range(ITEMS * TURNS):
        state = rehearsal.tick()
    assert state.run.status == "done"
    ticks = [list(rows) for _, rows in groupby(store.events(RUN), key=attrgetter("version"))]
    store.close()
    assert len(ticks) == STEPS
    steps, again = [], open_store(folder / "again.db")
    for version, rows in enumerate(ticks):
        events = [row.event for row in rows]
        again.append(RUN, version, events, rows[0].at)
        assert again.rebuild(RUN) == [], "the log does not tell these tables"
        steps.append(Step(events, rows[0].at, rows[-1].hash, tables(again)))
    again.close()
    return steps


def tables(store: RunStore) -> Tables:
    """Every row of the run's state."""
    return {table: store.rows(table, RUN) for table in STATE_TABLES}


def version_of(store: RunStore) -> int:
    """Where the run stands; 0 before its first step."""
    run = store.run(RUN)
    return run.version if run else 0


def differences(store: RunStore, steps: Sequence[Step]) -> list[str]:
    """How a run differs from one that took the first steps and nothing else."""
    version, found = version_of(store), []
    if version and store.head(RUN) != steps[version - 1].head:
        found.append("its log is not that of the steps")
    if version and tables(store) != steps[version - 1].tables:
        found.append("its tables are not those of the steps")
    return found


def problems(store: RunStore, steps: Sequence[Step]) -> list[str]:
    """The differences, and all that an audit of the database finds."""
    return [*differences(store, steps), *inspect(store.db.path).problems]
