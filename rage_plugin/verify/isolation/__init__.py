"""Run a command on one tree while the work tree holds another: the ladder of isolations.

Order: overlay, journaled swap, guarded scratch, else `CouldNotRun`. The first two show the tree at
the workspace's own path, so that editable installs and scripts of a virtual environment work.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rage_plugin.verify.command import Completed
from rage_plugin.verify.tree import Trees

from . import stage, swap
from .overlay import Overlay
from .scratch import Scratch
from .swap import Swap
from .view import CouldNotRun, ViewSpec

__all__ = ["CouldNotRun", "Isolation", "ViewSpec", "ladder", "recover"]


class Isolation(Protocol):
    """One way to run a command on a tree; whatever it writes into the workspace is gone after."""

    name: str

    def available(self) -> bool:
        """Whether it works here, found by trying it."""
        ...

    def run(
        self,
        spec: ViewSpec,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        output_limit: int = 20_000,
        prepare: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
    ) -> Completed:
        """Run `argv` in the view, below `cwd` (relative to the root).

        `{root}` inside an element of `argv` or `prepare`, or inside a value of `env`, becomes the
        root as the check sees it. `prepare` is run first, in the same view; `CouldNotRun` when it
        fails. `env` is the whole environment. `env["TMPDIR"]` is reachable and writable, and what
        is written below it stays: put reports there, wherever it lies.
        """
        ...


def ladder(trees: Trees, state: Path, force: str = "auto") -> Isolation:
    """The first isolation that works here, or the one that `force` names; else `CouldNotRun`."""
    rungs: tuple[Isolation, ...] = (
        Overlay(trees, state),
        Swap(trees, state),
        Scratch(trees),
    )
    tried = [rung for rung in rungs if force in ("auto", rung.name)]
    for rung in tried:
        if rung.available():
            return rung
    names = ", ".join(rung.name for rung in tried) or f"“{force}” is none of the isolations"
    raise CouldNotRun(
        f"No isolation for a check works here: {names}",
        kept="Nothing was changed",
        next="set verification.isolation in rage.yaml to overlay, swap, scratch or auto",
    )


def recover(trees: Trees, state: Path) -> str | None:
    """Finish a swap that a kill interrupted; a line for the person, or None if there was none.

    Also removes folders that killed processes left behind. Called at every start.
    """
    line = swap.recover(trees, state)
    for parent in (state / "views", Path(tempfile.gettempdir())):
        stage.sweep(parent)
    return line
