"""What a host that owns its process makes of signals: an interrupt, and at the end nothing.

Separate because it is the only place that touches the process's signal handlers.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Ending:
    """Whether the process was asked to end, and by which signal; 0 while it was not."""

    signum: int = 0


def as_interrupt() -> Ending:
    """SIGTERM and SIGHUP interrupt like Ctrl-C: the tool's processes end, the run is paused.

    By default they end the host alone, and a command of the agent works on with nobody watching.
    """
    ending = Ending()

    def interrupt(signum: int, frame: FrameType | None) -> None:
        ending.signum = signum
        raise KeyboardInterrupt

    # One that is ignored (nohup) stays ignored.
    theirs = [s for s in _ENDING if signal.getsignal(s) is signal.SIG_DFL]
    if _main_thread():
        for number in theirs:
            signal.signal(number, interrupt)
    return ending


def no_more() -> None:
    """A second, impatient Ctrl-C does not cut short the last milliseconds of a process.

    Nothing is put back: what follows is the answer and the exit code.
    """
    if _main_thread():
        for number in (signal.SIGINT, *_ENDING):
            signal.signal(number, signal.SIG_IGN)


def _main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
