"""The audit of a whole database: the file, its schema, every log and every table, and the notes.

Apart from `db.py` since it must be able to look at what that refuses to open, and change nothing.
So the file is opened for reading only: then SQLite neither copies a log back nor deletes one. It
may write an index of the log (`-shm`) beside the file; where the folder does not allow that, a
copy is looked at. `immutable=1` is no way, it would not look at the log at all.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from ..core.errors import RageError
from ..core.oneline import one_line
from .audit import fresh, problems, rebuild, verify_chain
from .db import BUSY_SECONDS, SCHEMA_VERSION
from .heads import LEDGER, OBSERVATIONS, SEAL, Head, Heads, note_of
from .ledger import verify_ledger, verify_observations

_LINE = 400
"""Characters of one problem: the values of a damaged row may be long."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit found; nothing is wrong where `problems` is empty."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    """What could not be proven, or is no fault; one line each."""
    runs: int
    events: int
    head: str
    """Hash of the last event of the run asked for, else of the event that was written last."""
    seconds: float


@dataclass(slots=True)
class _Findings:
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    events: int = 0
    head: str = ""


def inspect(path: Path, run: str | None = None, head: str | None = None) -> AuditResult:
    """Look at all of the database at `path`, or at the file and one run (its id or how it begins).

    With `head`, the hash that a report printed, a tail that was dropped and a log that was written
    anew are found even where the notes beside the database were changed to match. Raises
    `RageError` where another process keeps the database locked.
    """
    began = time.monotonic()
    found = _Findings()
    heads = Heads(path)
    # Before the snapshot: what is noted was committed, so the snapshot holds it.
    noted = {name: heads.read(name) for name in heads.names()}
    problem = _unopenable(path)
    if problem is not None:
        found.problems.append(problem)
    else:
        try:
            _inspect(path, heads, noted, (run, head), found)
        except sqlite3.OperationalError as error:
            raise RageError(
                f"Another process keeps {path} locked ({error})",
                kept="Nothing was changed",
                next="rage audit verify",
            ) from error
    return AuditResult(
        tuple(one_line(text, _LINE) for text in found.problems),
        tuple(one_line(text, _LINE) for text in found.notes),
        len(found.runs),
        found.events,
        found.head,
        time.monotonic() - began,
    )


def _unopenable(path: Path) -> str | None:
    """Why SQLite must not be let at the file: it would throw the log of an empty one away."""
    try:
        if not path.is_file():
            return f"{path} is not there"
        if path.stat().st_size == 0:
            return f"{path} is empty"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return None


def _inspect(
    path: Path,
    heads: Heads,
    noted: dict[str, Head | None],
    asked: tuple[str | None, str | None],
    found: _Findings,
) -> None:
    with ExitStack() as stack:
        connection, refusal = _snapshot(path, stack)
        if connection is None:
            found.problems.append(f"{path} cannot be read: {refusal}")
            return
        found.problems += problems("the file", lambda: _file(connection, path))
        found.problems += problems("the schema", lambda: _schema(connection, found.notes))
        found.problems += problems("the runs", lambda: _runs(connection, asked, found))
        for run in found.runs:
            if asked[0] is None or run.startswith(asked[0]):
                lines = (*verify_chain(connection, run, None), *rebuild(connection, run))
                found.problems += [t if run in t else f"run {run}: {t}" for t in lines]
        found.problems += problems("the ledger", lambda: verify_ledger(connection))
        found.problems += problems("the observations", lambda: verify_observations(connection))
        found.problems += problems("the notes", lambda: _noted(connection, noted, found))
        found.problems += problems("the seal", lambda: _sealed(connection, path, heads, found))


def _snapshot(path: Path, stack: ExitStack) -> tuple[sqlite3.Connection | None, Exception | None]:
    """One snapshot to read all of; None and the reason where there is nothing to be had."""
    connection, refusal = _opened(path)
    if refusal is not None and _is(refusal, sqlite3.SQLITE_CANTOPEN):
        # No lock of ours is lost by reading the file: nobody can write in such a folder.
        copy = Path(stack.enter_context(TemporaryDirectory(prefix="rage-audit-"))) / "rage.db"
        try:
            for part in ("", "-wal"):
                source = Path(f"{path}{part}")
                if source.exists():
                    shutil.copyfile(source, f"{copy}{part}")
        except OSError as error:
            return None, error
        connection, refusal = _opened(copy)
    if connection is not None:
        stack.enter_context(closing(connection))
    return connection, refusal


