"""Run a command on one tree while the work tree holds another: the ladder of isolations.

Order: overlay, journaled swap, guarded scratch, else `CouldNotRun` (CHECKS.md says why).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rage_plugin.core.errors import RageError
from rage_plugin.verify.command import Completed
from rage_plugin.verify.tree import Trees


class CouldNotRun(RageError):
    """No isolation works here, or the view could not be made: no verdict, never a red."""


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """What the check is to see in the workspace."""

    tree: str
    """The tree that the check sees."""
    current: str
    """The tree that the work tree holds (`Trees.snapshot` of now)."""
    hidden: tuple[str, ...] = ()
    """Untracked files from before the run, which must not be there; relative to the root."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Extra files written into the view, by path relative to the root."""
    discard_home: bool = True
    """Discard what the check writes below HOME, where the isolation can."""


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
        fails. `env` is the whole environment; `env["TMPDIR"]` is reachable and writable.
        """
        ...


def ladder(trees: Trees, state: Path, force: str = "auto") -> Isolation:
    """The first isolation that works here, or the one that `force` names; else `CouldNotRun`."""
    raise NotImplementedError


def recover(trees: Trees, state: Path) -> str | None:
    """Finish a swap that a kill interrupted; a line for the person, or None if there was none."""
    raise NotImplementedError
