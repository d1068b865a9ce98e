"""The journal of a swap: written before the work tree is touched, and enough to undo all of it.

Separate from `swap.py` because a recovery after a kill has the journal and nothing else. Every step
of `undo` may be repeated: a kill inside it is finished by the next one.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rage_plugin.repository import prune
from rage_plugin.verify.tree import CACHES, Trees, real_parents

from . import gitguard, manifest, stage
from .manifest import Manifest
from .view import CouldNotRun, ViewSpec

COPY_LIMIT = 64 * 1024 * 1024
"""Bytes of ignored files that are copied aside before a swap; what exceeds them is only watched."""


@dataclass(frozen=True, slots=True)
class Journal:
    """Everything that `undo` needs; lies below `folder`."""

    folder: Path
    current: str
    """The tree that the work tree holds and must hold again."""
    hidden: tuple[str, ...]
    mark: str
    """`command.MARK` of the check, to find what survived a kill."""
    moved: tuple[str, ...]
    """Paths that are renamed to below `folder/moved`, `/` at the end for a whole folder."""
    copied: dict[str, tuple[int, int]]
    """Offset and size in the file `folder/copied` of what git could not give back."""
    before: Manifest
    git: gitguard.GitState

    def write(self) -> None:
        """Make the journal durable: on disk before this returns."""
        raw = {
            "current": self.current,
            "hidden": self.hidden,
            "mark": self.mark,
            "moved": self.moved,
            "copied": self.copied,
            "before": self.before.to_json(),
            "git": {"files": self.git.files, "refs": self.git.refs},
        }
        fresh = self.folder / "journal.new"
        with fresh.open("w", encoding="ascii") as file:
            file.write(json.dumps(raw))  # `dump` would not use the fast encoder
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.folder / "journal")
        sync_folder(self.folder)


def read(folder: Path) -> Journal | None:
    """The journal of an unfinished swap, if there is one."""
    try:
        raw = json.loads((folder / "journal").read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    return Journal(
        folder,
        raw["current"],
        tuple(raw["hidden"]),
        raw["mark"],
        tuple(raw["moved"]),
        {path: (at, size) for path, (at, size) in raw["copied"].items()},
        Manifest.from_json(raw["before"]),
        gitguard.GitState(folder / "git", raw["git"]["files"], raw["git"]["refs"]),
    )


def begin(trees: Trees, spec: ViewSpec, delta: stage.Delta, mark: str, folder: Path) -> Journal:
    """Write down what is there and keep a copy of what git could not give back."""
    before = manifest.take(trees.root)
    present = [p for p in (*delta.removed, *delta.placed) if os.path.lexists(trees.root / p)]
    # A folder where a file is to be placed is emptied by removals, never moved as a whole.
    moved = tuple(p for p in present if p.rstrip("/") not in before.folders or p.endswith("/"))
    journal = Journal(
        folder,
        spec.current,
        spec.hidden,
        mark,
        moved,
        _copy_aside(trees, spec.current, before, set(moved), folder / "copied"),
        before,
        gitguard.save(trees, folder / "git"),
    )
    journal.write()
    return journal


def _copy_aside(
    trees: Trees, tree: str, before: Manifest, moved: set[str], into: Path
) -> dict[str, tuple[int, int]]:
    """Copy ignored files, and tracked ones whose bytes on disk are not those in git.

    Into one file: to create thousands takes seconds.
    """
    sizes = {p: i[1] for p, i in before.files.items() if stat.S_ISREG(i[0]) and p not in moved}
    copied: dict[str, tuple[int, int]] = {}
    room = COPY_LIMIT
    with into.open("wb") as file:
        for path in [*trees.not_as_stored(tree, sizes), *trees.ignored_files()]:
            if path not in sizes or path in copied:
                continue
            if path not in trees.entries(tree):
                room -= sizes[path]
                if room < 0:
                    continue
            content = (trees.root / path).read_bytes()
            copied[path] = (file.tell(), len(content))
            file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return copied


def place(trees: Trees, journal: Journal, delta: stage.Delta) -> None:
    """Rename aside what must not be there and put the view's files in."""
    root = trees.root
    for path in journal.moved:
        aside = journal.folder / "moved" / path.rstrip("/")
        aside.parent.mkdir(parents=True, exist_ok=True)
        (root / path).rename(aside)
        prune(root, path.rstrip("/"))
    for path in delta.placed:
        target = root / path
        if not real_parents(root, path):
            raise CouldNotRun(f"A link or file is in the way of {path!r}")
        if target.is_dir():
            target.rmdir()
        target.parent.mkdir(parents=True, exist_ok=True)
        (delta.folder / path).rename(target)


