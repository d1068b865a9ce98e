"""The user's flag file: it exists while any run is active, or a wish waits to be taken up.

Command-hook hosts test the same path from `sh`, so an idle host costs one `stat` and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def active_flag() -> str:
    """The flag's path, computed without a library so that `sh` can do the same."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    return os.path.join(state, "rage", "active")  # noqa: PTH118


def raised() -> bool:
    """Whether anything of this user is active; one `stat`."""
    return os.path.exists(active_flag())  # noqa: PTH110 - pathlib costs an import here


def raise_flag(name: str) -> None:
    """Say that a run, or a wish, of this user is there; `RageError` where that cannot be said."""
    _edit(lambda names: names | {name})


def lower_flag(name: str) -> None:
    """Say that it is not any more; the file goes with the last one. `RageError` like above."""
    _edit(lambda names: names - {name})


def _edit(change: Callable[[frozenset[str]], frozenset[str]]) -> None:
    from pathlib import Path  # noqa: PLC0415

    from .core.errors import RageError  # noqa: PLC0415

    path = Path(active_flag())
    try:
        _rewrite(path, change)
    except OSError as error:
        raise RageError(
            f"XDG_STATE_HOME cannot be written ({error.strerror or error}): "
            f"a host that looks for {path} does not see this run",
            next="set XDG_STATE_HOME to a folder that can be written",
        ) from error


def _rewrite(path: Path, change: Callable[[frozenset[str]], frozenset[str]]) -> None:
    from filelock import FileLock  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        try:
            names = frozenset(path.read_text("utf-8", "replace").split())
        except FileNotFoundError:
            names = frozenset()
        wanted = change(names)
        if not wanted:
            path.unlink(missing_ok=True)
        elif wanted != names:
            fresh = path.with_suffix(".new")
            fresh.write_text("\n".join(sorted(wanted)) + "\n", "utf-8")
            fresh.replace(path)
