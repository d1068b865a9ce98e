"""The table of files in docs/reference.md against what runs really leave under `.git/rage`."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from ..e2e.project import FIX, Project, reply, write
from .pages import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text("utf-8")
DATABASE = REFERENCE.split("## Database\n", 1)[1].split("\n## ", 1)[0]
FILES = REFERENCE.split("| file | holds |", 1)[1].split("\n\n", 1)[0]
TOLD = set(re.findall(r"^\| `([\w.]+)` \|", FILES, re.MULTILINE))


def test_every_file_of_a_run_is_in_the_table(tmp_path: Path) -> None:
    """A run that is paused and one that ends, then a wish: each file is told, each ref and trailer."""
    project = Project(tmp_path / "repo", tmp_path / "home")
    lines = ["/rage start #5", "/rage stop"]
    project.rage("chat", "--model", project.script([reply("Hm.")]), stdin="\n".join(lines))
    bad = write("calc/__init__.py", "def add(a, b):\n    return 0\n")
    assert project.run([reply("", bad), reply("x"), reply("", FIX), reply("y")]).code in (1, 4)
    project.rage("start", "#5")
    left = {p.name for p in (project.root / ".git" / "rage").iterdir()}
    plain = {re.sub(r"(?<=\.db)-(wal|shm)$|(?<!deliver)\.lock$", "", n) for n in left}
    assert plain - TOLD == set()
    assert {"rage.db", "verdicts.db", "artifacts", "opened", "trees", "events.jsonl"} <= left
    refs = project.git("for-each-ref", "--format=%(refname)", "refs/rage").split()
    assert all(re.fullmatch(r"refs/rage/\w+/(base|5)", ref) for ref in refs)
    assert refs


def test_tables_views_and_columns_are_those_of_a_real_database(tmp_path: Path) -> None:
    """A reader who opens `rage.db` finds what the page names."""
    project = Project(tmp_path / "repo", tmp_path / "home")
    project.rage("status")
    path = project.root / ".git" / "rage" / "rage.db"
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
            "WHERE m.type IN ('table', 'view')"
        ).fetchall()
    for owner, column in found:
        if not owner.startswith(("_", "sqlite_")):
            line = next(x for x in DATABASE.splitlines() if x.startswith(f"| `{owner}` |"))
            assert f"`{column}`" in line
