"""The one write path: events in, rows out, under compare-and-set, inside the caller's transaction.

Everything that changes state comes through `write`; `audit.rebuild` runs the same function on an
empty database to prove that the tables say what the log says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import IllegalTransition, Refused, StaleWrite
from ..core.events import GENESIS, Event, Put, Scalar, encode, link
from ..core.model import ItemState, RunStatus
from ..core.phases import check_item_edge, check_run_edge

STATE_TABLES = (
    "runs",
    "items",
    "slices",
    "gates",
    "evidence",
    "approaches",
    "failures",
    "checks",
    "blockers",
    "corrections",
    "checkpoints",
    "workers",
    "claims",
    "outbox",
)
"""The tables that a `Put` may name: all that follows from events, and nothing else."""


@dataclass(frozen=True, slots=True)
class Table:
    """What a `Put` on a table is checked against."""

    columns: frozenset[str]
    key: tuple[str, ...]
    """Primary key columns in order."""
    owner: str
    """The column that names the run."""


Schema = Mapping[str, Table]


def read_schema(connection: sqlite3.Connection) -> Schema:
    """The columns and keys of the state tables, as the database itself tells them."""
    schema = {}
    for name in STATE_TABLES:
        info = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        keyed = sorted((pk, column) for column, pk in info if pk)
        schema[name] = Table(
            columns=frozenset(column for column, _ in info),
            key=tuple(column for _, column in keyed),
            owner="id" if name == "runs" else "run",
        )
    return schema


def write(
    connection: sqlite3.Connection,
    schema: Schema,
    run: str,
    expected_version: int,
    events: Sequence[Event],
    at: float,
) -> int:
    """Append the events and set their rows; the run's new version.

    Raises `StaleWrite` when the run moved on, `IllegalTransition` for an edge that does not exist
    or names no evidence, `Refused` when another run holds the workspace; then the caller rolls
    back. `ValueError` is a bug of the caller.
    """
    if not events:
        raise ValueError("a tick without an event has nothing to write")
    found = connection.execute("SELECT version FROM runs WHERE id = ?", (run,)).fetchone()
    present = found[0] if found else 0
    if present != expected_version:
        raise StaleWrite(
            f"Run {run} is at version {present} and not at {expected_version}: "
            "another process wrote first",
            kept="Nothing was written",
            next="rage status",
        )
    version = expected_version + 1
    last = connection.execute(
        "SELECT seq, hash FROM events WHERE run = ? ORDER BY seq DESC LIMIT 1", (run,)
    ).fetchone()
    seq, previous = last or (0, GENESIS)
    for event in events:
        seq += 1
        # A name that is not UTF-8 stays readable: `\udcff` is its JSON escape as well.
        kind, body = _utf8(event.kind), _utf8(encode(event))
        digest = link(previous, run, seq, at, kind, body, version)
        connection.execute(
            "INSERT INTO events (run, seq, version, at, kind, body, prev, hash)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (run, seq, version, at, kind, body, previous, digest),
        )
        previous = digest
        for put in event.puts:
            _put(connection, schema, run, put, event)
        _check_evidence(connection, run, event)
    done = connection.execute("UPDATE runs SET version = ? WHERE id = ?", (version, run))
    if done.rowcount != 1:
        raise ValueError(f"the first event of run {run} must set its row in runs")
    return version


def _put(connection: sqlite3.Connection, schema: Schema, run: str, put: Put, event: Event) -> None:
    table = _checked(schema, run, put)
    where = " AND ".join(f"{_quoted(column)} = ?" for column in table.key)
    key = [_storable(value) for value in put.key]
    row = connection.execute(
        f"SELECT * FROM {put.table} WHERE {where}",  # noqa: S608 - names are checked
        key,
    ).fetchone()
    if row is not None and row[table.owner] != run:
        raise ValueError(f"{put.table} {put.key} belongs to run {row[table.owner]}, not to {run}")
    present = dict(row) if row is not None else None
    if put.table == "items" and "state" in put.values:
        _check_state(present, put)
    if put.table == "runs" and "phase" in put.values:
        _check_phase(present, put, event)
    if put.table == "runs" and "status" in put.values and present is not None:
        to = str(put.values["status"])
        if to in RunStatus.__members__.values():  # any other word the database itself refuses
            check_run_edge(RunStatus(str(present["status"])), RunStatus(to), event.kind)
    values = {column: _storable(value) for column, value in put.values.items()}
    try:
        if present is None:
            _insert(
                connection,
                put.table,
                {table.owner: run, **dict(zip(table.key, key, strict=True)), **values},
            )
        elif values:
            names = ", ".join(f"{_quoted(column)} = ?" for column in values)
            connection.execute(
                f"UPDATE {put.table} SET {names} WHERE {where}",  # noqa: S608 - names are checked
                [*values.values(), *key],
            )
    except sqlite3.IntegrityError as error:
        if str(error) == "UNIQUE constraint failed: runs.workspace":
            raise _held(connection, {**(present or {}), **values}["workspace"]) from error
        raise


def _checked(schema: Schema, run: str, put: Put) -> Table:
    table = schema.get(put.table)
    if table is None:
        raise ValueError(f"{put.table!r} is not a table of state")
    unknown = sorted(set(put.values) - table.columns)
    if unknown:
        raise ValueError(f"{put.table} has no column {', '.join(map(repr, unknown))}")
    if len(put.key) != len(table.key):
        raise ValueError(f"the key of {put.table} is {table.key}, got {put.key}")
    named = {**put.values, **dict(zip(table.key, put.key, strict=True))}
    if named.get(table.owner, run) != run:
        raise ValueError(f"run {run} may not write a row of run {named[table.owner]}")
    if any(put.values.get(c, k) != k for c, k in zip(table.key, put.key, strict=True)):
        raise ValueError(f"{put.table} {put.key}: a row's key does not change")
    return table


def _insert(connection: sqlite3.Connection, table: str, values: Mapping[str, Scalar]) -> None:
    names = ", ".join(map(_quoted, values))
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608 - names are checked
        list(values.values()),
    )


def _check_state(present: Mapping[str, Scalar] | None, put: Put) -> None:
    """A row that is not there counts as PENDING, so an item cannot be born DONE (F092)."""
    source = ItemState(str(present["state"])) if present else ItemState.PENDING
    to = ItemState(str(put.values["state"]))
    if to is not source:
        check_item_edge(source, to)


def _check_phase(present: Mapping[str, Scalar] | None, put: Put, event: Event) -> None:
    """A phase moves on named evidence only (F025); the end of a run follows from its items."""
    if present is None or put.values["phase"] == present["phase"] or event.evidence:
        return
    if put.values.get("status") != "done":
        raise IllegalTransition(
            f"{present['phase']} → {put.values['phase']} names no evidence ({event.kind})"
        )


def _check_evidence(connection: sqlite3.Connection, run: str, event: Event) -> None:
    for evidence in event.evidence:
        row = connection.execute(
            "SELECT 1 FROM evidence WHERE id = ? AND run = ?", (_storable(evidence), run)
        ).fetchone()
        if row is None:
            raise IllegalTransition(f"{event.kind} names evidence {evidence}, which {run} has not")


def _held(connection: sqlite3.Connection, workspace: Scalar) -> Refused:
    holder = connection.execute(
        "SELECT id, target, status, host, session FROM runs"
        " WHERE workspace = ? AND status IN ('active', 'paused')",
        (workspace,),
    ).fetchone()
    return Refused(
        f"Run {holder['id']} on {holder['target']} is {holder['status']} in this workspace "
        f"({holder['host']}, session {holder['session'] or 'without a name'})",
        kept="It goes on as it was",
        next="rage status, or rage stop",
    )


def _storable(value: Scalar) -> Scalar:
    return _utf8(value) if isinstance(value, str) else value


def _utf8(text: str) -> str:
    """SQLite's text is UTF-8: bytes of a file name that are not stand as `\\udc..` escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _quoted(column: str) -> str:
    return f'"{column}"'
