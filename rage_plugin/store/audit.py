"""Proof that log and tables agree: the chain of hashes, and a rebuild of every row from the log.

One run at a time, on any connection, also one to a damaged file: what cannot be read is a problem
like any other. `inspection.py` puts the proofs of a whole database together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter

from ..core.errors import RageError
from ..core.events import GENESIS, Event, Scalar, decode, link
from .write_path import STATE_TABLES, Table, read_schema, write

GARBAGE = (
    sqlite3.Error,
    RageError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
)
"""What reading, decoding or folding rows of a damaged database may raise."""
MANY = 20
"""Problems of one kind before the rest are counted only."""


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
    it) tells it always, and a log that was written anew. The log may have gone on since the report.
    """
    return problems(f"the log of run {run}", lambda: _breaks(connection, run, head))


def rebuild(connection: sqlite3.Connection, run: str) -> Sequence[str]:
    """Where the tables differ from what the log says, one line each; empty when they agree.

    The log is folded into an empty database by the code that wrote the tables.
    """
    return problems(f"the state of run {run}", lambda: _rebuilt(connection, run))


def problems(what: str, check: Callable[[], Iterable[str]]) -> list[str]:
    """The lines of a check, at most `MANY` and the number of the others.

    What cannot be read is a line too; `what` names it. Raises only for a database that another
    process keeps locked, which is no fault of it.
    """
    found: list[str] = []
    more = 0
    try:
        for line in check():
            more += len(found) == MANY
            found += [line] if len(found) < MANY else []
    except GARBAGE as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_LOCKED,
        ):
            raise
        found.append(f"{what} cannot be read: {error or type(error).__name__}")
    return [*found, f"{what}: {more} more problems of this kind"] if more else found


def _breaks(connection: sqlite3.Connection, run: str, head: str | None) -> Iterator[str]:
    stored = connection.execute("SELECT version FROM runs WHERE id = ?", (run,)).fetchone()
    if stored is None:
        yield f"there is no run {run}"
    previous, seq, version = GENESIS, 0, 0
    held = head in (None, GENESIS)
    for row in read_events(connection, run):
        if row.seq != seq + 1:
            yield f"event {seq + 1} is missing: the next one is {row.seq}"
        if row.prev != previous:
            yield f"event {row.seq} does not follow the event before it"
        if not _is_whole(row):
            yield f"event {row.seq} was altered"
        if row.version != version + 1 and (row.version != version or not version):
            yield f"event {row.seq} jumps from version {version} to {row.version}"
        previous, seq, version = row.hash, row.seq, row.version
        held = held or previous == head
    if stored is not None and stored[0] != version:
        yield f"the run is at version {stored[0]}, its last event is of {version}"
    if not held:
        yield (
            f"the log ends at {previous[:12]} and nowhere holds the head {str(head)[:12]}: "
            "its end was cut off, or it was written anew"
        )


def _is_whole(row: StoredEvent) -> bool:
    """Whether the row's hash is the hash of its columns."""
    types = [type(getattr(row, name)) for name in StoredEvent.__slots__]
    if types != [str, int, int, float, str, str, str, str]:
        return False
    columns = (row.prev, row.run, row.seq, row.at, row.kind, row.body)
    return row.hash in (link(*columns, row.version), link(*columns))


def _rebuilt(connection: sqlite3.Connection, run: str) -> Iterator[str]:
    migrations = connection.execute("PRAGMA user_version").fetchone()[0]
    scratch = sqlite3.connect(":memory:", isolation_level=None)
    scratch.row_factory = sqlite3.Row
    try:
        scratch.deserialize(fresh(migrations))
        schema = read_schema(scratch)
        ticks = groupby(read_events(connection, run), key=attrgetter("version"))
        scratch.execute("BEGIN")
        for version, (_, rows) in enumerate(ticks):
            try:
                events = list(rows)
                write(scratch, schema, run, version, [row.event for row in events], events[0].at)
            except GARBAGE as error:
                yield f"the log cannot be folded at version {version + 1}: {error}"
                return
        for table in STATE_TABLES:
            yield from _differences(connection, scratch, table, schema[table], run)
    finally:
        scratch.close()


def _differences(
    stored: sqlite3.Connection, rebuilt: sqlite3.Connection, name: str, table: Table, run: str
) -> Iterator[str]:
    query = f"SELECT * FROM {name} WHERE {table.owner} = ? ORDER BY rowid"  # noqa: S608 - our names
    kept, told = (
        {tuple(row[c] for c in table.key): dict(row) for row in connection.execute(query, (run,))}
        for connection in (stored, rebuilt)
    )
    for key in kept.keys() - told.keys():
        yield f"{name} {_shown(key)} comes from no event"
    for key, row in told.items():
        if key not in kept:
            yield f"{name} {_shown(key)} is missing"
            continue
        for column, value in row.items():
            found = kept[key].get(column)
            if found != value or type(found) is not type(value):
                yield f"{name} {_shown(key)}: {column} is {found!r}, the log says {value!r}"
    if kept.keys() == told.keys() and list(kept) != list(told):
        yield f"{name}: the rows stand in another order than they were written in"


def _shown(key: tuple[Scalar, ...]) -> str:
    return " ".join(map(str, key))


@cache
def fresh(migrations: int) -> bytes:
    """A new database after so many of the migrations, as the bytes of its file."""
    from sqlite_utils import Database  # noqa: PLC0415 - heavy, and only an audit needs it

    from .schema import MIGRATIONS  # noqa: PLC0415

    made = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database = Database(made, execute_plugins=False)
        names = [m.name for m in MIGRATIONS.pending(database)]
        MIGRATIONS.apply(database, stop_before=names[migrations:])
        made.execute(f"PRAGMA user_version = {migrations}")
        return made.serialize()
    finally:
        made.close()
