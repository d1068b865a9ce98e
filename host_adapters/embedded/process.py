"""Runs one program for a tool: bounded output, a time limit, and nothing left behind.

The pipe is read here and not by `communicate()`, which would hold a flood in memory and wait for
any grandchild that inherited the pipe.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rage_plugin import tool_mark

if TYPE_CHECKING:
    import psutil

OUTPUT_LIMIT = 20_000
"""Bytes of output that a tool result may hold."""
_DRAIN_S = 0.5
_CHUNK = 65_536
_SECRET = re.compile(r"(?:^|_)(?:KEY|KEYS|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.I)


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program came to."""

    output: str
    code: int | None
    """None when it was killed at its time limit."""


def tool_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a tool: no keys, nothing of RAGE's own, no git variables of the caller."""
    kept = {
        name: value
        for name, value in environ.items()
        if not _SECRET.search(name) and not name.startswith(("RAGE_", "GIT_"))
    }
    return kept | {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def run(
    argv: Sequence[str],
    cwd: str,
    environ: Mapping[str, str],
    timeout_s: float,
    limit: int = OUTPUT_LIMIT,
) -> Finished:
    """Run a program without input until it ends or its time is up; then kill what it started."""
    # Known again by it after it left its group; it names this process, for `rage kill`.
    call = tool_mark()
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env={**environ, **call},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        kept = _Bounded(limit)
        try:
            in_time = _read(process, kept, time.monotonic() + timeout_s)
        finally:
            # Also on Ctrl-C: a command never outlives the call that asked for it.
            _kill_all(process.pid, call)
        code = process.wait()
    return Finished(kept.text(), code if in_time else None)


def _read(process: subprocess.Popen[bytes], kept: _Bounded, deadline: float) -> bool:
    """Read until the end of output; False when the time was up before the program ended."""
    pipe = process.stdout
    if pipe is None:  # pragma: no cover - Popen was given PIPE
        return True
    os.set_blocking(pipe.fileno(), False)
    ended: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if ended is None and process.poll() is not None:
                ended = now
            if ended is not None and now - ended > _DRAIN_S:
                return True  # a grandchild holds the pipe; it is killed by the caller
            if ended is None and now >= deadline:
                return False
            if not selector.select(0.05):
                if ended is not None:
                    return True
                continue
            chunk = os.read(pipe.fileno(), _CHUNK)
            if chunk:
                kept.add(chunk)
            elif ended is None:
                return _wait(process, deadline)
            else:
                return True


def _wait(process: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_all(pid: int, call: Mapping[str, str]) -> None:
    """Kill the group, its descendants, and whoever left both but carries the call's mark."""
    import psutil  # noqa: PLC0415 - 20 ms that only a command pays

    try:
        descendants = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        descendants = []
    _kill_group(pid)
    # Anything that forked meanwhile shows up in the next look.
    for _ in range(5):
        for process in descendants:
            with contextlib.suppress(psutil.Error):
                process.kill()
        descendants = [p for p in psutil.process_iter() if _carries(p, call)]
        if not descendants:
            return


def _carries(process: psutil.Process, call: Mapping[str, str]) -> bool:
    import psutil  # noqa: PLC0415

    try:
        # A process that is dead but not yet reaped has no environment any more.
        return call.items() <= process.environ().items()
    except (psutil.Error, OSError):
        return False


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


class _Bounded:
    """The first and the last part of a stream, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit * 2 // 5
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Take a piece in."""
        room = self._head_limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room < len(chunk) else b""
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            self._dropped += excess
            del self._tail[:excess]

    def text(self) -> str:
        """What was kept, with a marker where something was left out."""
        head = self._head.decode("utf-8", "replace")
        tail = self._tail.decode("utf-8", "replace")
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        return f"{head}\n[… {self._dropped:,} bytes left out …]\n{tail}"
