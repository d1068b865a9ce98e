"""The work tree as git trees: hash, compare, compose, write and restore.

Separate because it alone talks to git about content: through a private index and a private object
store below RAGE's state folder, so that the user's index, objects and mtimes stay identical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rage_plugin.core.errors import RageError
from rage_plugin.core.model import Change


class NoHash(RageError):
    """The work tree could not be hashed: there is no hash, which never means "the same"."""


class Trees:
    """The trees of one workspace; `state` is the folder beside `rage.db`.

    Tree names are 40 (or 64) hexadecimal digits. Paths are relative to `root` with `/`, and hold
    undecodable bytes as surrogates (`os.fsdecode`).
    """

    root: Path
    """Top level of the work tree (real path)."""
    common_dir: Path
    """The git common directory (real path), shared by all worktrees of the repository."""

    def __init__(self, workspace: Path, state: Path) -> None:
        """Open the repository that `workspace` (any folder inside it) belongs to."""
        raise NotImplementedError

    def head_tree(self) -> str:
        """The tree of HEAD; the empty tree on an unborn branch."""
        raise NotImplementedError

    def untracked(self) -> tuple[str, ...]:
        """Files that are neither ignored nor tracked now, sorted."""
        raise NotImplementedError

    def snapshot(self, exclude: Sequence[str] = ()) -> str:
        """The tree of the work tree now, without the paths in `exclude`; raises `NoHash`."""
        raise NotImplementedError

    def changes(self, a: str, b: str) -> tuple[Change, ...]:
        """What leads from tree `a` to tree `b`: no renames, sorted by path."""
        raise NotImplementedError

    def read(self, tree: str, path: str) -> bytes | None:
        """The blob at `path` as stored (a symlink's target); None if there is no file."""
        raise NotImplementedError

    def paths(self, tree: str) -> tuple[str, ...]:
        """Every path of a tree, sorted."""
        raise NotImplementedError

    def compose(self, base: str, overrides: Mapping[str, str | None]) -> str:
        """Tree `base` in which each path is taken from the tree named.

        With None, or where the named tree has no such path, the path is absent.
        """
        raise NotImplementedError

    def write_delta(
        self, current: str, wanted: str, into: Path
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write the files of `wanted` that differ from `current` below `into`.

        Modes and symlinks are kept and filters applied as `git checkout` would. Returns the paths
        written and the paths to remove.
        """
        raise NotImplementedError

    def restore(self, current: str, wanted: str) -> tuple[str, ...]:
        """Take the work tree from `current` to `wanted`, touching only paths that differ.

        A path that no longer holds what `current` says is left alone and returned. Folders that
        became empty are removed. The user's index and every other file stay as they are.
        """
        raise NotImplementedError

    def ignored_fingerprint(self) -> Mapping[str, str]:
        """`size:mtime_ns` by path of git-ignored files, without dependency folders and caches."""
        raise NotImplementedError
