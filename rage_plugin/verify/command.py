"""Run one process tree within limits of time and memory, and leave no survivor.

Separate because a check is a hostile child: it floods, hangs, daemonises and holds pipes open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Completed:
    """What became of one command."""

    exit_code: int | None
    """None when it did not exit by itself: a signal, the time limit, or it could not start."""
    timed_out: bool
    killed: bool
    """It ended by a signal, RAGE's own (with `timed_out`) or another."""
    output: str
    """stdout and stderr merged; head and tail around a marker when it was cut."""
    truncated: bool
    seconds: float
    note: str = ""
    """Why there is no exit code, as one line for a person."""


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    output_limit: int = 20_000,
    pass_fds: Sequence[int] = (),
    on_start: Callable[[int], None] | None = None,
) -> Completed:
    """Run `argv` to its end or for `timeout_s` seconds; back after at most a second more.

    stdin is /dev/null; the command gets a session of its own; `on_start` is told its process id.
    At most `output_limit` characters of output are kept. Nothing it started survives.
    """
    raise NotImplementedError
