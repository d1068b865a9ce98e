"""Which process drives a run, named so that no other one is ever mistaken for it.

Separate because everything that asks whether a driver still lives must ask alike, and because the
marks that tool calls and checks carry begin with the same name. A name says more than a process id,
which is reused, and rests on no wall clock, which is set.

`v2:HOST:BOOT:SPACE:PID:START`. On Linux BOOT is the kernel's boot id, SPACE the process and time
namespaces, START the clock ticks from boot to the start of the process. Elsewhere BOOT and SPACE
are `-` and START is the second that the system noted when the process began.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Liveness = Literal["alive", "dead", "unknown"]

TOOL = "AGENT_TOOL_CALL"
"""The environment variable that a host sets for the processes of a tool call."""
CHECK = "RAGE_CHECK"
"""The environment variable that the processes of a check inherit."""

_VERSION = "v2"
_NONE = "-"
_TOLERANCE_S = 2.0
"""How far two readings of one start time may lie apart where they rest on the wall clock."""


def holder() -> str:
    """This process's name, without spaces; the same as long as it lives."""
    return _own(os.getpid())


@cache
def _own(pid: int) -> str:
    """Kept, since a machine may be given another name; by process, since one may be forked."""
    return name_of(pid)


def name_of(pid: int) -> str:
    """The name of a process of this machine; with a start of `-` where that cannot be read."""
    here = _here()
    started = start(pid) or _NONE
    return ":".join([_VERSION, here.host, here.boot, here.space, str(pid), started])


def mark() -> str:
    """A new value for `TOOL` or `CHECK`: of this process, and unique to one call."""
    return f"{holder()}/{os.urandom(8).hex()}"


def tool_mark() -> dict[str, str]:
    """What a host adds to the environment of a tool call's processes; new for each call.

    By it `rage kill` finds what a tool left behind, and RAGE knows a command that a tool typed.
    """
    return {TOOL: mark()}


def liveness(name: str) -> Liveness:
    """Whether the process of that name lives; `unknown` where it cannot be seen from here.

    A name that is none (empty, `null`, garbage) is dead: it is nobody. So is a zombie, and a
    process of an earlier boot. Another machine or another container is `unknown`.
    """
    them = _parse(name)
    if them is None:
        return _first_form(name)
    here = _here()
    if them.boot != here.boot:
        booted = them.host == here.host and _NONE not in (them.boot, here.boot)
        return "dead" if booted else "unknown"
    elsewhere = them.boot == _NONE and them.host != here.host
    if elsewhere or them.space != here.space or them.start == _NONE or not _own_view():
        return "unknown"
    began = start(them.pid)
    if began is None and _hidden(them.pid):
        return "unknown"
    return "alive" if began is not None and _same(began, them.start) else "dead"


def pid_of(name: str) -> int | None:
    """The process id in a name; None where the name is none."""
    them = _parse(name)
    if them is not None:
        return them.pid
    found = _first_parts(name)
    return found[0] if found else None


def start(pid: int) -> str | None:
    """When a process of this machine began; None where there is none, or a zombie."""
    if not has_proc():
        created = _created(pid)
        return None if created is None else f"{created:.2f}"
    fields = stat(pid)
    return None if len(fields) < 20 or fields[0] in "ZXx" else fields[19]


def has_proc() -> bool:
    """Whether processes are seen in `/proc`, as Linux shows them."""
    return Path("/proc/self/stat").exists()


def stat(pid: int) -> list[str]:
    """`/proc/PID/stat` from the state on (field 3 of proc(5)); empty where there is none."""
    # The name of a program, which comes before, may hold spaces and parentheses.
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


# --- the parts of a name -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a process id means something."""

    host: str
    boot: str
    space: str


@dataclass(frozen=True, slots=True)
class _Name(_Place):
    pid: int
    start: str


def _parse(name: str) -> _Name | None:
    parts = name.split(":")
    if len(parts) != 6 or parts[0] != _VERSION or not all(parts):
        return None
    pid = _pid(parts[4])
    return None if pid is None else _Name(parts[1], parts[2], parts[3], pid, parts[5])


def _pid(text: str) -> int | None:
    if not re.fullmatch("[1-9][0-9]{0,9}", text):
        return None
    return int(text) if int(text) < 1 << 31 else None


def _here() -> _Place:
    return _Place(_host(), _read("/proc/sys/kernel/random/boot_id") or _NONE, _space())


def _host() -> str:
    """A hash: a machine's id is not for everybody who sees an environment.

    With the host's name, because machines that were made from one image may share the id.
    """
    import platform  # noqa: PLC0415

    text = f"{_read('/etc/machine-id')}\n{platform.node()}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _space() -> str:
    """The namespaces that give a process id and a start time their meaning."""
    found = [_link(f"/proc/self/ns/{kind}") for kind in ("pid", "time")]
    return ".".join("".join(filter(str.isdigit, text)) or _NONE for text in found)


def _own_view() -> bool:
    """Whether `/proc`, where there is one, shows the namespace that this process lives in."""
    return _link("/proc/self") in ("", str(os.getpid()))


def _hidden(pid: int) -> bool:
    """Whether there is such a process and this user may not see it (`hidepid`)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return not Path(f"/proc/{pid}").exists()
    except OSError:
        return False
    return False


def _same(one: str, other: str) -> bool:
    if "." not in one:
        return one == other
    try:
        return abs(float(one) - float(other)) <= _TOLERANCE_S
    except ValueError:
        return False


def _read(path: str) -> str:
    try:
        opened = os.open(path, os.O_RDONLY)  # a third of pathlib's time, for each process there is
        try:
            return os.read(opened, 4096).decode("utf-8", "surrogateescape").strip()
        finally:
            os.close(opened)
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _created(pid: int) -> float | None:
    """Seconds since the epoch, by the wall clock; None where there is none, or a zombie."""
    import psutil  # noqa: PLC0415 - where a name is of this system's own form it is not needed

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.AccessDenied:
        return None
    except (psutil.Error, OverflowError):
        return None


# --- the first form: `PID:SECONDS` ----------------------------------------------------------------


def _first_form(name: str) -> Liveness:
    """A name that an earlier version wrote: dead only if nobody of about that age has the id."""
    found = _first_parts(name)
    if found is None:
        return "dead"
    created = _created(found[0])
    return "alive" if created is not None and abs(created - found[1]) <= _TOLERANCE_S else "dead"


def _first_parts(name: str) -> tuple[int, float] | None:
    text, _, seconds = name.partition(":")
    pid = _pid(text)
    if pid is None or not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", seconds):
        return None
    return pid, float(seconds)
