"""What a view differs in from the work tree: files to place and paths that must not be there.

Separate because every rung needs it; each places them in its own way.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from rage_plugin.verify.tree import Trees

from .view import ViewSpec

_PREFIX = "rage-"


@dataclass(frozen=True, slots=True)
class Delta:
    """Files that lie below `folder`, to be placed in the workspace, and paths to take away."""

    folder: Path
    placed: tuple[str, ...]
    removed: tuple[str, ...]
    """Files, or with a `/` at the end whole folders (an untracked nested repository)."""


def delta(trees: Trees, spec: ViewSpec, current: str, into: Path) -> Delta:
    """Write below `into` what leads from the tree `current` to the view."""
    written, removed = trees.write_delta(current, spec.tree, into)
    for path, content in spec.files.items():
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_bytes(content)
    placed = tuple(sorted({*written, *spec.files}))
    gone = {*removed, *spec.hidden} - set(placed)
    return Delta(into, placed, tuple(sorted(gone)))


@contextmanager
def folder(parent: Path, kind: str) -> Iterator[Path]:
    """A new folder below `parent`, gone afterwards; `sweep` removes it after a kill."""
    parent.mkdir(parents=True, exist_ok=True)
    path = parent / f"{_PREFIX}{kind}-{secrets.token_hex(4)}"
    # The lock says that its owner lives; a process id would not, across containers.
    with FileLock(f"{path}.lock"):
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            remove(path)
            Path(f"{path}.lock").unlink(missing_ok=True)


def sweep(parent: Path) -> None:
    """Remove the folders below `parent` whose owner was killed."""
    for held in parent.glob(f"{_PREFIX}*.lock"):
        with contextlib.suppress(OSError, Timeout), FileLock(held, timeout=0):
            remove(held.with_suffix(""))
            held.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a folder whatever the modes that a check left in it."""
    with contextlib.suppress(OSError):
        path.chmod(0o700)
    for folder, folders, _ in os.walk(path):
        for name in folders:
            below = Path(folder) / name
            if not below.is_symlink():
                with contextlib.suppress(OSError):
                    below.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
