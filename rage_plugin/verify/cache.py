"""Verdicts that were reached before, by what they depend on (F137).

Separate because it is the one place where a cell comes from anything but a run. A file of its own
beside `rage.db`: losing it costs time and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

from rage_plugin.core.judgement import Cell, CheckRecord, Outcome, Verdict

_SCHEMA = "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, cell TEXT NOT NULL)"
_UNDECIDED = frozenset({Verdict.COULD_NOT_RUN, Verdict.PARTIAL})
"""Nothing was found out about the tree: not kept, so that a mended environment is tried again."""


class VerdictCache:
    """Cells by key in one SQLite file; safe between processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> Cell | None:
        """The cell that was kept under `key`, marked as cached; None if there is none."""
        if not self._path.exists():
            return None
        try:
            with closing(self._open()) as db:
                row = db.execute("SELECT cell FROM verdicts WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError:
            return None
        return _decode(row[0]) if row else None

    def put(self, key: str, cell: Cell) -> None:
        """Keep a cell, unless nothing was found out about the tree."""
        if cell.verdict in _UNDECIDED:
            return
        try:
            self._write(key, _encode(cell))
        except sqlite3.OperationalError:
            return  # busy or full: the verdict stands, and is reached again next time
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
            self._write(key, _encode(cell))

    def _write(self, key: str, text: str) -> None:
        with closing(self._open()) as db, db:
            db.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?)", (key, text))

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._path, timeout=30)
        try:
            # Survives a kill, and need not survive a power cut: a tick has one sync, not three.
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_SCHEMA)
        except sqlite3.Error:
            db.close()
            raise
        return db


def _encode(cell: Cell) -> str:
    return json.dumps(asdict(cell), separators=(",", ":"))


def _decode(text: str) -> Cell:
    raw = json.loads(text)
    record = raw.pop("record")
    record["verdict"] = Verdict(record["verdict"])
    raw["outcomes"] = {id: Outcome(value) for id, value in raw["outcomes"].items()}
    raw["duplicates"] = tuple(raw["duplicates"])
    return Cell(record=replace(CheckRecord(**record), cached=True), **raw)
