"""The files and folders of one tree, looked up by path; separate so that each is listed once."""

from __future__ import annotations

import posixpath
from functools import cached_property

from rage_plugin.verify.tree import Trees


class TreeListing:
    """One tree as `pytest_command.Listing`."""

    def __init__(self, trees: Trees, tree: str) -> None:
        self._trees = trees
        self._tree = tree

    def read(self, path: str) -> bytes | None:
        """Content of a file; None where there is none."""
        return self._trees.read(self._tree, path) if path in self._files else None

    def is_folder(self, path: str) -> bool:
        """Whether the tree holds files below the path; the root is an empty string."""
        return path in self._folders

    def has(self, path: str) -> bool:
        """Whether it is a file or a folder."""
        return path in self._files or path in self._folders

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(self._trees.paths(self._tree))

    @cached_property
    def _folders(self) -> frozenset[str]:
        found = {""}
        for path in self._files:
            folder = posixpath.dirname(path)
            while folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)
