"""Indexes: private ones that hold a tree, and the person's after a commit.

Separate because it is the one place that writes a file of the person's own git state: path by
path, for the committed paths alone, under git's own lock, and never over something that the person
staged.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rage_plugin.core.errors import RageError
from rage_plugin.repository import Entry, GitFailed, Repository

from .objects import Changed

PATIENCE_S = 10.0
"""Seconds to wait for another git that holds the index's lock."""


@contextlib.contextmanager
def holding(git: Repository, tree: str) -> Iterator[Path]:
    """A private index that holds `tree`, with the times of the files that match it."""
    with tempfile.TemporaryDirectory(prefix="rage-") as folder:
        private = Path(folder) / "index"
        git.run("-c", "core.sparseCheckout=false", "read-tree", tree, index=private)
        git.run("update-index", "-q", "--refresh", index=private, ok=(0, 1))
        yield private


def entries(git: Repository) -> dict[str, Entry]:
    """What the person's index holds, unmerged paths left out."""
    found = {}
    for line in git.run("ls-files", "-s", "-z").names:
        meta, path = line.split("\t", 1)
        mode, oid, stage = meta.split(" ")
        if stage == "0":
            found[path] = Entry(mode, oid)
    return found


def follow(git: Repository, changed: Sequence[Changed], staged: Mapping[str, Entry]) -> None:
    """Set the committed paths in the person's index.

    A path is set where the index holds what the commit replaced, or what `staged` says; whatever
    else a person staged there stays staged. May be repeated.
    """
    now = entries(git)
    mine = [c for c in changed if now.get(c.path) in {c.old, staged.get(c.path, c.old)}]
    mine = [c for c in mine if now.get(c.path) != c.new]
    if not mine:
        return
    # Removals first, so that a file can take the place of a folder and the reverse.
    mine.sort(key=lambda change: change.new is not None)
    lines = (
        f"{c.new.mode} {c.new.oid}\t{c.path}\0"
        if c.new
        else f"0 {'0' * len(c.old.oid if c.old else '')}\t{c.path}\0"
        for c in mine
    )
    _update(git, os.fsencode("".join(lines)))
    # The entries came without the files' times; without this the next plumbing calls them dirty.
    git.run("update-index", "-q", "--refresh", ok=(0, 1, 128))


def _update(git: Repository, lines: bytes) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            git.run("update-index", "--add", "--replace", "-z", "--index-info", stdin=lines)
        except GitFailed as error:
            if "index.lock" not in error.what or time.monotonic() > deadline:
                raise RageError(
                    f"The commit was made, but the index could not follow: {error.what}",
                    kept="The commit and the files",
                    next="/rage resume",
                ) from error
            time.sleep(0.05)
        else:
            return
