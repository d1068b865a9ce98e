"""Which files a backlog's place holds, and the safe way to read one: bounded, UTF-8, inside.

Separate from what the files say, because every source has to be found readable before a single
item is looked at (F032).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rage_plugin.core.errors import Refused
from rage_plugin.core.targets import Target, TargetKind, normal_id

MAX_BYTES = 1 << 20
SUFFIXES = (".md", ".markdown")
FOLDERS = ("backlog", "issues", "docs/backlog")
LISTS = ("BACKLOG.md", "TODO.md")
"""The built-in places, folders first; the first that exists is the backlog."""


def built_in_place(root: Path) -> str | None:
    """The first built-in place that the workspace has, relative to it."""
    for folder in FOLDERS:
        path = root / folder
        if path.is_dir() or path.is_symlink():
            return folder
    names = {
        name.casefold(): name for name in sorted((p.name for p in root.iterdir()), reverse=True)
    }
    for name in LISTS:
        if os.path.lexists(root / name):
            return name
        if name.casefold() in names:
            return names[name.casefold()]
    return None


def relative_path(root: Path, typed: str) -> str:
    """A typed path relative to the workspace, `.` for the workspace; `Refused` when outside."""
    joined = os.path.normpath(os.path.join(root, typed))  # noqa: PTH118 - lexical on purpose
    for base in (os.path.normpath(root), os.path.realpath(root)):
        if joined == base:
            return "."
        if joined.startswith(base.rstrip("/") + "/"):
            return joined[len(base.rstrip("/")) + 1 :]
    raise Refused(f"{shown(typed)} lies outside the workspace", next="name a path inside it")


def settled(root: Path, target: Target) -> Target:
    """A bare word as what it is here: a path where one exists, else an item's id."""
    if target.kind is not TargetKind.WORD:
        return target
    if os.path.lexists(root / target.value):
        return Target(TargetKind.PATH, target.value)
    return Target(TargetKind.ITEM, normal_id(target.value) or target.value)


def files_of(root: Path, place: str, problems: list[str]) -> list[str]:
    """The item files of a place (a file or a folder), sorted; what cannot be read is a problem.

    In a folder every markdown file counts, in subfolders too, except `README` and names that
    begin with `.` or `_`.
    """
    problem = _problem(root, place)
    if problem:
        problems.append(f"{shown(place)} {problem}")
        return []
    if not (root / place).is_dir():
        if place.lower().endswith(SUFFIXES):
            return [place]
        problems.append(f"{shown(place)} is not a markdown file")
        return []
    found: list[str] = []
    _walk(root, place, problems, found, set())
    return sorted(found)


def read_text(root: Path, relative: str) -> str:
    """The text of a file with its own line ends; `Refused` names the file and the line."""
    name = shown(relative)
    try:
        with (root / relative).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise Refused(f"{name} is larger than 1 MiB", next="split it, or move it elsewhere")
    if b"\0" in data:
        raise Refused(f"{name} is binary or UTF-16, not text in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Refused(
            f"{name}:{line}: not UTF-8 (byte 0x{error.object[error.start]:02x})",
            next="save the file as UTF-8",
        ) from error


def shown(path: str) -> str:
    """A path for a message: one line, whatever the file is called."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in path)


def _walk(root: Path, folder: str, problems: list[str], found: list[str], seen: set[str]) -> None:
    real = os.path.realpath(root / folder)
    if real in seen:  # a symlink to a folder that was read already
        return
    seen.add(real)
    try:
        names = sorted(p.name for p in (root / folder).iterdir())
    except OSError as error:
        problems.append(f"{shown(folder)} cannot be read: {error.strerror}")
        return
    for name in names:
        path = name if folder == "." else f"{folder}/{name}"
        is_folder = (root / path).is_dir()
        is_item = name.lower().endswith(SUFFIXES)
        if name.startswith((".", "_")) or not (is_folder or is_item):
            continue
        if is_item and name.lower().rpartition(".")[0] == "readme":
            continue
        problem = _problem(root, path)
        if problem is None and is_item and is_folder:
            problem = "is a folder with the name of a markdown file"
        if problem:
            problems.append(f"{shown(path)} {problem}")
        elif is_folder:
            _walk(root, path, problems, found, seen)
        else:
            found.append(path)


def _problem(root: Path, path: str) -> str | None:
    """Why a path may not be read, or None; never opens it (a FIFO would block)."""
    full = root / path
    try:
        path.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if not os.path.lexists(full):
        return "does not exist: name a file or folder of the workspace"
    base = os.path.realpath(root)
    real = os.path.realpath(full)
    if real != base and not real.startswith(base.rstrip("/") + "/"):
        return "leads out of the workspace"
    try:
        mode = full.stat().st_mode
    except OSError as error:
        link = full.is_symlink()
        return "is a symlink to nothing" if link else f"cannot be read: {error.strerror}"
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return "is neither a file nor a folder"
    return None
