"""What a person sees of the host, behind a protocol so that the loop never prints."""

from __future__ import annotations

import contextlib
import os
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TextIO

PATIENCE_S = 1.5
"""Seconds of a silent model after which a person is told that it is waited for."""


class Ui(Protocol):
    """Everything the host tells a person."""

    def text(self, piece: str) -> None:
        """A piece of the model's answer, as it arrives."""
        ...

    def end_text(self) -> None:
        """The model's answer is complete."""
        ...

    def tool(self, name: str, args: Mapping[str, object]) -> None:
        """A tool is about to run."""
        ...

    def result(self, status: str, text: str) -> None:
        """What the tool came to: ok, error or blocked."""
        ...

    def say(self, text: str) -> None:
        """An answer or a report of RAGE."""
        ...

    def note(self, line: str) -> None:
        """One line about the host's own state: an error, an interrupt."""
        ...

    def progress(self, line: str) -> None:
        """One line about what RAGE is doing."""
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """Around a model call: a person is told when the answer does not begin at once."""
        ...


class Terminal:
    """Plain lines on one stream. Control characters of a model or a tool are not passed on."""

    def __init__(self, out: TextIO | None, answers: TextIO | None = None) -> None:
        """`answers` takes what RAGE says where it must not be mixed with the progress.

        None is a stream that the caller closed, as Python gives it.
        """
        self._out = out
        self._answers = answers or out
        self._open = False
        self._silent = False

    def move(self, out: TextIO | None, answers: TextIO | None) -> None:
        """Write to other streams from now on; `rage run` keeps standard output for its result."""
        self._out, self._answers = out, answers

    def text(self, piece: str) -> None:
        """Written at once, without waiting for the end of a line."""
        self._silent = False
        _write(self._out, printable(piece))
        self._open = self._open if not piece else not piece.endswith("\n")

    def end_text(self) -> None:
        """Ends the line if one is open."""
        if self._open:
            self._line("")
            self._open = False

    def tool(self, name: str, args: Mapping[str, object]) -> None:
        """`· name  argument` on one line."""
        self.end_text()
        shown = next((v for v in args.values() if isinstance(v, str)), "")
        self._line(f"  · {name}  {_clip(shown)}".rstrip(), _DIM)

    def result(self, status: str, text: str) -> None:
        """Only what did not go well is worth a line."""
        if status != "ok":
            self._line(f"    {status}: {_clip(text)}", _YELLOW)

    def say(self, text: str) -> None:
        """The whole text, on lines of its own."""
        self.end_text()
        if text:
            shown = "\n".join(_marked(line, self._answers) for line in printable(text).split("\n"))
            _write(self._answers, shown + "\n")

    def note(self, line: str) -> None:
        """One line, marked so that it cannot be mistaken for the model's words."""
        self.end_text()
        self._line(f"  ! {_clip(line, 500)}", _YELLOW)

    def progress(self, line: str) -> None:
        """One line, marked as RAGE's."""
        self.end_text()
        self._line(f"  » {_clip(line, 500)}", _CYAN)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """One line once it takes longer than `PATIENCE_S`; nothing in a pipe or a log."""
        timer = threading.Timer(PATIENCE_S, self._still_waiting)
        timer.daemon = True
        self._silent = True
        if self._out is not None and self._out.isatty():
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._silent = False

    def _still_waiting(self) -> None:
        if self._silent:
            self._line("  … waiting for the model", _DIM)

    def _line(self, text: str, style: str = "") -> None:
        _write(self._out, _painted(text, style, self._out) + "\n")


def _write(stream: TextIO | None, text: str) -> None:
    """Write at once. A reader that went away misses lines, and what is worked on goes on."""
    if stream is None:
        return
    with contextlib.suppress(OSError):
        stream.write(text)
        stream.flush()


def printable(text: str) -> str:
    """The text without characters that steer a terminal; newline and tab stay."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _STEERING)


_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN = "1", "2", "31", "32", "33", "36"
_MARKS = {"✓": _GREEN, "✗": _RED, "?": _YELLOW, "R": _BOLD}
"""The first character of a report's line, and how the line is shown; R begins `RAGE run`."""


def _painted(text: str, style: str, stream: TextIO | None) -> str:
    """The text in a style, where a person sees it and did not say NO_COLOR (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if not (style and text and stream and stream.isatty()) or plain:
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def _marked(line: str, stream: TextIO | None) -> str:
    """A line of a report, coloured by its mark."""
    words = line.split(None, 1)
    known = len(words) == 2 and (words[0] in _MARKS or words[0] == "RAGE")
    return _painted(line, _MARKS[words[0][0]] if known else "", stream)


_STEERING = frozenset({"Cc", "Cf", "Cs"})


def _clip(text: str, limit: int = 100) -> str:
    first = printable(text).strip().split("\n", 1)[0]
    return first if len(first) <= limit else first[: limit - 1] + "…"
