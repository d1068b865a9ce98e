"""Proof that log and tables agree: the chain of hashes, and a rebuild of every row from the log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from ..core.errors import RageError
from ..core.events import GENESIS, Event, decode, link
from .write_path import STATE_TABLES, Table, read_schema, write


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A row of `events`."""

    run: str
    seq: int
    """1 for the run's first event, without gaps."""
    version: int
    """The run's version that the tick of this event made."""
    at: float
    kind: str
    body: str
    prev: str
    hash: str

    @property
    def event(self) -> Event:
        """The event as it was written."""
        return decode(self.kind, self.body)


def read_events(connection: sqlite3.Connection, run: str) -> Iterator[StoredEvent]:
    """The run's events in order, one at a time."""
    rows = connection.execute(
        "SELECT run, seq, version, at, kind, body, prev, hash FROM events"
        " WHERE run = ? ORDER BY seq",
        (run,),
    )
    return (StoredEvent(*row) for row in rows)


def verify_chain(connection: sqlite3.Connection, run: str, head: str | None) -> Sequence[str]:
    """What is wrong with a run's log, one line each: rows altered, moved, missing, or cut off.

    The runs row tells a tail that was dropped unless it was altered too; `head` (a report prints
    it) tells it always.
    """
    problems = []
    previous, seq, version = GENESIS, 0, 0
    for row in read_events(connection, run):
        if row.seq != seq + 1:
            problems.append(f"event {seq + 1} is missing: the next one is {row.seq}")
        if row.prev != previous:
            problems.append(f"event {row.seq} does not follow the event before it")
        if row.hash != link(row.prev, run, row.seq, row.at, row.kind, row.body):
            problems.append(f"event {row.seq} was altered")
        if row.version not in (version, version + 1):
            problems.append(f"event {row.seq} jumps from version {version} to {row.version}")
        previous, seq, version = row.hash, row.seq, row.version
    stored = connection.execute("SELECT version FROM runs WHERE id = ?", (run,)).fetchone()
    if stored is None:
        problems.append(f"there is no run {run}")
    elif stored[0] != version:
        problems.append(f"the run is at version {stored[0]}, its last event is of {version}")
    if head is not None and head != previous:
        problems.append(f"the log ends at {previous[:12]}, not at {head[:12]}")
    return problems


def rebuild(connection: sqlite3.Connection, run: str) -> Sequence[str]:
    """Where the tables differ from what the log says, one line each; empty when they agree.

    The log is folded into an empty database by the code that wrote the tables.
    """
    from .schema import migrate  # noqa: PLC0415 - heavy, and only an audit needs it here

    scratch = sqlite3.connect(":memory:", isolation_level=None)
    scratch.row_factory = sqlite3.Row
    try:
        migrate(scratch)
        schema = read_schema(scratch)
        ticks = groupby(read_events(connection, run), key=attrgetter("version"))
        for version, (_, rows) in enumerate(ticks):
            try:
                events = list(rows)
                write(scratch, schema, run, version, [row.event for row in events], events[0].at)
            except (RageError, ValueError, KeyError, TypeError, sqlite3.Error) as error:
                return [f"the log cannot be folded at version {version + 1}: {error}"]
        return [
            problem
            for table in STATE_TABLES
            for problem in _differences(connection, scratch, table, schema[table], run)
        ]
    finally:
        scratch.close()


def _differences(
    stored: sqlite3.Connection, rebuilt: sqlite3.Connection, name: str, table: Table, run: str
) -> Iterator[str]:
    query = f"SELECT * FROM {name} WHERE {table.owner} = ?"  # noqa: S608 - names of our own
    kept, told = (
        {
            " ".join(str(row[column]) for column in table.key): dict(row)
            for row in connection.execute(query, (run,))
        }
        for connection in (stored, rebuilt)
    )
    for key in sorted(kept.keys() | told.keys()):
        if key not in kept:
            yield f"{name} {key} is missing"
        elif key not in told:
            yield f"{name} {key} comes from no event"
        else:
            for column, value in told[key].items():
                if kept[key][column] != value:
                    yield (
                        f"{name} {key}: {column} is {kept[key][column]!r}, the log says {value!r}"
                    )