def _opened(path: Path) -> tuple[sqlite3.Connection | None, Exception | None]:
    connection = None
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            timeout=BUSY_SECONDS,
        )
        connection.row_factory = sqlite3.Row
        # Bytes that are no text stay visible, and no hash fits them.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        connection.executescript("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, UnicodeError) as error:  # SQLite's message may quote what is damaged
        if connection is not None:
            connection.close()
        if _is(error, sqlite3.SQLITE_BUSY) or _is(error, sqlite3.SQLITE_LOCKED):
            raise
        return None, error
    return connection, None


def _is(error: Exception, code: int) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == code


def _file(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    """What SQLite itself can tell, and what a database of ours never is."""
    for name, due in (
        ("journal_mode", "wal"),
        ("encoding", "UTF-8"),
        ("application_id", 0),
        ("auto_vacuum", 0),
    ):
        value = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if value != due:
            yield f"the file's {name.replace('_', ' ')} is {value} and not {due}"
    if Path(f"{path}-journal").exists():
        yield f"{path}-journal lies there: SQLite would write it over the database"
    for (line,) in connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"SQLite says: {line}"
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} belongs to a row of {parent} that is not there"


def _schema(connection: sqlite3.Connection, notes: list[str]) -> Iterator[str]:
    """Whether tables, indices, views and triggers are those that the migrations make."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if not 0 < version <= SCHEMA_VERSION:
        yield f"the schema's version is {version}; this RAGE knows 1 to {SCHEMA_VERSION}"
        return
    if version < SCHEMA_VERSION:
        notes.append(f"the schema is an older one ({version}); the next start brings it up to date")
    with closing(sqlite3.connect(":memory:")) as due:
        due.deserialize(fresh(version))
        wanted, migrations = _entries(due), _applied(due)
    for name, entry in _entries(connection).items():
        if name[1].startswith("sqlite_stat"):
            notes.append(f"{name[1]} is there: somebody ran ANALYZE, which changes no row of ours")
        elif name not in wanted:
            yield f"{name[0]} {name[1]} is not one of RAGE's"
        elif entry != wanted.pop(name):
            yield f"{name[0]} {name[1]} is not as RAGE made it: {entry[1]}"
    for kind, absent in wanted:
        yield f"{kind} {absent} is missing"
    applied = _applied(connection)
    if [row[:-1] for row in applied] != [row[:-1] for row in migrations]:
        yield f"the table of migrations names {[row[2] for row in applied]}"
    for _, _, migration, at in applied:
        if datetime.fromisoformat(at).utcoffset() is None:
            yield f"migration {migration} was applied at {at}, which is no time"


def _entries(connection: sqlite3.Connection) -> dict[tuple[str, str], tuple[str, str]]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    return {(kind, name): (table, sql) for kind, name, table, sql in connection.execute(query)}


def _applied(connection: sqlite3.Connection) -> list[tuple[int, str, str, str]]:
    query = "SELECT id, migration_set, name, applied_at FROM _sqlite_migrations ORDER BY id"
    return [(row[0], row[1], row[2], row[3]) for row in connection.execute(query)]


def _runs(
    connection: sqlite3.Connection, asked: tuple[str | None, str | None], found: _Findings
) -> Iterator[str]:
    """Which runs there are, by their rows and by their events; and where the head asked for is."""
    run, head = asked
    query = (
        "SELECT id FROM runs UNION ALL"
        " SELECT DISTINCT run FROM events WHERE run NOT IN (SELECT id FROM runs)"
    )
    for (known,) in connection.execute(query):
        if isinstance(known, str):
            found.runs.append(known)
        else:
            yield f"a run is called {known!r}, which is no text"
    query = "SELECT count(*), coalesce(max(rowid), 0) FROM events"
    found.events, last = connection.execute(query).fetchone()
    if found.events != last:
        yield f"there are {found.events} events, and the last one is number {last}: rows are gone"
    named = [known for known in found.runs if run is None or known.startswith(run)]
    if run is not None and len(named) != 1:
        yield f"there {'are several runs' if named else 'is no run'} {run}"
    # A run's numbers go up with the order of writing.
    query = (
        "SELECT hash FROM events WHERE run IN (SELECT value FROM json_each(?))"
        " ORDER BY rowid DESC LIMIT 1"
    )
    newest = connection.execute(query, (json.dumps(named),)).fetchone()
    found.head = str(newest[0]) if newest else ""
    if head is not None:
        yield from _told(connection, head.strip().lower(), named, found)


def _told(
    connection: sqlite3.Connection, head: str, runs: list[str], found: _Findings
) -> Iterator[str]:
    """Where the head that a report printed stands."""
    query = (
        "SELECT run, (SELECT max(seq) FROM events later WHERE later.run = events.run) - seq"
        " FROM events WHERE hash = ?"
    )
    held = [row for row in connection.execute(query, (head,)) if row[0] in runs]
    if not held:
        yield (
            f"no log holds the head {head[:12]}: the end of its log was cut off, "
            "it was written anew, or the head is not typed as the report prints it"
        )
    elif held[0][1]:
        found.notes.append(f"run {held[0][0]} went on for {held[0][1]} events after the head given")


def _noted(
    connection: sqlite3.Connection, noted: dict[str, Head | None], found: _Findings
) -> Iterator[str]:
    """Whether the logs hold what is noted of them beside the database."""
    logs = {note_of(run): run for run in found.runs}
    bare = [run for name, run in logs.items() if name not in noted]
    if bare:
        found.notes.append(
            f"no head is noted beside the database for run {', '.join(bare[:5])}"
            f"{'…' if len(bare) > 5 else ''}: that its end is whole, the head in a report tells"
        )
    for name, head in noted.items():
        if head is None:
            found.notes.append(
                f"head note {name} cannot be read: a tail cannot be proven by it, "
                "compare the head in a report"
            )
        elif name in (LEDGER, OBSERVATIONS):
            table, number, hashed = (
                ("ledger", "rowid", "hash") if name == LEDGER else ("observations", "id", "digest")
            )
            query = f"SELECT {hashed} FROM {table} WHERE {number} = ?"  # noqa: S608 - our names
            row = connection.execute(query, (head.seq,)).fetchone()
            if row is not None and row[0] == head.hash:
                continue
            line = f"{table}: row {head.seq} was written and is not there as it was"
            if head.of_this_boot:
                yield f"{line}: its end was cut off, or the database is an older copy"
            else:
                found.notes.append(f"{line}; a power cut may lose the last rows of this table")
        elif name in logs:
            query = "SELECT hash FROM events WHERE run = ? AND seq = ?"
            row = connection.execute(query, (logs[name], head.seq)).fetchone()
            if row is None or row[0] != head.hash:
                yield (
                    f"run {logs[name]}: event {head.seq} was acknowledged and is not in the log "
                    f"as it was (heads/{name}): the log's end was cut off, the write-ahead log is "
                    "gone, or the database is an older copy"
                )
        elif name != SEAL:
            yield f"a run with {head.seq} events was acknowledged (heads/{name}) and is not there"


def _sealed(
    connection: sqlite3.Connection, path: Path, heads: Heads, found: _Findings
) -> Iterator[str]:
    """Whether the file is byte for byte as the last process left it."""
    seal = heads.read(SEAL)
    if seal is None:
        found.notes.append(
            "the database is open, or was not closed in order: bytes that hold no row "
            "were not compared"
        )
        return
    image = connection.serialize()
    size = path.stat().st_size
    whole = len(image) == size and hashlib.sha256(image).hexdigest() == seal.hash
    # The seal is taken away before the first write; so a writer that came meanwhile shows.
    if not whole and heads.read(SEAL) == seal:
        yield (
            "the file is not as RAGE left it when it was last closed: the disk changed it, "
            "or another program wrote to it"
        )
