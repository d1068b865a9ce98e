"""Connections to the database: opening, pragmas, transactions that outlast BUSY, checkpoints.

A thread has up to two connections. The durable one writes with `synchronous=FULL` (one sync a
commit); the quick one writes observations and the ledger with `NORMAL` (none). Only this module
knows SQLite's error codes; whoever calls it sees a `RageError` or a bug.
"""

from __future__ import annotations

import random
import shlex
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ..core.errors import RageError

T = TypeVar("T")
SCHEMA_VERSION = 2
"""`PRAGMA user_version` of a current database: the number of migrations in `schema.py`."""
BUSY_SECONDS = 5.0
ATTEMPTS = 6
WAL_LIMIT = 4 << 20
"""Bytes of write-ahead log after which a checkpoint is due."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DENIED = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_DAMAGE = ("unsupported file format", "Could not decode to UTF-8", "malformed")
_FAILED = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})

# The log is cut back to this size when it starts over, so that its size says how much is in it.
_PRAGMAS = f"""
PRAGMA foreign_keys = ON;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = {WAL_LIMIT // 4};
PRAGMA fullfsync = ON;
"""


class Db:
    """One database file; safe to share between threads, not across a fork."""

    def __init__(
        self,
        path: Path,
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Open and, where needed, migrate. Raises `RageError` and leaves an odd file as it is."""
        self.path = path
        self._sleep = sleep
        self._jitter = jitter
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, list[sqlite3.Connection]] = {}
        self._checkpoint_at = WAL_LIMIT
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._refuse_emptied()
        except OSError as error:
            raise self._denied(error) from error
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one `BEGIN IMMEDIATE` transaction and one sync; all of it or nothing."""
        return self._patiently(lambda: _transaction(self._durable(), "BEGIN IMMEDIATE", work))

    def note(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like `write`, without a sync: a power cut may lose the last notes, never tear them."""
        return self._patiently(lambda: _transaction(self._quick(), "BEGIN IMMEDIATE", work))

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on one snapshot."""
        return self._patiently(lambda: _transaction(self._durable(), "BEGIN", work))

    def checkpoint(self) -> bool:
        """Copy the log back into the database; True when all of it was copied.

        The write lock is held meanwhile, through the other connection: so there is one
        checkpointer at a time and no commit restarts the log under it, which is the race that
        SQLite before 3.51.3 loses (https://sqlite.org/wal.html#walresetbug).
        """

        def copy(_: sqlite3.Connection) -> bool:
            row = self._quick().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            busy, logged, copied = row
            return not busy and bool(logged == copied)

        return self._patiently(lambda: _transaction(self._durable(), "BEGIN IMMEDIATE", copy))

    def checkpoint_when_due(self) -> None:
        """Call `checkpoint` if the log has outgrown `WAL_LIMIT`; a stat otherwise."""
        try:
            size = Path(f"{self.path}-wal").stat().st_size
        except FileNotFoundError:
            return
        if size <= WAL_LIMIT:
            self._checkpoint_at = WAL_LIMIT
        elif size > self._checkpoint_at:
            # A reader that stays on an old snapshot keeps the log from starting over; then it
            # is tried again when as much again has come in, and not after every tick.
            self._checkpoint_at = WAL_LIMIT if self.checkpoint() else size + WAL_LIMIT

    def close(self) -> None:
        """Close every thread's connections; the last one out copies the log back."""
        with self._lock:
            for connections in self._open.values():
                for connection in connections:
                    connection.close()
            self._open.clear()
            self._local = threading.local()

    def _durable(self) -> sqlite3.Connection:
        return self._mine("durable", "FULL")

    def _quick(self) -> sqlite3.Connection:
        return self._mine("quick", "NORMAL")

    def _mine(self, name: str, synchronous: str) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, name, None)
        if connection is None:
            connection = self._connect(synchronous)
            setattr(self._local, name, connection)
        return connection

    def _connect(self, synchronous: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # close() closes for every thread
            cached_statements=256,
        )
        connection.row_factory = sqlite3.Row
        with self._lock:
            for thread in [t for t in self._open if not t.is_alive()]:
                for left in self._open.pop(thread):
                    left.close()
            self._open.setdefault(threading.current_thread(), []).append(connection)
        connection.executescript(f"PRAGMA synchronous = {synchronous};{_PRAGMAS}")
        return connection

    def _prepare(self) -> None:
        """Bring the schema up to date. A current database costs one pragma and no import."""
        version = self._patiently(lambda: _user_version(self._durable()))
        if version > SCHEMA_VERSION:
            raise RageError(
                f"{self.path} was written by a newer RAGE (schema {version}, "
                f"this one knows {SCHEMA_VERSION})",
                kept="It was left as it is",
                next="pip install --upgrade rage-plugin",
            )
        if version < SCHEMA_VERSION:
            self._refuse_foreign()
        mode = self._patiently(lambda: _pragma(self._durable(), "journal_mode = WAL"))
        if mode != "wal":
            raise RageError(
                f"SQLite cannot keep a write-ahead log for {self.path}: a network file system?",
                kept="Nothing was written",
                next="put the repository on a local disk",
            )
        if version < SCHEMA_VERSION:
            self.write(_migrate)

    def _refuse_foreign(self) -> None:
        """Somebody else's tables are not written to."""
        query = "SELECT name FROM sqlite_master LIMIT 1"
        table = self.read(lambda c: c.execute(query).fetchone())
        if table is not None and self.read(_user_version) == 0:
            raise self._damaged(f"it holds {table[0]} and is not a RAGE database")

    def _refuse_emptied(self) -> None:
        """SQLite would delete the log of a file that was cut to nothing, and begin anew."""
        try:
            if self.path.stat().st_size > 0:
                return
        except FileNotFoundError:
            return
        log = Path(f"{self.path}-wal")
        if log.exists() and log.stat().st_size > 0:
            raise self._damaged("it is empty and its write-ahead log is not")
        if any((self.path.parent / "heads").glob("*")):
            raise self._damaged("it is empty, and logs that it held are noted beside it")

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Call until the database is free; the waits differ, so that waiters do not meet again."""
        for number in range(1, ATTEMPTS + 1):
            try:
                return attempt()
            except sqlite3.Error as error:
                known = self._explain(error)
                if known is None:
                    raise
                if number == ATTEMPTS or _code(error) not in _BUSY:
                    raise known from error
                self._sleep(0.05 * number * (0.5 + self._jitter()))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _explain(self, error: sqlite3.Error) -> RageError | None:
        code = _code(error)
        if code in _BUSY:
            return RageError(
                f"Another process kept {self.path} locked for {BUSY_SECONDS * ATTEMPTS:.0f} s",
                kept="Nothing was written",
                next="rage status",
            )
        if code in _DENIED:
            return self._denied(error)
        # Two kinds of damage have no code of their own: a flipped bit in the header, or in a text.
        if code in _DAMAGED or any(words in str(error) for words in _DAMAGE):
            return self._damaged(str(error))
        if code in _FAILED:
            return RageError(
                f"The disk refused a write to {self.path} ({error})",
                kept="The step was rolled back and everything before it is kept",
                next="free some space, then rage resume",
            )
        return None

    def _denied(self, error: Exception) -> RageError:
        return RageError(
            f"Cannot open or write {self.path} ({error})",
            kept="Nothing was changed",
            next=f"ls -ld {shlex.quote(str(self.path.parent))}",
        )

    def _damaged(self, what: str) -> RageError:
        # The folder as a whole: a log that is left behind would be taken for the next file's.
        folder = str(self.path.parent)
        return RageError(
            f"{self.path} cannot be used: {what}",
            kept="It was left as it is, and commits are not touched",
            next=f"mv {shlex.quote(folder)} {shlex.quote(folder + '.damaged')}",
        )


def _transaction(
    connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]
) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back by itself after some errors, a full disk among them.
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
    return result


def _migrate(connection: sqlite3.Connection) -> None:
    if _user_version(connection) == SCHEMA_VERSION:
        return  # another process was first
    from .schema import migrate  # noqa: PLC0415 - heavy, and needed once in a database's life

    migrate(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _user_version(connection: sqlite3.Connection) -> int:
    return int(_pragma(connection, "user_version"))


def _pragma(connection: sqlite3.Connection, text: str) -> str:
    return str(connection.execute(f"PRAGMA {text}").fetchone()[0])


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 for an error of the Python module itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
