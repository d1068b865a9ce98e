"""What a work tree holds, by stat: what was there before a check and what it did to it.

Separate because it knows the disk only, neither git nor the journal. `.git` at the top is left
out; `gitguard.py` looks after that.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Stat = tuple[int, int, int, int, int]
"""mode, size, mtime_ns, inode, ctime_ns: no write leaves all five as they are."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Every path of a work tree except its own `.git`."""

    files: dict[str, Stat]
    """Everything that is no folder."""
    folders: dict[str, tuple[int, int]]
    """mode and mtime_ns."""
    links: dict[str, str]
    """Where symlinks point."""

    def changed(self, now: Manifest, moved: frozenset[str]) -> list[str]:
        """Files of `self` that are gone or were written; a rename alone changes only the ctime."""
        return [
            path
            for path, before in self.files.items()
            if (after := now.files.get(path)) is None
            or (after[:4] != before[:4] if path in moved else after != before)
        ]

    def to_json(self) -> dict[str, Any]:
        """As JSON values; see `from_json`."""
        return {"files": self.files, "folders": self.folders, "links": self.links}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Manifest:
        """The manifest that `to_json` wrote."""
        return cls(
            {path: (v[0], v[1], v[2], v[3], v[4]) for path, v in raw["files"].items()},
            {path: (v[0], v[1]) for path, v in raw["folders"].items()},
            dict(raw["links"]),
        )


def take(root: Path) -> Manifest:
    """The manifest of a work tree now."""
    found = Manifest({}, {}, {})
    for entry, path in _walk(str(root), ""):
        try:
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                found.folders[path] = (info.st_mode, info.st_mtime_ns)
                continue
            if stat.S_ISLNK(info.st_mode):
                found.links[path] = str(Path(entry.path).readlink())
        except FileNotFoundError:
            continue
        found.files[path] = (
            info.st_mode,
            info.st_size,
            info.st_mtime_ns,
            info.st_ino,
            info.st_ctime_ns,
        )
    return found


def _walk(folder: str, below: str) -> Iterator[tuple[os.DirEntry[str], str]]:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except PermissionError:
        return  # nothing below it can be read, now or later
    for entry in listed:
        path = f"{below}{entry.name}"
        if path == ".git":
            continue
        yield entry, path
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, f"{path}/")
