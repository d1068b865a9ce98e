"""What may be handed to a check as a target: a path or test id inside the workspace, or nothing.

Separate because it is the one door through which words of an agent or an issue reach a command
line (F106): an argv element that is never an option, a response file or a path elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PureWindowsPath

from rage_plugin.core.errors import Refused

LONGEST = 1_000
"""Characters; a longer target is no test id that a person wrote."""


def validate_target(root: Path, target: str) -> str:
    """The target in its shortest spelling; `Refused` unless it stays inside `root`.

    It need not exist: a test that is still to be written is a target too.
    """
    text = target.strip()
    if not text:
        raise _refused(target, "is empty")
    if len(text) > LONGEST:
        raise _refused(text[:40] + "…", f"is longer than {LONGEST} characters")
    if any(c < " " or c == "\x7f" or c in "\u0085\u2028\u2029" for c in target):
        raise _refused(target, "holds a control character")
    if text[0] in "-@":
        raise _refused(target, f"begins with {text[0]}")
    path, mark, test = text.partition("::")
    if mark and not test:
        raise _refused(target, "names no test after ::")
    if not path or path.startswith(("/", "~")) or PureWindowsPath(path).is_absolute():
        raise _refused(target, "is not relative to the workspace")
    parts = [p for p in path.split("/") if p not in ("", ".")]
    if ".." in parts:
        raise _refused(target, "leaves the workspace")
    if parts and parts[0].startswith(("-", "@")):
        raise _refused(target, f"begins with {parts[0][0]}")
    if ".git" in (p.lower() for p in parts):
        raise _refused(target, "lies in .git")
    clean = "/".join(parts)
    if not _inside(root, clean):
        raise _refused(target, "is a link that leaves the workspace")
    return (clean or ".") + mark + test


def valid_targets(root: Path, targets: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The targets that hold, and one line for each that does not: for proposals of an agent."""
    good: dict[str, None] = {}
    notes = []
    for target in targets:
        try:
            good[validate_target(root, target)] = None
        except Refused as error:
            notes.append(error.what)
    return tuple(good), tuple(notes)


def _inside(root: Path, path: str) -> bool:
    real = root.resolve()
    try:
        return (real / path).resolve().is_relative_to(real)
    except (OSError, RuntimeError):
        # A link to itself, or a name that the file system cannot hold.
        return False


def _refused(target: str, why: str) -> Refused:
    return Refused(
        f"The gate target {target[:200]!r} {why}",
        kept="Nothing was run",
        next="name a path or a test id inside the workspace, e.g. tests/test_x.py::test_y",
    )
