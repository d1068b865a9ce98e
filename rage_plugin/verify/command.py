"""Run one process tree within limits of time and memory, and leave no survivor.

Separate because a check is a hostile child: it floods, hangs, daemonises and holds pipes open.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from rage_plugin import holder

MARK = holder.CHECK
"""Environment variable that every process of a check inherits; survivors are found by its value."""

_GRACE_S = 0.25
"""How long a process may take to obey SIGTERM, and its pipe to close after its end."""


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
    """Why there is no exit code, or what could not be undone, as one line for a person."""


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    output_limit: int = 20_000,
    pass_fds: Sequence[int] = (),
    on_start: Callable[[int], None] | None = None,
    mark: str = "",
) -> Completed:
    """Run `argv` to its end or for `timeout_s` seconds; back after at most a second more.

    stdin is /dev/null; the command gets a session of its own; `on_start` is told its process id.
    At most `output_limit` characters of output are kept. Nothing it started survives. `env` is the
    whole environment; `MARK` is added to it, with the value of `mark` or a new one.
    """
    # Never the inherited one: a check may itself run checks, and must not end its caller's.
    mark = mark or holder.mark()
    began = time.monotonic()
    pipe, writer = os.pipe()
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**env, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except (OSError, ValueError) as error:
        os.close(pipe)
        note = f"{argv[0]} could not be started: {error}"
        return Completed(None, False, False, "", False, time.monotonic() - began, note)
    finally:
        os.close(writer)
    kept = _Kept(output_limit)
    os.set_blocking(pipe, False)
    timed_out = False
    try:
        if on_start:
            on_start(process.pid)
        timed_out = not _read_until(process, pipe, kept, began + timeout_s)
    finally:
        # Also on the way out of an interrupt: the tree must not outlive its caller.
        kill_tree(process.pid, mark, gently=process.poll() is None)
        status = process.wait()
        _drain(pipe, kept)
        os.close(pipe)
    output, truncated = kept.text()
    note = ""
    if timed_out:
        note = f"stopped at its limit of {timeout_s:g} s"
    elif status < 0:
        note = f"ended by {signal_name(-status)}"
    return Completed(
        exit_code=None if timed_out or status < 0 else status,
        timed_out=timed_out,
        killed=timed_out or status < 0,
        output=output,
        truncated=truncated,
        seconds=time.monotonic() - began,
        note=note,
    )


def kill_tree(pid: int, mark: str, *, gently: bool = False) -> None:
    """End a process, its descendants, its group and whatever carries `mark`; returns when gone.

    `gently` begins with SIGTERM, so that a process can take down what it started elsewhere.
    """
    # The list is made before the first signal: an orphan is no descendant any more.
    found = _tree(pid, mark)
    if gently:
        _signal(found, signal.SIGTERM)
        _gone(found, _GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    # A process may have forked while the list was made, so ask again until nobody answers.
    for _ in range(5):
        _signal(found, signal.SIGKILL)
        _gone(found, _GRACE_S)
        found = _tree(pid, mark)
        if not found:
            return


def kill_marked(mark: str) -> None:
    """End what a run with this `mark` left behind when its caller was killed."""
    for process in _marked(mark):
        kill_tree(process.pid, mark)


def _read_until(process: subprocess.Popen[bytes], pipe: int, kept: _Kept, deadline: float) -> bool:
    """Read the pipe until the process has ended; False when the deadline came first.

    The end of the process counts and not the end of the pipe, which a grandchild may hold.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if process.poll() is not None:
                return True
            # Woken often, because a process may end while its pipe stays open and silent.
            if selector.select(min(left, 0.02)) and not _drain(pipe, kept, at_most=64):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
                break
    return process.poll() is not None


def _drain(pipe: int, kept: _Kept, at_most: int = 1 << 20) -> bool:
    """Take what the pipe holds, `at_most` chunks; False once every writer has closed it."""
    for _ in range(at_most):
        try:
            chunk = os.read(pipe, 65_536)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        kept.add(chunk)
    return True


class _Kept:
    """The head and the tail of a stream, in memory that does not grow with it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # A character has up to four bytes.
        self._room = max(4 * limit, 1)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        missing = self._room - len(self._head)
        self._head += chunk[:missing]
        rest = chunk[missing:] if missing < len(chunk) else b""
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
            while self._tail_size - len(self._tail[0]) >= self._room:
                self._tail_size -= len(self._tail.popleft())

    def text(self) -> tuple[str, bool]:
        """At most `limit` characters and whether that is a part: a quarter head, the rest tail."""
        gap = self._size - len(self._head) - self._tail_size
        tail = b"".join(self._tail)
        whole = (bytes(self._head) + tail).decode("utf-8", "replace") if not gap else ""
        if not gap and len(whole) <= self._limit:
            return whole, False
        marker = f"\n[... cut: {self._size} bytes in all ...]\n"
        room = max(self._limit - len(marker), 0)
        begin = bytes(self._head).decode("utf-8", "replace")[: room // 4]
        after = whole or (bytes(self._head) + tail if not gap else tail).decode("utf-8", "replace")
        end = after[len(after) - (room - len(begin)) :]
        return (begin + marker + end)[: self._limit], True


def _tree(pid: int, mark: str) -> list[psutil.Process]:
    """The living among a process, its descendants, and all that inherited the mark."""
    found = {p.pid: p for p in _marked(mark)}
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        found |= {p.pid: p for p in [process, *process.children(recursive=True)]}
    return [p for p in found.values() if _lives(p)]


def _marked(mark: str) -> list[psutil.Process]:
    """Processes that inherited the mark: a daemon has no other tie to what started it."""
    found = []
    for process in psutil.process_iter():
        # Another user's processes cannot be read, and are none of ours.
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                found.append(process)
    return found


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _gone(processes: Iterable[psutil.Process], timeout_s: float) -> None:
    """Wait until none lives. Not `psutil.wait_procs`: it would reap the child before `Popen`."""
    deadline = time.monotonic() + timeout_s
    while any(_lives(p) for p in processes) and time.monotonic() < deadline:
        time.sleep(0.005)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def signal_name(number: int) -> str:
    """E.g. `SIGKILL`; a real-time signal has only its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
