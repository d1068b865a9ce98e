"""`rage chat`: lines of a person or of a pipe, one at a time, whenever the host is idle."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .signals import Ending, as_interrupt, no_more

if TYPE_CHECKING:
    from .host import Host

PROMPT = "> "
EXIT = frozenset({"/exit", "/quit"})


def chat(host: Host) -> int:
    """Read, work, read again; ends at `/exit`, Ctrl-D, the end of the pipe, SIGTERM or SIGHUP."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if terminal:
        import readline  # noqa: F401, PLC0415 - line editing and recall for input()
    ending = as_interrupt()
    try:
        if terminal:
            help_line = "/rage help tells what RAGE does; " if host.rage is not None else ""
            host.ui.note(f"{help_line}/exit or Ctrl-D leaves, Ctrl-C ends a turn")
        host.hooks.session_start()
        while (line := _read(terminal, ending)) is not None and line.strip() not in EXIT:
            if line.strip():
                _send(host, line)
    finally:
        no_more()
        host.close()
    return 128 + ending.signum if ending.signum else 0


def _send(host: Host, line: str) -> None:
    try:
        host.send(line)
    except KeyboardInterrupt:  # between two of the host's steps: the program goes on all the same
        host.ui.note("interrupted")


def _read(terminal: bool, ending: Ending) -> str | None:
    """The next line without its end, None when there is none; Ctrl-C clears the line."""
    while not ending.signum:
        try:
            if terminal:
                return input(PROMPT)
            line = sys.stdin.readline()
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            continue
        return line.rstrip("\r\n") if line else None
    return None
