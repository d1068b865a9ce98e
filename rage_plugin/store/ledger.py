"""What the model was shown: observations, and a hash-chained ledger of model calls a session.

Neither is state: both are written without a sync and no decision reads them. They are apart from
`write_path.py` for that reason.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields

from ..core.events import GENESIS
from .db import Db
from .heads import LEDGER, OBSERVATIONS, Head, Heads


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the ledger: what one model call (or an idle interval) carried of RAGE's."""

    session: str
    seq: int
    run: str | None
    kind: str
    """`packet`, `brief`, `call` (a call that carried nothing) or `inactive` (an idle interval)."""
    calls: int
    bytes: int
    """UTF-8 bytes that RAGE put into the request."""
    tokens: int
    estimated: int
    """1 where no encoding was available and `tokens` is an estimate."""
    phase: str
    purpose: str
    iteration: int
    input_tokens: int
    """The whole call's usage as the provider counted it; 0 where unknown."""
    output_tokens: int
    at: float
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class LedgerSum:
    """Ledger rows of one run, kind, phase and purpose, added up."""

    run: str | None
    kind: str
    phase: str
    purpose: str
    calls: int
    bytes: int
    tokens: int
    peak_tokens: int
    estimated: int
    """How many of the rows hold estimated tokens."""
    input_tokens: int
    output_tokens: int


_COLUMNS = tuple(f.name for f in fields(Entry))
_INSERT = f"INSERT INTO ledger ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608


