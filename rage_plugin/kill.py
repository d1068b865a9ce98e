"""`rage kill`: end every process of a run, now, from another terminal.

Separate because it must work when nothing else does: it opens no database, waits for no lock and
needs no answer from the process that drives the run. It goes by three things: a small file in the
state folder in which that process names itself (`driving`), the marks that tool calls and checks
inherit (`holder.mark`), and a tombstone that keeps a killed run from going on (`order`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from . import holder as holders
from .core.errors import RageError

if TYPE_CHECKING:
    import psutil

LIMIT_S = 2.0
"""Seconds within which everything has ended, or is named as a survivor."""

_QUIET_S = 0.15
"""How long nothing may show up where the driver lives on and could start something more."""
_STOP_S = 0.1
_STILL = ("stopped", "tracing-stop", "zombie", "dead")
_RUN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Driver:
    """The process that drives a run."""

    run: str
    holder: str
    own_process: bool
    """Whether it exists for this run alone; else a person types in it, and it is left alone."""


@dataclass(frozen=True, slots=True)
class Killed:
    """What became of the processes of a run."""

    driver: Literal["none", "alive", "dead", "unknown"]
    """How the driver was met: none is named, or its `holder.liveness`. Where it is `unknown` (in
    another machine or container) nothing was ended."""
    ended: tuple[int, ...] = ()
    """Process ids."""
    survivors: tuple[int, ...] = ()
    """Process ids of those that could not be ended, e.g. another user's."""
    seconds: float = 0.0


# --- the driver's file ---------------------------------------------------------------------------


def driving(state: Path, run: str, own_process: bool, holder: str = "") -> None:
    """Name the process that drives a run, this one without `holder`; never raises into a host.

    Where it cannot be written, the run goes on, and `kill` finds no driver.
    """
    path = _file(state)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        fresh.write_text(json.dumps(asdict(Driver(run, holder or holders.holder(), own_process))))
        fresh.replace(path)
    except OSError:
        for wrong in (fresh, path):  # better no driver than the one before
            with suppress(OSError):
                wrong.unlink()


def rest(state: Path, run: str) -> None:
    """This process drives that run no more; what another one wrote meanwhile stays."""
    found = driver(state)
    if found is not None and (found.run, found.holder) == (run, holders.holder()):
        _forget(state, found)