def undo(trees: Trees, journal: Journal) -> list[str]:
    """Take the work tree back to what it was; one text for each thing a person should know."""
    root, before = trees.root, journal.before
    for path, (mode, _) in sorted(before.folders.items()):
        _unlock(root / path, stat.S_IMODE(mode))
    for path in journal.moved:
        aside = journal.folder / "moved" / path.rstrip("/")
        if os.path.lexists(aside):
            _clear(root, path.rstrip("/"))
            aside.rename(root / path.rstrip("/"))
    now = manifest.take(root)
    for path in now.files:
        if path not in before.files:
            (root / path).unlink()
    for path in sorted(now.folders, reverse=True):
        if path not in before.folders:
            stage.remove(root / path)
    lost = _rewrite(trees, journal, before.changed(now, frozenset(journal.moved)))
    for path, (mode, mtime) in sorted(before.folders.items(), reverse=True):
        folder = root / path
        folder.mkdir(parents=True, exist_ok=True)
        _unlock(folder, stat.S_IMODE(mode))
        os.utime(folder, ns=(mtime, mtime))
    moved = gitguard.put_back(trees, journal.git)
    return [*lost, *(f"{ref} (what it was is under refs/rage-found/)" for ref in moved)]


def _rewrite(trees: Trees, journal: Journal, changed: Sequence[str]) -> list[str]:
    """Put the content back of files that a check wrote or removed; those it cannot."""
    from_git = trees.read_many(journal.current, [p for p in changed if p not in journal.copied])
    lost = []
    for path in changed:
        target, info = trees.root / path, journal.before.files[path]
        if path in journal.before.links:
            _clear(trees.root, path)
            target.symlink_to(journal.before.links[path])
        elif path in journal.copied:
            _clear(trees.root, path)
            at, size = journal.copied[path]
            with (journal.folder / "copied").open("rb") as file:
                file.seek(at)
                target.write_bytes(file.read(size))
            target.chmod(stat.S_IMODE(info[0]))
        elif path in from_git:
            # The bytes were those of the blob, else there would be a copy.
            _clear(trees.root, path)
            target.write_bytes(from_git[path])
            target.chmod(stat.S_IMODE(info[0]))
        else:
            if not CACHES.intersection(path.split("/")):
                lost.append(path)
            continue
        os.utime(target, ns=(info[2], info[2]), follow_symlinks=False)
    return lost


def _unlock(folder: Path, mode: int) -> None:
    """Give a folder its mode back, so that what is below it can be reached."""
    if folder.is_dir() and not folder.is_symlink() and folder.stat().st_mode & 0o7777 != mode:
        folder.chmod(mode)


def _clear(root: Path, path: str) -> None:
    """Make room for a file at `path`, whatever a check put there or above it."""
    for parent in reversed([p for p in (root / path).parents if root in p.parents]):
        if parent.is_symlink() or (os.path.lexists(parent) and not parent.is_dir()):
            parent.unlink()
        parent.mkdir(exist_ok=True)
    target = root / path
    if target.is_dir() and not target.is_symlink():
        stage.remove(target)
    else:
        target.unlink(missing_ok=True)


def finish(trees: Trees, journal: Journal) -> None:
    """Forget the journal, since all was undone; `CouldNotRun` when the tree is another one."""
    (journal.folder / "journal").unlink(missing_ok=True)
    sync_folder(journal.folder)
    if trees.snapshot(exclude=journal.hidden) != journal.current:
        raise CouldNotRun(
            "The workspace is not what it was before the check",
            kept=f"What it held is in RAGE's store as tree {journal.current}",
            next="git status",
        )


def sync_folder(folder: Path) -> None:
    """fsync a folder, so that a rename in it is on disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
