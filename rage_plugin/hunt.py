"""Find every process of a driver, and end it before it can start another.

Separate from `kill.py` because it knows processes only: no file, no run. A process belongs to a
driver that carries one of its marks, wherever it was reparented to, and that descends from it.
What is found is stopped first and killed when nobody new shows up.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from . import holder as holders

LIMIT_S = 2.0
"""Seconds within which everything has ended, where the machine has a moment for it."""
PATIENCE_S = 10.0
"""Seconds after which no more is tried, where new processes show up all the time."""

_QUIET_S = 0.15
"""How long nothing may show up where the driver lives on and could start something more."""
_SETTLE_S = 1.0
"""How long new ones are stopped before the first are killed."""
_STOP_S = 0.1
_DYING_S = 0.5
"""How long a process may take to stop, and to be gone after its SIGKILL."""
_MARKS = re.compile(rf"(?:\A|\0)(?:{holders.TOOL}|{holders.CHECK})=([^\0]*)".encode())


@dataclass(slots=True)
class Hunt:
    """One search for the processes of a driver, until nobody is found any more."""

    holder: str
    own_process: bool
    """Whether the driver is ended too, with all that it started; else only its marked ones are."""
    names: set[str] = field(default_factory=set)
    """The driver, and whatever it started that may have driven a run of its own."""
    chief: psutil.Process | None = None
    """The driver, if it lives."""
    spared: set[int] = field(default_factory=set)
    """Process ids: the first one, this one, and what this one was started by."""
    stopped: set[psutil.Process] = field(default_factory=set)
    """In this round."""
    met: set[psutil.Process] = field(default_factory=set)
    """In all rounds."""

    def __post_init__(self) -> None:
        self.names.add(self.holder)
        self.spared |= {1, os.getpid(), os.getppid()}
        with suppress(psutil.Error):
            self.spared |= {p.pid for p in psutil.Process().parents()}
        pid = holders.pid_of(self.holder)
        if pid is None or pid == 1:  # everything is below the first process
            return
        with suppress(psutil.Error):
            chief = psutil.Process(pid)
            # Asked after the process was taken hold of, so that it is this one that is meant.
            if holders.liveness(self.holder) == "alive":
                self.chief = chief

    def run(self) -> tuple[set[int], set[int]]:
        """End them; the process ids of those that are gone, and of those that are not."""
        self._rounds(time.monotonic())
        left = {p.pid for p in self.met if _lives(p)}
        return {p.pid for p in self.met} - left, left

    def _rounds(self, began: float) -> None:
        quiet = began
        while (now := time.monotonic()) - began < PATIENCE_S:
            before = len(self.met)
            if self._round():
                _wait(self.stopped, _gone, _DYING_S)
                quiet = time.monotonic()
                if quiet - began > LIMIT_S and len(self.met) == before:
                    return  # those who are left cannot be ended
            elif self.chief is None or _gone(self.chief) or now - quiet > _QUIET_S:
                return
            else:
                time.sleep(0.02)

    def _round(self) -> bool:
        """Stop what is found until nobody new shows up, then kill; whether somebody was found.

        What stands still starts nothing more while it is looked at.
        """
        self.stopped = set()
        settled: set[psutil.Process] = set()
        deadline = time.monotonic() + _SETTLE_S
        try:
            if self.chief is not None and self._may_end(self.chief):
                self._stop({self.chief})
            while new := self._look() - settled:
                self._stop(new)
                settled |= new
                if time.monotonic() > deadline:
                    break
        finally:
            _signal(self.stopped, signal.SIGKILL)  # also on Ctrl-C: nobody is left stopped
            self.met |= self.stopped
        return bool(self.stopped)

    def _may_end(self, process: psutil.Process) -> bool:
        return self.own_process and process.pid not in self.spared and _lives(process)

    def _stop(self, processes: set[psutil.Process]) -> None:
        self.stopped |= processes
        _signal(processes, signal.SIGSTOP)
        # One that is in the middle of starting another does that first.
        _wait(processes, _still, _STOP_S)

    def _look(self) -> set[psutil.Process]:
        """The living processes of the run, but for the driver of a chat."""
        seen: dict[int, _Seen] = {}
        for facts in _everybody():
            seen[facts.pid] = facts
            # Stopped at once, since one that forks and ends is soon another one.
            if self._named(facts) and (process := self._held(facts)):
                self.stopped.add(process)
                _signal([process], signal.SIGSTOP)
        while True:
            roots = {pid for pid, facts in seen.items() if self._named(facts)}
            found = _families(roots | self._below(seen), seen)
            names = {holders.name_of(pid) for pid in found} - self.names
            if not names:
                held = (self._held(seen[pid]) for pid in found)
                return {p for p in held if p is not None and _lives(p)}
            self.names |= names

    def _held(self, facts: _Seen) -> psutil.Process | None:
        """Exactly the process that was seen; None where it is gone, or spared."""
        if facts.pid in self.spared:
            return None
        with suppress(psutil.Error):
            process = psutil.Process(facts.pid)
            if holders.start(facts.pid) == facts.start:
                return process
        return None

    def _named(self, facts: _Seen) -> bool:
        """Whether a process carries a mark that the driver made."""
        return any(mark.rpartition("/")[0] in self.names for mark in facts.marks)

    def _below(self, seen: Mapping[int, _Seen]) -> set[int]:
        """What the driver started itself: all of it, or of a chat the tool calls and checks."""
        if self.chief is None or self.chief.pid not in seen:
            return set()
        chief = self.chief.pid
        below = _families({chief}, seen) - {chief}
        if self.own_process:
            return below
        # A chat may have been started by a tool of something else, and so inherited its mark.
        return {pid for pid in below if seen[pid].marks - seen[chief].marks}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one look shows of a living process."""

    pid: int
    parent: int
    start: str
    marks: frozenset[str]
    """The marks that it inherited; none where they cannot be read."""