def driver(state: Path) -> Driver | None:
    """The process that drives a run here, by its own word; None where that is no such word."""
    path = _file(state)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        raw = json.loads(path.read_bytes())
        found = Driver(raw["run"], raw["holder"], raw["own_process"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    good = isinstance(found.run, str) and isinstance(found.holder, str)
    if not good or not isinstance(found.own_process, bool) or not _RUN.fullmatch(found.run):
        return None
    return found


def _forget(state: Path, found: Driver) -> None:
    with suppress(OSError):
        if driver(state) == found:
            _file(state).unlink()


def _file(state: Path) -> Path:
    return state / "driver.json"


# --- the tombstone -------------------------------------------------------------------------------


def order(state: Path, run: str) -> None:
    """Say durably that a run was killed; `RageError` where that cannot be written."""
    path = _tombstone(state, run)
    try:
        for place, flags in ((path, os.O_CREAT | os.O_WRONLY), (state, os.O_RDONLY)):
            opened = os.open(place, flags, 0o600)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)
    except OSError as error:
        raise RageError(
            f"That run {run} was killed cannot be written: {error.strerror}",
            kept="Its processes are ended all the same",
            next="rage stop, once the folder can be written",
        ) from error


def ordered(state: Path, run: str) -> bool:
    """Whether a run was killed and its state does not say so yet; one `stat`."""
    return os.path.exists(_tombstone(state, run))  # noqa: PTH110 - pathlib's raises


def forget(state: Path, run: str) -> None:
    """The state says now that the run was killed."""
    with suppress(OSError):
        _tombstone(state, run).unlink()


def _tombstone(state: Path, run: str) -> Path:
    if not _RUN.fullmatch(run):
        raise RageError(f"{run!r:.80} is no id of a run", kept="Nothing was changed")
    return state / f"killed-{run}"


# --- processes -----------------------------------------------------------------------------------


def end_processes(state: Path, run: str) -> Killed:
    """End every process of a run whose driver is named here; back within about `LIMIT_S`."""
    found = driver(state)
    if found is None or found.run != run:
        return Killed("none")
    killed = end(found)
    if not killed.survivors and holders.liveness(found.holder) == "dead":
        _forget(state, found)
    return killed


def reap(state: Path) -> Killed:
    """End what a driver left behind that was killed itself; a living one and its own stay."""
    found = driver(state)
    if found is None or holders.liveness(found.holder) != "dead":
        return Killed("none")
    return end_processes(state, found.run)


def end(target: Driver) -> Killed:
    """End every process of a driver; one that lives and is not the run's own goes on."""
    began = time.monotonic()
    how, pid = holders.liveness(target.holder), holders.pid_of(target.holder)
    if how == "unknown" or pid is None:
        return Killed(how)
    hunt = _Hunt(target)
    hunt.run(began + LIMIT_S)
    survivors = {p.pid for p in hunt.met if _lives(p)}
    if target.own_process and holders.liveness(target.holder) == "alive":
        survivors.add(pid)  # this very process, or one above it
    ended = {p.pid for p in hunt.met} - survivors
    seconds = time.monotonic() - began
    return Killed(how, tuple(sorted(ended)), tuple(sorted(survivors)), seconds)


@dataclass(slots=True)
class _Hunt:
    """One search for the processes of a driver, until nobody is found any more."""

    target: Driver
    met: set[psutil.Process] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    """The driver, and whatever it started that may have driven a run of its own."""
    chief: psutil.Process | None = None
    """The driver, if it lives."""
    spared: set[int] = field(default_factory=set)
    """Process ids: this one and what it was started by."""

    def __post_init__(self) -> None:
        import psutil  # noqa: PLC0415

        self.names.add(self.target.holder)
        self.spared = {1, os.getpid(), os.getppid()}
        with suppress(psutil.Error):
            self.spared.update(p.pid for p in psutil.Process().parents())
        pid = holders.pid_of(self.target.holder)
        if pid is None or pid == 1:
            return
        with suppress(psutil.Error):
            chief = psutil.Process(pid)
            # Asked after the process was taken hold of, so that it is this one that is meant.
            if holders.liveness(self.target.holder) == "alive":
                self.chief = chief

    def run(self, deadline: float) -> None:
        quiet = time.monotonic()
        while time.monotonic() < deadline:
            found = self._frozen(deadline)
            if found:
                _gone(found, min(deadline, time.monotonic() + 0.5))
                quiet = time.monotonic()
            elif self._over() or time.monotonic() - quiet > _QUIET_S:
                return
            else:
                time.sleep(0.02)

    def _over(self) -> bool:
        """Whether there is nobody left who could start something."""
        return self.chief is None or not _lives(self.chief)

    def _frozen(self, deadline: float) -> set[psutil.Process]:
        """Stop what is found until nobody new shows up, then kill: so that none can start more."""
        still: set[psutil.Process] = set()
        try:
            if self.chief is not None and self._may_end(self.chief) and _lives(self.chief):
                still.add(self.chief)
                _stop([self.chief])
            while new := self._look() - still:
                still |= new
                _stop(new)
                if time.monotonic() > deadline:
                    break
        finally:
            self.met |= still  # also on Ctrl-C: nobody is left stopped
            _signal(still, signal.SIGKILL)
        return still

    def _may_end(self, process: psutil.Process) -> bool:
        return self.target.own_process and process.pid not in self.spared

    def _look(self) -> set[psutil.Process]:
        """The living processes of the run, but for the driver of a chat."""
        import psutil  # noqa: PLC0415

        marks = {p: _marks(p) for p in psutil.process_iter()}
        found: set[psutil.Process] = set()
        while True:
            prefixes = tuple(f"{name}/" for name in self.names)
            roots = {
                p for p, values in marks.items() if any(v.startswith(prefixes) for v in values)
            }
            roots |= self._below(marks)
            found = _families(roots)
            names = {holders.name_of(p.pid) for p in found} - self.names
            if not names:
                break
            self.names |= names
        return {p for p in found if p.pid not in self.spared and _lives(p)}

    def _below(self, marks: dict[psutil.Process, tuple[str, ...]]) -> set[psutil.Process]:
        """What the driver started itself: all of it, or of a chat the tool calls and checks."""
        if self.chief is None:
            return set()
        below = _families([self.chief]) - {self.chief}
        if self.target.own_process:
            return below
        # A chat may have been started by a tool of something else, and so inherited its mark.
        inherited = marks.get(self.chief, ())
        return {p for p in below if set(marks.get(p, ())) - set(inherited)}


def _marks(process: psutil.Process) -> tuple[str, ...]:
    """The marks that a process inherited; none where they cannot be read."""
    import psutil  # noqa: PLC0415

    try:
        environ = process.environ()
    except (psutil.Error, OSError):
        return ()  # gone, or another user's
    return tuple(environ[name] for name in (holders.TOOL, holders.CHECK) if name in environ)


def _families(roots: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Processes with all that they started."""
    import psutil  # noqa: PLC0415

    found: set[psutil.Process] = set()
    for process in sorted(roots, key=lambda p: p.pid):
        if process not in found:
            found.add(process)
            with suppress(psutil.Error, OSError):
                found.update(process.children(recursive=True))
    return found


def _lives(process: psutil.Process) -> bool:
    """Not one that is dead and waits for somebody to take note."""
    import psutil  # noqa: PLC0415

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.AccessDenied:
        return True
    except (psutil.Error, OSError):
        return False


def _gone(processes: Iterable[psutil.Process], deadline: float) -> None:
    while any(_lives(p) for p in processes) and time.monotonic() < deadline:
        time.sleep(0.005)


def _stop(processes: Iterable[psutil.Process]) -> None:
    """Stop processes, and wait a moment for those that are in the middle of starting another."""
    import psutil  # noqa: PLC0415

    _signal(processes, signal.SIGSTOP)
    deadline = time.monotonic() + _STOP_S
    for process in processes:
        with suppress(psutil.Error, OSError):
            while process.status() not in _STILL and time.monotonic() < deadline:
                time.sleep(0.002)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    import psutil  # noqa: PLC0415

    for process in processes:
        with suppress(psutil.Error, OSError):
            process.send_signal(number)
