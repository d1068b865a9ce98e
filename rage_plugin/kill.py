"""`rage kill`: end every process of a run, now, from another terminal.

Separate because it must work when nothing else does: it opens no database, waits for no lock and
needs no answer from the process that drives the run. It goes by three things: a small file in the
state folder in which that process names itself (`driving`), the marks that tool calls and checks
inherit (`holder.mark`, looked for by `hunt`), and a tombstone that keeps a killed run from going on
(`order`).
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from . import holder as holders
from .core.errors import RageError
from .hunt import LIMIT_S, Hunt

__all__ = [
    "LIMIT_S", "Driver", "Killed", "driver", "driving", "end", "end_processes", "forget", "order",
    "ordered", "reap", "rest",
]  # fmt: skip

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
    """End every process of a run whose driver is named here; within `LIMIT_S`."""
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
    ended, survivors = Hunt(target.holder, target.own_process).run()
    if target.own_process and holders.liveness(target.holder) == "alive":
        survivors |= {pid}  # this very process, or one above it
    seconds = time.monotonic() - began
    return Killed(how, tuple(sorted(ended)), tuple(sorted(survivors)), seconds)