def _everybody() -> Iterator[_Seen]:
    """Every living process of the machine, the newest first."""
    see = _in_proc if holders.has_proc() else _in_general
    for pid in reversed(psutil.pids()):
        if facts := see(pid):
            yield facts


def _in_proc(pid: int) -> _Seen | None:
    """As `_in_general`, in a fifth of the time: the run itself may keep the machine busy."""
    fields = holders.stat(pid)
    if len(fields) < 20 or fields[0] in "ZXx":
        return None
    environ = b""
    with suppress(OSError):  # another user's
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    marks = (os.fsdecode(mark) for mark in _MARKS.findall(environ))
    return _Seen(pid, int(fields[1]), fields[19], frozenset(marks))


def _in_general(pid: int) -> _Seen | None:
    environ: dict[str, str] = {}
    try:
        process = psutil.Process(pid)
        began = holders.start(pid)
        with suppress(psutil.Error, OSError):  # another user's
            environ = process.environ()
        marks = (environ[name] for name in (holders.TOOL, holders.CHECK) if name in environ)
        return _Seen(pid, process.ppid(), began, frozenset(marks)) if began else None
    except psutil.Error:
        return None


def _families(roots: set[int], seen: Mapping[int, _Seen]) -> set[int]:
    """Processes with all that they started and that was not orphaned since."""
    children: dict[int, set[int]] = {}
    for facts in seen.values():
        children.setdefault(facts.parent, set()).add(facts.pid)
    found, new = set(roots), list(roots)
    while new:
        below = children.get(new.pop(), set()) - found
        found |= below
        new += below
    return found


def _lives(process: psutil.Process) -> bool:
    """Not one that is dead and waits for somebody to take note."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.AccessDenied:
        return True
    except (psutil.Error, OSError):
        return False


def _gone(process: psutil.Process) -> bool:
    return not _lives(process)


def _still(process: psutil.Process) -> bool:
    """Stopped, or gone."""
    try:
        still = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE)
        return process.status() in still
    except (psutil.Error, OSError):
        return True


def _wait(
    processes: Iterable[psutil.Process], true: Callable[[psutil.Process], bool], limit_s: float
) -> None:
    """Wait until that is so of all of them, or for `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    for process in processes:
        while not true(process) and time.monotonic() < deadline:
            time.sleep(0.002)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.Error, OSError):
            process.send_signal(number)
