"""Put back what a check changed in `.git` while it ran in the user's own work tree.

Separate because it is swap's alone: an overlay discards all of it. HEAD, index, configuration,
hooks and refs come back; a commit that a check made stays reachable under `refs/rage-found/`, so
that nothing a person may have made meanwhile is lost. Objects and reflogs stay.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from rage_plugin.verify.tree import Trees

_FOLDERS = ("hooks", "info")
_SKIPPED_PREFIXES = ("refs/rage/", "refs/rage-found/")


@dataclass(frozen=True, slots=True)
class GitState:
    """Files of the git folders (copied below `copies`) and refs, as they were."""

    copies: Path
    files: dict[str, list[str]]
    """Relative paths by git folder."""
    refs: dict[str, str]


def save(trees: Trees, copies: Path) -> GitState:
    """Copy what `put_back` compares with; a few small files."""
    files = {}
    for number, folder in enumerate(_git_folders(trees)):
        names = _small_files(folder)
        for name in names:
            target = copies / str(number) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, target, follow_symlinks=False)
        files[str(folder)] = names
    return GitState(copies, files, _refs(trees))


def put_back(trees: Trees, before: GitState) -> list[str]:
    """Undo what differs; the refs that were put back."""
    for number, folder in enumerate(map(Path, before.files)):
        known = before.files[str(folder)]
        for name in _small_files(folder):
            if name not in known:
                (folder / name).unlink()
        for name in known:
            copy = before.copies / str(number) / name
            if not _same(copy, folder / name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                fresh = (folder / name).with_name(f".rage-{os.getpid()}")
                shutil.copy2(copy, fresh, follow_symlinks=False)
                fresh.replace(folder / name)
    return _put_refs_back(trees, before.refs)


def _put_refs_back(trees: Trees, before: dict[str, str]) -> list[str]:
    """Where other worktrees exist, their branches may move by right: only this one's go back."""
    now, run = _refs(trees), trees.place.run
    differing = sorted(r for r in {*before, *now} if before.get(r) != now.get(r))
    if (trees.common_dir / "worktrees").is_dir():
        head = (trees.git_dir / "HEAD").read_text().removeprefix("ref: ").strip()
        differing = [ref for ref in differing if ref == head]
    for ref in differing:
        if found := now.get(ref):
            run("update-ref", f"refs/rage-found/{found}", found)
        if ref in before:
            run("update-ref", "--no-deref", ref, before[ref])
        else:
            run("update-ref", "--no-deref", "-d", ref)
    return differing


def _git_folders(trees: Trees) -> list[Path]:
    return [trees.git_dir, *([trees.common_dir] if trees.common_dir != trees.git_dir else [])]


def _small_files(folder: Path) -> list[str]:
    """Files at the top of a git folder and in those parts of it that decide what git does."""
    found = [p for p in folder.iterdir() if not p.is_dir() or p.is_symlink()]
    for part in _FOLDERS:
        found += [p for p in (folder / part).glob("**/*") if not p.is_dir() or p.is_symlink()]
    # Refs are compared by value, since git packs them when it likes.
    return sorted(str(p.relative_to(folder)) for p in found if p.name != "packed-refs")


def _same(copy: Path, path: Path) -> bool:
    if not os.path.lexists(path):
        return False
    if copy.is_symlink() or path.is_symlink():
        return copy.is_symlink() and path.is_symlink() and copy.readlink() == path.readlink()
    return path.is_file() and copy.read_bytes() == path.read_bytes()


def _refs(trees: Trees) -> dict[str, str]:
    listed = trees.place.run("for-each-ref", "--format=%(refname) %(objectname)").text
    pairs = (line.rsplit(" ", 1) for line in listed.split("\n") if line)
    return {ref: oid for ref, oid in pairs if not ref.startswith(_SKIPPED_PREFIXES)}
