"""`RunStore`: what the rest of the program sees of the database, as nouns and not as SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from ..core.errors import RageError
from ..core.events import GENESIS, Event, Scalar
from ..core.fold import KEPT
from ..core.fold import row as typed_row
from ..core.judgement import CheckRecord, Verdict
from ..core.model import (
    Approach,
    Blocker,
    Correction,
    Evidence,
    Failure,
    Gate,
    Item,
    Run,
    RunState,
    Slice,
)
from ..core.ports import Expected
from . import audit, inspection, ledger, write_path
from .db import Db
from .heads import Heads, note_of

_RUN_COLUMNS = ", ".join(f.name for f in fields(Run))
_ITEM_COLUMNS = ", ".join(f'i."{f.name}"' for f in fields(Item))
_TREES = 1_000
SAMPLES = 5
"""Finished items before history says anything about the next one."""

Row = TypeVar("Row", Run, Item, Slice, Gate, Approach, Failure, Correction, Blocker)


def open_store(path: Path) -> RunStore:
    """The store of one workspace; the file and its folder are made where they do not exist.

    Raises `RageError` for a folder without write access, a damaged file or a newer schema.
    """
    db = Db(path)
    try:
        return RunStore(db)
    except BaseException:
        db.close()
        raise


class RunStore:
    """Implements `core.ports.Store`, and reads for reports and audits. Threads may share it."""

    def __init__(self, db: Db) -> None:
        self.db = db
        self.heads = Heads(db.path)
        self.heads.unseal_older()
        self.ledger = ledger.Ledger(db, self.heads)
        self._schema = db.read(write_path.read_schema)

    def append(self, run: str, expected_version: int, events: Sequence[Event], at: float) -> int:
        """Record the events and set their rows in one transaction with one sync.

        Raises `StaleWrite` when the run is no longer at `expected_version`, `IllegalTransition`,
        and `Refused` when another run holds the workspace; then nothing was written.
        """
        # SQLite gives -0.0 back as 0.0, and the hash is over what is read back.
        when = float(at) + 0.0
        version, head = self.db.write(
            lambda c: (
                write_path.write(c, self._schema, run, expected_version, events, when),
                self.heads.of_run(c, run),
            )
        )
        self.heads.write(note_of(run), head)
        self.db.checkpoint_when_due()
        return version

    def load(self, run: str) -> RunState:
        """What a decision may look at; the size follows the items, not the run's history."""
        return self.db.read(lambda c: _load(c, run))

    def active_run(self, workspace: str) -> Run | None:
        """The workspace's run that is active or paused."""
        return self._first_run(
            "WHERE workspace = ? AND status IN ('active', 'paused')", (workspace,)
        )

    def last_run(self, workspace: str) -> Run | None:
        """The workspace's newest run, whatever became of it."""
        return self._first_run("WHERE workspace = ?", (workspace,))

    def runs(self, workspace: str) -> Sequence[Run]:
        """Every run of the workspace, newest first."""
        return self._runs("WHERE workspace = ?", (workspace,))

    def run(self, run: str) -> Run | None:
        """One run by its id."""
        return self._first_run("WHERE id = ?", (run,))

    def evidence(self, run: str, item: str | None = None) -> Sequence[Evidence]:
        """Evidence of a run, or of one item of it, in the order it was recorded."""
        return [Evidence(**row) for row in self._of_run("evidence", run, item)]

    def checks(self, run: str, item: str | None = None) -> Sequence[CheckRecord]:
        """The check runs behind a run's judgements, in the order they were recorded."""
        names = [f.name for f in fields(CheckRecord)]
        return [
            CheckRecord(
                **{
                    **{name: row[name] for name in names},
                    "verdict": Verdict(row["verdict"]),
                    "cached": bool(row["cached"]),
                }
            )
            for row in self._of_run("checks", run, item)
        ]

    def rows(self, table: str, run: str) -> Sequence[dict[str, Scalar]]:
        """Rows of one table of state that belong to the run, for reports."""
        if table not in self._schema:
            raise ValueError(f"{table!r} is not a table of state")
        owner = self._schema[table].owner
        return self._rows(f"SELECT * FROM {table} WHERE {owner} = ? ORDER BY rowid", (run,))  # noqa: S608

    def effect(self, key: str) -> dict[str, Scalar] | None:
        """The outbox row of an external effect, looked up before the effect is repeated."""
        found = self._rows("SELECT * FROM outbox WHERE key = ?", (key,))
        return found[0] if found else None

    def finished(self, workspace: str) -> Sequence[Item]:
        """Items that any run of the workspace brought to DONE with a commit, newest run first."""
        found = self._rows(
            f"SELECT {_ITEM_COLUMNS} FROM items i JOIN runs r ON r.id = i.run"  # noqa: S608
            " WHERE r.workspace = ? AND i.state = 'DONE' AND i.\"commit\" <> ''"
            " ORDER BY r.started_at DESC, i.position",
            (workspace,),
        )
        return [typed_row(Item, row) for row in found]

    def estimate(self, workspace: str) -> str:
        """What an item cost here so far, by the median of those that are done, or unknown."""
        done = self._rows(
            "SELECT i.tokens AS tokens, i.iteration AS turns"
            " FROM items i JOIN runs r ON r.id = i.run"
            " WHERE r.workspace = ? AND i.state = 'DONE' ORDER BY r.started_at DESC LIMIT 50",
            (workspace,),
        )
        if not done:
            return "unknown: no item was finished here yet"
        tokens = median(int(row["tokens"] or 0) for row in done)
        turns = median(int(row["turns"] or 0) for row in done)
        return f"{tokens:,.0f} tokens and {turns:g} turns an item (median of {len(done)})"

    def expected(self, workspace: str) -> Expected:
        """The most that one of the last 50 finished items came to; unknown under `SAMPLES`.

        The largest and not the median: a breaker that trips on every item above the average
        would be switched off by its users (F068).
        """
        done = self._rows(
            "SELECT i.tokens AS tokens, i.files AS files, i.lines AS lines"
            " FROM items i JOIN runs r ON r.id = i.run"
            " WHERE r.workspace = ? AND i.state = 'DONE' AND i.\"commit\" <> '' AND i.files > 0"
            " ORDER BY r.started_at DESC LIMIT 50",
            (workspace,),
        )
        if len(done) < SAMPLES:
            return Expected()
        return Expected(*(max(int(r[name] or 0) for r in done) for name in done[0]))

    def failed_calls(self, run: str, item: str, action: str) -> Sequence[dict[str, object]]:
        """What was observed of an action's failed calls for an item, oldest first."""
        found = self._rows(
            "SELECT data FROM observations WHERE run = ? AND item = ? AND kind = ?"
            " ORDER BY id DESC LIMIT 10",
            (run, item, f"failed:{action}"),
        )
        return [json.loads(str(row["data"])) for row in found[::-1]]

    def head(self, run: str) -> str:
        """Hash of the run's last event; zeros before the first."""
        found = self._rows(
            "SELECT hash FROM events WHERE run = ? ORDER BY seq DESC LIMIT 1", (run,)
        )
        return str(found[0]["hash"]) if found else GENESIS

    def events(self, run: str) -> Sequence[audit.StoredEvent]:
        """The run's whole log in order, for why, replay and audit."""
        return self.db.read(lambda c: list(audit.read_events(c, run)))

    def verify_chain(self, run: str, head: str | None = None) -> Sequence[str]:
        """What is wrong with the run's log, one line each; empty when it holds."""
        return self.db.read(lambda c: audit.verify_chain(c, run, head))

    def rebuild(self, run: str) -> Sequence[str]:
        """Where the tables differ from the log folded anew, one line each."""
        return self.db.read(lambda c: audit.rebuild(c, run))

    def audit(self, run: str | None = None, head: str | None = None) -> inspection.AuditResult:
        """What is wrong with the whole database, or with its file and one run."""
        return inspection.inspect(self.db.path, run, head)

    def observe(self, run: str, item: str, kind: str, data: dict[str, object], at: float) -> None:
        """Record an observation (a tool call, a model call) without a sync: never state."""
        ledger.observe(self.db, self.heads, run, item, kind, data, float(at))

    def observations(self, run: str, limit: int = 100) -> Sequence[dict[str, object]]:
        """The newest observations of a run, oldest first: item, kind, data, at."""
        return ledger.observations(self.db, run, limit)

    def close(self) -> None:
        """Close the connections of every thread; the store is not used afterwards."""
        self.db.close()
        self.heads.seal()

    def _runs(self, where: str, bound: tuple[str, ...]) -> list[Run]:
        query = f"SELECT {_RUN_COLUMNS} FROM runs {where} ORDER BY rowid DESC"  # noqa: S608
        return [typed_row(Run, row) for row in self._rows(query, bound)]

    def _first_run(self, where: str, bound: tuple[str, ...]) -> Run | None:
        found = self._runs(where, bound)
        return found[0] if found else None

    def _of_run(self, table: str, run: str, item: str | None) -> list[dict[str, Any]]:
        query = f"SELECT * FROM {table} WHERE run = ? AND (? IS NULL OR item = ?) ORDER BY rowid"  # noqa: S608
        return self._rows(query, (run, item, item))

    def _rows(self, query: str, bound: tuple[Scalar, ...]) -> list[dict[str, Any]]:
        return self.db.read(lambda c: [dict(row) for row in c.execute(query, bound)])


