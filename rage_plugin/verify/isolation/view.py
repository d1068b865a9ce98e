"""What a check is to see, and what all rungs say alike; they import this and not the ladder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rage_plugin.core.errors import RageError
from rage_plugin.verify import command
from rage_plugin.verify.command import Completed


class CouldNotRun(RageError):
    """No isolation works here, or the view could not be made: no verdict, never a red."""


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """What the check is to see in the workspace."""

    tree: str
    """The tree that the check sees."""
    current: str
    """The tree that the work tree holds (`Trees.snapshot(exclude=hidden)` of now)."""
    hidden: tuple[str, ...] = ()
    """Untracked files from before the run, which must not be there; relative to the root."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Extra files written into the view, by path relative to the root."""
    discard_home: bool = True
    """Discard what the check writes below HOME, where the isolation can (overlay)."""


def prepared(
    root: Path,
    argv: Sequence[str],
    prepare: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    output_limit: int,
    pass_fds: Sequence[int],
    mark: str = "",
) -> Completed:
    """Run `prepare`, then `argv`, in a view that lies at `root`; both within `timeout_s`."""
    where = Path(os.path.normpath(root / cwd))
    if not where.is_dir():
        raise CouldNotRun(f"There is no folder {cwd} in this tree")
    here = {k: v.replace("{root}", str(root)) for k, v in env.items()}
    began = time.monotonic()
    if prepare:
        ready = command.run(
            [part.replace("{root}", str(root)) for part in prepare],
            cwd=where,
            env=here,
            timeout_s=timeout_s,
            output_limit=output_limit,
            mark=mark,
        )
        if ready.timed_out:
            return ready
        if ready.exit_code != 0:
            raise prepare_failed(ready)
    return command.run(
        [part.replace("{root}", str(root)) for part in argv],
        cwd=where,
        env=here,
        timeout_s=timeout_s - (time.monotonic() - began),
        output_limit=output_limit,
        pass_fds=pass_fds,
        mark=mark,
    )


def prepare_failed(done: Completed) -> CouldNotRun:
    """The error that a failed prepare step is, with the end of what it said."""
    how = done.note or f"exit code {done.exit_code}"
    return CouldNotRun(f"The prepare step failed ({how}): {done.output[-2000:].strip()}")
