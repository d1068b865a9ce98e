"""Between RAGE's private object store and the repository: read from both, copy what is missing.

Separate because a commit must never refer to an object that lies only beside RAGE's state: that
store is rotated, and a clone or a push would not find it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rage_plugin.core.errors import RageError
from rage_plugin.repository import Entry, GitFailed, Repository, quoted


class Changed(NamedTuple):
    """One path that differs between two trees; None where it is absent."""

    path: str
    old: Entry | None
    new: Entry | None


def changes(git: Repository, old: str, new: str) -> list[Changed]:
    """Every path that differs between two trees of the repository, without renames."""
    out = git.run(
        "diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", old, new
    ).names
    return [_changed(meta, path) for meta, path in zip(out[::2], out[1::2], strict=True)]


def _changed(meta: str, path: str) -> Changed:
    old_mode, new_mode, old, new, _ = meta.removeprefix(":").split(" ")
    return Changed(path, _entry(old_mode, old), _entry(new_mode, new))


def _entry(mode: str, oid: str) -> Entry | None:
    return Entry(mode, oid) if mode != "000000" else None


def bring(git: Repository, state: Path, tree: str, known: str) -> None:
    """Copy what the repository lacks of `tree`; `known` is a commit it has whole, or empty.

    Raises `RageError` where the tree or a part of it is in neither store.
    """
    wanted = f"{tree}\n" + (f"^{known}\n" if known else "")
    alternates = ":".join(quoted(store) for store in stores(state))
    try:
        with tempfile.TemporaryFile() as pack:
            git.run(
                *("pack-objects", "--revs", "--stdout", "-q"),
                stdin=wanted.encode("ascii"),
                stdout=pack,
                env={"GIT_ALTERNATE_OBJECT_DIRECTORIES": alternates},
            )
            pack.seek(0)
            # git hashes every object anew as it writes it: a damaged one cannot pass under its id.
            git.run("unpack-objects", "-q", stdin=pack)
        # Without the private store now: all of it must be here.
        git.run("rev-list", "--objects", "--quiet", "--stdin", stdin=wanted.encode("ascii"))
    except GitFailed as error:
        raise RageError(
            f"The checked tree {tree[:12]} is not whole any more: {error.what}",
            kept="Nothing was committed",
            next="/rage resume checks the files as they are now",
        ) from error


def stores(state: Path) -> Sequence[Path]:
    """The private object stores beside the state, every generation that is still there."""
    return sorted(path for path in (state / "trees" / "objects").glob("*") if path.is_dir())
