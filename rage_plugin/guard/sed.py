"""sed scripts: whether one runs a program or writes a file (`e`, `w`, `W`, `s///e`, `s///w`)."""

from __future__ import annotations

import re

from .shell import Refusal

_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|[,+~!]|\s)")
_SINGLE = frozenset("dDgGhHnNpPxzF=")


def check(script: str) -> None:
    """Refuse a script that runs or writes something, and one that is not understood."""
    position = 0
    while position < len(script):
        position = _command(script, position)


def _command(script: str, at: int) -> int:
    """Check one command and return where the next begins."""
    at = _skip_addresses(script, at)
    if at >= len(script):
        return at
    letter = script[at]
    at += 1
    if letter in "{};\n" or letter in _SINGLE:
        return at
    if letter == "#" or letter in "aicrR:btT":
        return _end_of_line(script, at, stops=letter in "btT")
    if letter in "qQlL":
        return at + len(re.match(r"\s*\d*", script[at:])[0])  # type: ignore[index]
    if letter in "sy":
        return _substitution(script, at, letter)
    if letter in "ewW":
        raise Refusal(f"sed `{letter}` runs a program or writes a file", sure=True)
    raise Refusal("a sed script that is not understood")


def _skip_addresses(script: str, at: int) -> int:
    while at < len(script):
        if script[at] == "/":
            at = _flags(script, _section(script, at + 1, "/"))
        elif script[at] == "\\" and at + 1 < len(script):
            at = _flags(script, _section(script, at + 2, script[at + 1]))
        elif (match := _ADDRESS.match(script, at)) is not None:
            at = match.end()
        else:
            break
    return at


def _flags(script: str, at: int) -> int:
    while at < len(script) and script[at] in "IM":
        at += 1
    return at


def _substitution(script: str, at: int, letter: str) -> int:
    if at >= len(script):
        raise Refusal("a sed script that is not understood")
    mark = script[at]
    at = _section(script, _section(script, at + 1, mark, letter == "s"), mark)
    flags = re.match(r"[gpiIemMw0-9]*", script[at:])
    used = flags[0] if flags else ""
    if letter == "s" and ("e" in used or "w" in used):
        raise Refusal("sed `s///e` and `s///w` run a program or write a file", sure=True)
    return at + len(used)


def _section(script: str, at: int, mark: str, pattern: bool = True) -> int:
    """Where the section that ends with `mark` is over; a bracket expression may hold the mark."""
    while at < len(script):
        if script[at] == "\\":
            at += 2
        elif script[at] == mark:
            return at + 1
        elif pattern and script[at] == "[" and mark != "[":
            closing = script.find("]", at + 2 + (script[at + 1 : at + 2] == "^"))
            # GNU sed ends the section at a mark inside brackets: both readings must agree.
            if closing < 0 or mark in script[at:closing]:
                raise Refusal("a sed script that is not understood")
            at = closing + 1
        else:
            at += 1
    raise Refusal("a sed script that is not understood")


def _end_of_line(script: str, at: int, *, stops: bool) -> int:
    """The end of a command that takes the rest of its line (labels also end at `;` and `}`)."""
    while at < len(script):
        if script[at] == "\\" and not stops:
            at += 2
            continue
        if script[at] == "\n" or (stops and script[at] in ";}"):
            return at + 1
        at += 1
    return at