def _load(connection: sqlite3.Connection, run: str) -> RunState:
    runs = _select(connection, Run, "runs WHERE id = ?", (run,))
    if not runs:
        raise RageError(f"There is no run {run}", next="rage status")
    items = {
        i.id: i for i in _select(connection, Item, "items WHERE run = ? ORDER BY position", (run,))
    }
    holding = "corrections WHERE run = ? AND superseded_by IS NULL"
    corrections = _newest(connection, Correction, holding, (run,))
    state = RunState(runs[0], items, corrections=corrections)
    current = runs[0].current_item
    return state if current is None else _with_item(connection, state, (run, current))


def _with_item(connection: sqlite3.Connection, state: RunState, item: tuple[str, str]) -> RunState:
    slices = _select(
        connection,
        Slice,
        "slices WHERE run = ? AND item = ? AND superseded = 0 ORDER BY rowid DESC LIMIT 1",
        item,
    )
    gates: list[Gate] = []
    if slices:
        gates = _select(connection, Gate, "gates WHERE slice = ? ORDER BY rowid", (slices[0].id,))
    trees = _column(
        connection,
        "SELECT tree FROM evidence WHERE run = ? AND item = ? AND kind = 'judgement'"
        " ORDER BY rowid DESC LIMIT ?",
        (*item, _TREES),
    )
    where = "WHERE run = ? AND item = ?"
    return RunState(
        state.run,
        state.items,
        slice=slices[0] if slices else None,
        gates=tuple(gates),
        judged_trees=frozenset(trees),
        failures=_newest(connection, Failure, f"failures {where}", item),
        approaches=_newest(connection, Approach, f"approaches {where}", item),
        corrections=state.corrections,
        blockers=_newest(connection, Blocker, f"blockers {where}", item),
    )


def _newest(
    connection: sqlite3.Connection, kind: type[Row], tail: str, bound: tuple[str, ...]
) -> tuple[Row, ...]:
    """The last rows that were written, in the order they were."""
    rows = _select(connection, kind, f"{tail} ORDER BY rowid DESC LIMIT {KEPT}", bound)
    return tuple(rows[::-1])


def _select(
    connection: sqlite3.Connection, kind: type[Row], tail: str, bound: tuple[str, ...]
) -> list[Row]:
    names = ", ".join(f'"{f.name}"' for f in fields(kind))
    rows = connection.execute(f"SELECT {names} FROM {tail}", bound)  # noqa: S608 - our own text
    return [typed_row(kind, dict(row)) for row in rows]


def _column(
    connection: sqlite3.Connection, query: str, bound: tuple[Scalar, ...]
) -> tuple[str, ...]:
    return tuple(row[0] for row in connection.execute(query, bound))
