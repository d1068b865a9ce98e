"""What is known of the logs outside of the database: one line each, in a folder beside it.

SQLite cannot tell that the end of its write-ahead log is gone or that its file is an older copy of
itself: both are sound databases. So after each commit the newest row's number and hash are noted
in a file of their own. The commit comes first; the database may be ahead of a note and, for what
is acknowledged, never behind it. A note costs one write without a sync: what a power cut does to
it is seen by its check sum. Whoever can write here can write a false note as well; against that
stands the head hash that every report prints.

The last process that leaves the database also notes the hash of the whole file, the seal, so that
a change of bytes which hold no row is seen too. It is taken away before the first write.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .db import SCHEMA_VERSION

LEDGER, OBSERVATIONS, SEAL = "+ledger", "+observations", "+seal"
"""Names of notes that belong to no run; `note_of` gives the name for a run."""

_LINE = re.compile(rb"(\d{20}) ([0-9a-f]{64}) ([0-9a-f-]{36}) ([0-9a-f]{8})\n")
_LENGTH = 20 + 1 + 64 + 1 + 36 + 1 + 8 + 1
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_NO_BOOT = "-" * 36


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row of a log, as it was noted."""

    seq: int
    hash: str
    boot: str = _NO_BOOT
    """The machine's boot in which the note was made; set by `Heads.read`."""

    @property
    def of_this_boot(self) -> bool:
        """Whether no power cut can lie between the note and now."""
        return self.boot == _boot() != _NO_BOOT


def note_of(run: str) -> str:
    """The name of a run's note: the run's id where every file system keeps it apart."""
    if _PLAIN.fullmatch(run):
        return run
    return "+" + hashlib.sha256(run.encode("utf-8", "backslashreplace")).hexdigest()[:40]


class Heads:
    """The notes beside one database. No method raises for what the disk or the folder does."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._folder = database.parent / "heads"
        self._sealed = True  # for all that is known here, until the first write

    def read(self, name: str) -> Head | None:
        """The note; None where there is none or where it cannot be read."""
        with suppress(OSError):
            opened = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                line = os.pread(opened, _LENGTH, 0)
            finally:
                os.close(opened)
            found = _LINE.fullmatch(line)
            if found and int(found[4], 16) == zlib.crc32(line[: found.start(4)]):
                return Head(int(found[1]), found[2].decode(), found[3].decode())
        return None

    def write(self, name: str, head: Head | None) -> None:
        """Note a head after its commit; None leaves the note as it is."""
        if head is None:
            return
        line = f"{head.seq:020d} {head.hash} {_boot()} ".encode()
        line += f"{zlib.crc32(line):08x}\n".encode()
        with suppress(OSError):
            path, flags = self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            try:
                opened = os.open(path, flags, 0o666)
            except FileNotFoundError:
                self._folder.mkdir(exist_ok=True)
                opened = os.open(path, flags, 0o666)
            try:
                os.pwrite(opened, line, 0)
            finally:
                os.close(opened)

    def names(self) -> list[str]:
        """Every note that is there, readable or not."""
        with suppress(OSError):
            return sorted(path.name for path in self._folder.iterdir())
        return []

    def of_run(self, connection: sqlite3.Connection, run: str) -> Head | None:
        """What to note of a run after the transaction that this is called in."""
        query = "SELECT seq, hash FROM events WHERE run = ? ORDER BY seq DESC LIMIT 1"
        seq, digest = connection.execute(query, (run,)).fetchone()
        query = "SELECT hash FROM events WHERE run = ? AND seq = ?"
        return self.next(
            note_of(run), Head(seq, digest), lambda s: connection.execute(query, (run, s))
        )

    def next(
        self, name: str, head: Head, row: Callable[[int], sqlite3.Cursor], *, synced: bool = True
    ) -> Head | None:
        """`head` where it goes on from the note, else None; called before the commit.

        `row` selects the hash of a row by its number. A database that was set back must stay
        found out, so a note that its log does not hold is never written over; but for rows without
        a sync (`synced` False), which a power cut may lose.
        """
        self._unseal()
        known = self.read(name)
        if known is None or not (synced or known.of_this_boot):
            return head
        found = row(known.seq).fetchone()
        return head if found is not None and found[0] == known.hash else None

    def seal(self) -> None:
        """Note the hash of the file, if this process was the last that had the database open."""
        note = self._folder / SEAL
        with suppress(OSError):
            if self._in_use() or (self._sealed and note.exists()):
                return
            before = self._database.stat()
            # Nobody has it open: that closing this file drops SQLite's locks does no harm.
            with self._database.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self.write(SEAL, Head(SCHEMA_VERSION, digest))
            # Whoever came meanwhile has taken away a seal that was not yet there.
            after = self._database.stat()
            if self._in_use() or (after.st_mtime_ns, after.st_size) != (
                before.st_mtime_ns,
                before.st_size,
            ):
                note.unlink()

    def unseal_older(self) -> None:
        """Take away a seal from before the migration that opening the database did."""
        seal = self.read(SEAL)
        if seal is not None and seal.seq != SCHEMA_VERSION:
            self._unseal()

    def _unseal(self) -> None:
        if not self._sealed:
            return
        self._sealed = False
        with suppress(OSError):
            (self._folder / SEAL).unlink()
            # Else a power cut might bring the seal back beside a file that was written since.
            folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _in_use(self) -> bool:
        """Whether a connection is open, or one ended without closing: then there is a log."""
        return Path(f"{self._database}-wal").exists()


@cache
def _boot() -> str:
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        if len(boot) == len(_NO_BOOT):
            return boot
    return _NO_BOOT