class Ledger:
    """The `ledger` table; append only, one chain a session (F136)."""

    def __init__(self, db: Db, heads: Heads) -> None:
        self._db = db
        self._heads = heads

    def add(
        self,
        session: str,
        kind: str,
        at: float,
        *,
        run: str | None = None,
        calls: int = 1,
        bytes: int = 0,
        tokens: int = 0,
        estimated: bool = False,
        phase: str = "",
        purpose: str = "main",
        iteration: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Append a row. An `inactive` or `call` row with bytes is refused by the database."""

        def append(connection: sqlite3.Connection) -> Head | None:
            last = connection.execute(
                "SELECT seq, hash FROM ledger WHERE session = ? ORDER BY seq DESC LIMIT 1",
                (session,),
            ).fetchone()
            seq, prev = last or (0, GENESIS)
            values = {
                "session": session,
                "seq": seq + 1,
                "run": run,
                "kind": kind,
                "calls": calls,
                "bytes": bytes,
                "tokens": tokens,
                "estimated": int(estimated),
                "phase": phase,
                "purpose": purpose,
                "iteration": iteration,
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "at": float(at) + 0.0,  # SQLite gives -0.0 back as 0.0
                "prev": prev,
            }
            digest = _link(list(values.values()))
            written = connection.execute(_INSERT, [*values.values(), digest])
            return self._heads.next(
                LEDGER,
                Head(written.lastrowid or 0, digest),
                lambda row: connection.execute("SELECT hash FROM ledger WHERE rowid = ?", (row,)),
                synced=False,
            )

        self._heads.write(LEDGER, self._db.note(append))

    def rows(self, *, run: str | None = None, session: str | None = None) -> Sequence[Entry]:
        """Rows of a run, of a session, of both, or all; in the order they were written."""
        found = self._db.read(
            lambda c: c.execute(
                "SELECT * FROM ledger WHERE (:run IS NULL OR run = :run)"
                " AND (:session IS NULL OR session = :session) ORDER BY rowid",
                {"run": run, "session": session},
            ).fetchall()
        )
        return [Entry(**row) for row in found]

    def summary(self, *, run: str | None = None, session: str | None = None) -> Sequence[LedgerSum]:
        """Sums by run, kind, phase and purpose."""
        found = self._db.read(
            lambda c: c.execute(
                "SELECT run, kind, phase, purpose, sum(calls) AS calls, sum(bytes) AS bytes,"
                " sum(tokens) AS tokens, max(tokens) AS peak_tokens,"
                " sum(estimated) AS estimated, sum(input_tokens) AS input_tokens,"
                " sum(output_tokens) AS output_tokens FROM ledger"
                " WHERE (:run IS NULL OR run = :run)"
                " AND (:session IS NULL OR session = :session)"
                " GROUP BY run, kind, phase, purpose ORDER BY min(rowid)",
                {"run": run, "session": session},
            ).fetchall()
        )
        return [LedgerSum(**row) for row in found]

    def spent(self, run: str) -> int:
        """Input and output tokens of all calls of a run, as the providers counted them."""
        found = self._db.read(
            lambda c: c.execute(
                "SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM ledger WHERE run = ?",
                (run,),
            ).fetchone()
        )
        return int(found[0])

    def sessions(self) -> Sequence[str]:
        """Every session that has a chain."""
        found = self._db.read(
            lambda c: c.execute("SELECT DISTINCT session FROM ledger ORDER BY session").fetchall()
        )
        return [row[0] for row in found]

    def verify(self, session: str) -> Sequence[str]:
        """What is wrong with a session's chain, one line each; empty when it holds."""
        return [problem for _, problem in _breaks(self.rows(session=session))]


def verify_ledger(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong with the chains of all sessions, or that rows are gone between them."""
    rows = connection.execute("SELECT * FROM ledger ORDER BY rowid")
    for session, problem in _breaks(Entry(**dict(row)) for row in rows):
        yield f"ledger of session {session}: {problem}"
    yield from _gap(connection, "ledger", "rowid")


def observe(
    db: Db, heads: Heads, run: str, item: str, kind: str, data: dict[str, object], at: float
) -> None:
    """Record what a hook saw, e.g. a tool call, without a sync."""
    text = json.dumps(data, sort_keys=True, default=str)

    def insert(connection: sqlite3.Connection) -> Head | None:
        last = connection.execute(
            "SELECT id, digest FROM observations ORDER BY id DESC LIMIT 1"
        ).fetchone()
        number, previous = last or (0, "")
        values = [number + 1, run, item, kind, text, float(at) + 0.0]
        digest = _link([previous, *values])
        connection.execute(
            "INSERT INTO observations (id, run, item, kind, data, at, digest)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [*values, digest],
        )
        return heads.next(
            OBSERVATIONS,
            Head(number + 1, digest),
            lambda row: connection.execute("SELECT digest FROM observations WHERE id = ?", (row,)),
            synced=False,
        )

    heads.write(OBSERVATIONS, db.note(insert))


def verify_observations(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong with the chain of observations; rows from before there was one are no break."""
    columns = connection.execute("SELECT name FROM pragma_table_info('observations')")
    if "digest" not in [row[0] for row in columns]:
        return  # a database that was not opened since
    previous = ""
    query = "SELECT id, run, item, kind, data, at, digest FROM observations ORDER BY id"
    for *values, digest in connection.execute(query):
        if (digest or previous) and digest != _link([previous, *values]):
            yield f"observation {values[0]} was altered, or does not follow the one before it"
        previous = digest
    yield from _gap(connection, "observations", "id")


def observations(db: Db, run: str, limit: int) -> Sequence[dict[str, object]]:
    """The newest observations of a run, oldest first, with `data` decoded."""
    found = db.read(
        lambda c: c.execute(
            "SELECT item, kind, data, at FROM observations WHERE run = ? ORDER BY id DESC LIMIT ?",
            (run, limit),
        ).fetchall()
    )
    return [{**row, "data": json.loads(row["data"])} for row in reversed(found)]


def _breaks(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Sessions and what is wrong with them; after a gap no more is said of a session."""
    ends: dict[str, tuple[int, str] | None] = {}
    for entry in entries:
        end = ends.get(entry.session, (0, GENESIS))
        if end is None:
            continue
        number, previous = end[0] + 1, end[1]
        ends[entry.session] = number, entry.hash
        if entry.seq != number:
            ends[entry.session] = None
            yield entry.session, f"row {number} is missing: found row {entry.seq}"
            continue
        if entry.prev != previous:
            yield entry.session, f"row {entry.seq} does not follow the row before it"
        if entry.hash != _link(list(asdict(entry).values())[:-1]):
            yield entry.session, f"row {entry.seq} was altered"


def _gap(connection: sqlite3.Connection, table: str, number: str) -> Iterator[str]:
    query = f"SELECT count(*), coalesce(max({number}), 0) FROM {table}"  # noqa: S608 - our names
    count, last = connection.execute(query).fetchone()
    if count != last:
        yield f"{table} holds {count} rows, and the last one is number {last}: rows are gone"


def _link(values: list[object]) -> str:
    """SHA-256 over a row's columns, the hash of the row before it among them.

    A value of a type that was never written, bytes for one, gives a hash that no row holds.
    """
    text = json.dumps([repr(v) if isinstance(v, float) else v for v in values], default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
