"""`rage audit verify`: what the audit of a database found, in words for a person and as JSON.

Apart from the other answers since it opens no workspace: a database that cannot be opened is what
it must be able to tell.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from .core.errors import RageError
from .store.inspection import AuditResult, inspect


def verify(store_path: Path, run: str | None, head: str | None) -> tuple[str, dict[str, object]]:
    """Audit the database, or its file and one run; nothing is wrong where `problems` is empty.

    Raises `RageError` where there is nothing to look at, and where another process keeps the
    database locked.
    """
    # Notes without a database are a database that is gone, which is a problem.
    if not store_path.exists() and not (store_path.parent / "heads").exists():
        raise RageError(
            f"There is no database at {store_path}: no run was recorded, or its folder is gone",
            kept="Nothing was changed",
            next="rage run TARGET",
        )
    result = inspect(store_path, run, head)
    following = _next(store_path, result)
    data: dict[str, object] = {
        "ok": not result.problems,
        "problems": list(result.problems),
        "notes": list(result.notes),
        "runs": result.runs,
        "events": result.events,
        "head": result.head,
        "database": str(store_path),
        "seconds": round(result.seconds, 3),
        "next": following,
    }
    return "\n".join(_lines(result, following)), data


def _lines(result: AuditResult, following: list[str]) -> list[str]:
    notes = [f"  note: {note}" for note in result.notes]
    if not result.problems:
        return [
            f"intact: {_count(result.runs, 'run')}, {_count(result.events, 'event')}, "
            f"head {result.head or 'none'}; nothing was altered, moved or cut",
            *notes,
        ]
    return [
        f"NOT intact: {_count(len(result.problems), 'problem')}",
        *(f"  {problem}" for problem in result.problems),
        *notes,
        "This audit changed nothing, and commits are not touched.",
        *(f"  next: {command}" for command in following),
    ]


def _next(store_path: Path, result: AuditResult) -> list[str]:
    """What to type: look at what git says of the runs, then go back to a copy or begin anew."""
    if not result.problems:
        return []
    folder = str(store_path.parent)
    return [
        "git log --all --grep='^Rage-Run:'  (what was delivered, by its trailers)",
        f"mv {shlex.quote(folder)} {shlex.quote(folder + '.damaged')}  "
        "(then put a copy of the whole folder in its place, or begin anew)",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
