"""What a test id means: which target covers it, and what a cell says of it.

Separate because runner, matrix and judgement must read `tests/test_x.py::test_y[1-a]` alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .judgement import Cell, Outcome

MISSING = "not in this tree"
"""The text in `Cell.broken` for a target that the tree does not have."""
SESSION = "(the run as a whole)"
"""The id that stands for what a plugin demands of a whole run, e.g. a coverage threshold."""
MANY = 40
"""More ids than this are re-run by file: an argv has an end."""


def path_of(test: str) -> str:
    """The path part of a target or test id."""
    return test.split("::", 1)[0]


def function_of(test: str) -> str:
    """The id without its parameters: `t.py::test_y` of `t.py::test_y[1-a]`."""
    path, mark, rest = test.partition("::")
    return path + mark + rest.split("[", 1)[0]


def covers(target: str, test: str) -> bool:
    """Whether a file, folder, class, function or exact id stands for the test id."""
    if target in (".", test):
        return True
    if "::" in target:
        return test.startswith((f"{target}[", f"{target}::"))
    return test.startswith((f"{target}::", f"{target.rstrip('/')}/"))


def touches(target: str, broken: str) -> bool:
    """Whether a file (or target) that could not be collected is one that the target needs."""
    return broken == target or covers(target, f"{broken}::") or path_of(target) == broken


def covered(targets: Iterable[str], tests: Iterable[str]) -> list[str]:
    """The ids that any of the targets covers, sorted."""
    wanted = tuple(targets)
    return sorted({t for t in tests if any(covers(w, t) for w in wanted)})


def status(cell: Cell, test: str) -> Outcome | None:
    """What the cell says of the id; None if it never met it. Reported twice is never a pass."""
    if test in cell.duplicates:
        return Outcome.ERROR
    outcome = cell.outcomes.get(test)
    if outcome is None and cell.broken.get(path_of(test), MISSING) != MISSING:
        return Outcome.ERROR
    # A file that was skipped as a whole is reported under its path.
    return outcome or cell.outcomes.get(path_of(test))


def known(cells: Sequence[Cell], test: str) -> list[Outcome]:
    """What every cell that met the id says of it."""
    return [s for s in (status(c, test) for c in cells) if s is not None]


def ids(cells: Sequence[Cell]) -> set[str]:
    """Every id that any of the cells reported."""
    return {t for c in cells for t in (*c.outcomes, *c.duplicates)}


def narrow(tests: Iterable[str]) -> tuple[str, ...]:
    """Targets for a re-run of these ids: the ids, or their files where there are too many."""
    wanted = sorted(set(tests))
    if len(wanted) <= MANY:
        return tuple(wanted)
    files = sorted({path_of(t) for t in wanted})
    return tuple(files) if len(files) <= MANY else ()
