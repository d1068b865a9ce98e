"""What lies where: tables and views as a fresh database has them, files, refs, variables."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from rage_plugin.store import schema

from . import words
from .markdown import LATER, listed, same, source_text, table


def sections() -> tuple[str, ...]:
    """In the order of the page."""
    return (_database(), _places())


def columns(kind: str) -> dict[str, list[str]]:
    """The columns of each `table` or `view` of a fresh database, by name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.migrate(connection)
        found = connection.execute(
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
            "WHERE m.type = ? AND substr(m.name, 1, 1) != '_' ORDER BY m.rowid, c.cid",
            (kind,),
        ).fetchall()
    names = dict.fromkeys(name for name, _ in found)
    return {name: [column for owner, column in found if owner == name] for name in names}


def _database() -> str:
    tables, views = columns("table"), columns("view")
    same("tables", tables, words.TABLES)
    same("views", views, words.VIEWS)
    code = source_text(lambda path: path.name != "schema.py")
    rows = []
    for name, its in tables.items():
        never = not re.search(rf'Put\(\s*"{name}"|INTO {name}\b', code)
        later = f" {LATER.format('writes')}" if never else ""
        rows.append((f"`{name}`", words.TABLES[name] + later, listed(its)))
    shown = [(f"`{name}`", words.VIEWS[name], listed(its)) for name, its in views.items()]
    return f"""## Database

`rage.db` is SQLite; any reader may open it, and only RAGE writes. Every row but those of `ledger`
and `observations` follows from `events`, which is append-only and hash-chained.

{table(("table", "holds", "columns"), rows)}

Views, for people:

{table(("view", "shows", "columns"), shown)}"""


def _places() -> str:
    rows = [(f"`{name}`", text) for name, text in words.FILES.items()]
    return f"""## Files, refs, trailers, variables

State lies in `<git common dir>/rage`, usually `.git/rage`: one for all worktrees of a repository.

{table(("file", "holds"), rows)}

{table(("elsewhere", "what it is"), words.ELSEWHERE)}"""
