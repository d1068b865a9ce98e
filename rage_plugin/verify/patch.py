"""What a patch adds and how big it is, from git's own output; pure, apart from asking git."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rage_plugin.core.errors import RageError

ADDED_LIMIT = 15 * 1024 * 1024
"""Bytes of added text that are handed on; below what `core/markers.py` reads of one text."""
BETWEEN = b"\f\n"
"""Stands between two places of a patch, so that nothing is read across them."""

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def added_text(patch: Iterable[bytes], limit: int = ADDED_LIMIT) -> str:
    """The added lines of a patch without context (`-U0`), bytes that are not UTF-8 replaced.

    Raises `RageError` above `limit` bytes: what is cut off could hold what is looked for.
    """
    found: list[bytes] = []
    size = 0
    for line in _added(iter(patch)):
        size += len(line)
        if size > limit:
            raise RageError(
                f"The change adds more than {limit // 2**20} MB of text, too much to look through",
                kept="The workspace is as it is",
                next="take out what was generated or name it in .gitignore, then /rage resume; "
                "or /rage stop, commit it yourself and start again",
            )
        found.append(line)
    return b"".join(found).decode("utf-8", "replace")


def size_of(numstat: Sequence[str]) -> tuple[int, int]:
    """Files, and lines added or removed in them, from the records of `--numstat -z`."""
    lines = 0
    for record in numstat:
        added, removed, _ = record.split("\t", 2)
        lines += sum(int(n) for n in (added, removed) if n != "-")  # binary files have no lines
    return len(numstat), lines


def _added(patch: Iterator[bytes]) -> Iterator[bytes]:
    """The added lines. A hunk's head says how many follow, so no content is taken for a head."""
    between = False
    for head in patch:
        counts = _HUNK.match(head)
        if counts is None:
            continue
        removed, added = (1 if n is None else int(n) for n in counts.groups())
        if added and between:
            yield BETWEEN
        between = between or bool(added)
        while removed or added:
            line = next(patch)
            if line.startswith(b"-"):
                removed -= 1
            elif line.startswith(b"+"):
                added -= 1
                yield line[1:]
            # else `\ No newline at end of file`, which is no line of the file
