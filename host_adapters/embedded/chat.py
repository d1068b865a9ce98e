"""`rage chat`: lines of a person or of a pipe, one at a time, whenever the host is idle."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .host import Host

PROMPT = "> "
EXIT = frozenset({"/exit", "/quit"})


def chat(host: Host) -> int:
    """Read, work, read again; ends at `/exit`, Ctrl-D or the end of the pipe."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if terminal:
        import readline  # noqa: F401, PLC0415 - line editing and recall for input()
    host.hooks.session_start()
    try:
        while (line := _read(terminal)) is not None and line.strip() not in EXIT:
            if line.strip():
                _send(host, line)
    finally:
        host.close()
    return 0


def _send(host: Host, line: str) -> None:
    try:
        host.send(line)
    except KeyboardInterrupt:  # between two of the host's steps: the program goes on all the same
        host.ui.note("interrupted")


def _read(terminal: bool) -> str | None:
    """The next line without its end, None when there is none; Ctrl-C clears the line."""
    while True:
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
