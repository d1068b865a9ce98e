"""Where a path of a command leads: inside the workspace, outside, or into git's own folder."""

from __future__ import annotations

import fnmatch
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

_HARMLESS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - a name that is compared, not a file that is made
_MAX_FOLDERS = 16
_GIT_NAMES = (".git", "git~1")


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace and the folders a command may stand in (several after a `cd` that may fail)."""

    root: str
    folders: tuple[str | None, ...]
    """None is a folder that is not known."""

    @classmethod
    def of(cls, workspace: str) -> Place:
        """The workspace itself, by its real path."""
        root = os.path.realpath(workspace)
        return cls(root, (root,))

    def moved(self, target: str | None, *, certain: bool = False) -> Place:
        """After `cd target`; unless it is certain the old folders stay, because it may fail."""
        found: dict[str | None, None] = {}
        for folder in self.folders:
            if folder is None or target is None or not certain or not _folder(folder, target):
                found[folder] = None
            if folder is None or target is None:
                found[None] = None
            else:
                path = joined(folder, target)
                found[os.path.normpath(path)] = None
                found[os.path.realpath(path)] = None
        # Beyond a few nothing is gained by telling them apart.
        return Place(self.root, tuple(found) if len(found) <= _MAX_FOLDERS else (None,))

    def inside(self, path: str, *, strictly: bool = False) -> bool:
        """Whether the path lies in the workspace from every folder; `strictly`: is not the root,
        and holds no `.git` of the workspace.
        """
        return all(self._inside(folder, path, strictly) for folder in self.folders)

    def writable(self, path: str) -> bool:
        """Whether a command may write there: the workspace, a temporary folder, a null device."""
        if path.startswith("/"):
            real = os.path.realpath(path)
            temporary = (*_TEMPORARY, os.environ.get("TMPDIR") or "/tmp")  # noqa: S108
            if path in _HARMLESS or any(_below(real, os.path.realpath(t)) for t in temporary):
                return not self.is_git(path)
        return self.inside(path) and not self.is_git(path)

    def is_git(self, path: str) -> bool:
        """Whether the path is at or below a `.git`, in any spelling or through a link."""
        if _names_git(path):
            return True
        return any(
            _names_git(os.path.realpath(joined(folder, path)))
            for folder in self.folders
            if folder is not None
        )

    def _inside(self, folder: str | None, path: str, strictly: bool) -> bool:
        if folder is None and not path.startswith("/"):
            return False
        full = joined(folder or "/", path)
        # Both the entry itself and, where it is a link, what it leads to.
        parent, name = os.path.split(full)
        whole = os.path.realpath(full)
        itself = joined(os.path.realpath(parent), name) if name not in ("", ".", "..") else whole
        for real in (whole, itself):
            if not _below(real, self.root):
                return False
            if strictly and _below(joined(self.root, ".git"), real):
                return False
        return True


def last_part(path: str) -> str:
    """The name at the end of a path."""
    return path.rstrip("/").rpartition("/")[2]


def joined(folder: str, path: str) -> str:
    """A path as seen from a folder."""
    return path if path.startswith("/") else f"{folder}/{path}"


def glob_matches_git(pattern: str) -> bool:
    """Whether a component of a glob could stand for `.git` (`*` does not match a leading dot)."""
    return any(
        part.startswith((".", "[", "@", "!", "+")) and fnmatch.fnmatchcase(".git", part.casefold())
        for part in pattern.split("/")
        if any(c in part for c in "*?[")
    )


def glob_base(pattern: str) -> str:
    """The part of a glob before its first wildcard component."""
    kept = []
    for part in pattern.split("/"):
        if any(c in part for c in "*?["):
            break
        kept.append(part)
    base = "/".join(kept)
    return base or ("/" if pattern.startswith("/") else ".")


def _folder(folder: str, target: str) -> bool:
    return Path(joined(folder, target)).is_dir()


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _names_git(path: str) -> bool:
    return any(_plain(part) in _GIT_NAMES for part in path.replace("\\", "/").split("/"))


def _plain(part: str) -> str:
    folded = unicodedata.normalize("NFKC", part).casefold()
    visible = "".join(c for c in folded if unicodedata.category(c) != "Cf")
    return visible.split(":", 1)[0].rstrip(". ") or visible
