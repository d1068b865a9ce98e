"""The folder that the file tools may touch, and the opening of files inside it.

Confinement is by real path: a path is resolved first, must lie inside the real workspace and
outside any `.git`, and is then opened one component at a time without following links, so that a
link put in place in between is refused by the kernel and not by a second look.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import unicodedata
from pathlib import Path

_GIT_NAMES = frozenset({".git", "git~1"})


class Denied(Exception):
    """A path that a tool may not use; the text says why."""


class Workspace:
    """One folder, by its real path."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def resolve(self, path: str) -> str:
        """The real path relative to the workspace (`.` for itself), or `Denied`."""
        if "\0" in path:
            raise Denied("the path holds a NUL character")
        if _names_git(path):
            raise Denied(f"{path}: .git belongs to git and is not open to tools")
        real = os.path.realpath(Path(self.root) / path)
        relative = os.path.relpath(real, self.root)
        if relative == ".." or relative.startswith("../"):
            raise Denied(f"{path}: outside the workspace")
        if _names_git(relative):
            raise Denied(f"{path}: .git belongs to git and is not open to tools")
        return relative

    def absolute(self, relative: str) -> str:
        """A resolved path as an absolute one."""
        return os.path.normpath(f"{self.root}/{relative}")

    def read(self, path: str, limit: int) -> tuple[bytes, int]:
        """At most `limit` bytes of a regular file, and its size."""
        parent, name = os.path.split(self.resolve(path))
        folder = self._open_folder(parent, create=False)
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(name, flags, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Denied(f"{path}: not a regular file")
            return file.read(limit), status.st_size

    def write(self, path: str, content: bytes) -> bool:
        """Replace or create a file whole; its mode stays. True when it was created."""
        parent, name = os.path.split(self.resolve(path))
        folder = self._open_folder(parent, create=True)
        try:
            mode = _mode(name, folder)
            temporary = f".{name[:100]}.{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(temporary, flags, 0o666 if mode is None else mode, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    file.write(content)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
        finally:
            os.close(folder)
        return mode is None

    def _open_folder(self, relative: str, *, create: bool) -> int:
        """A descriptor of a folder inside the workspace, reached without following a link."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.root, flags)
        for part in Path(relative).parts:
            try:
                try:
                    below = os.open(part, flags, dir_fd=handle)
                except FileNotFoundError:
                    if not create:
                        raise
                    os.mkdir(part, dir_fd=handle)
                    below = os.open(part, flags, dir_fd=handle)
            except OSError as error:
                os.close(handle)
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise Denied(f"{relative}: {part} is not a folder") from None
                raise
            os.close(handle)
            handle = below
        return handle


def _mode(name: str, folder: int) -> int | None:
    """Permission bits of a regular file that is there, None when nothing is."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise Denied(f"{name}: not a regular file")
    return stat.S_IMODE(status.st_mode)


def _names_git(path: str) -> bool:
    """Whether a component is `.git` in any spelling that some file system takes for it."""
    return any(_plain(part) in _GIT_NAMES for part in path.replace("\\", "/").split("/"))


def _plain(part: str) -> str:
    folded = unicodedata.normalize("NFKC", part).casefold()
    visible = "".join(c for c in folded if unicodedata.category(c) != "Cf")
    return visible.split(":", 1)[0].rstrip(". ") or visible
