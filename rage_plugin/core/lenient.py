"""A small reader for an object that a model wrote: JSON, and what models write instead of JSON.

Apart from `proposal.py` because it knows syntax only. It reads a flat object whose values are
strings, other scalars or lists of those; single or typographic quotes, bare keys, trailing commas
and line breaks in strings are allowed. Time is linear and nothing nests, so nothing recurses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

DEPTH = 3


class Unreadable(Exception):
    """The text is not what was asked for; the message is a short reason."""


_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<mark>[{}\[\],:])
      | (?P<string>"(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+'
                    | \u201c[^\u201d]*\u201d | \u2018[^\u2019]*\u2019)
      | (?P<bare>[^\s{}\[\],:"'\u201c\u2018]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_WORDS: dict[str, object] = {
    "null": None,
    "None": None,
    "true": True,
    "True": True,
    "false": False,
    "False": False,
}


def read_object(text: str) -> dict[str, object]:
    """The object that the text begins with; what follows it is ignored. Raises `Unreadable`."""
    tokens = list(_tokens(text))
    source = text[: tokens[-1][2]]
    try:
        return dict(_once(json.loads(source, object_pairs_hook=_Pairs, parse_constant=_refuse)))
    except ValueError:
        return _once(_Reader(tokens).pairs())


class _Pairs(list[tuple[str, object]]):
    """An object before its keys are known to differ."""


def _once(pairs: object) -> dict[str, object]:
    """The pairs as a flat mapping in which every key stands once."""
    if not isinstance(pairs, _Pairs):
        raise Unreadable("not an object")
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable(f"{json.dumps(key[:40])} is given twice")
        inner = value if isinstance(value, list) else []
        if isinstance(value, _Pairs) or any(isinstance(v, list) for v in inner):
            raise Unreadable(f"{json.dumps(key[:40])} holds an object or a list in a list")
        found[key] = value
    return found


def _refuse(name: str) -> object:
    raise Unreadable(f"{name} is not a value")


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """(kind, text, end) of every token of the first object; `Unreadable` if it does not end."""
    at = depth = 0
    while match := _TOKEN.match(text, at):
        kind, value, at = str(match.lastgroup), match[0], match.end()
        if kind == "space":
            continue
        if kind == "mark":
            depth += (value in "{[") - (value in "}]")
            if depth > DEPTH:
                raise Unreadable("nested too deeply")
        yield kind, value, at
        if depth <= 0:
            return
    raise Unreadable("the object does not end")


class _Reader:
    """Reads the tokens of one object, once, from left to right."""

    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self._tokens = [(kind, value) for kind, value, _ in tokens]
        self._at = 0

    def pairs(self) -> _Pairs:
        """`{ key : value , … }`."""
        found = _Pairs()
        self._expect("{")
        while not self._take("}"):
            key = self._scalar()
            self._expect(":")
            found.append((str(key), self._list() if self._take("[") else self._scalar()))
            if not self._take(","):
                self._expect("}")
                break
        return found

    def _list(self) -> list[object]:
        found: list[object] = []
        while not self._take("]"):
            found.append(self._scalar())
            if not self._take(","):
                self._expect("]")
                break
        return found

    def _scalar(self) -> object:
        kind, value = self._next()
        if kind == "string":
            return _ESCAPE.sub(_unescaped, value[1:-1])
        if kind == "bare":
            # A path or a test id without quotes goes on over colons: `tests/test_x.py::test_y`.
            while self._peek(":") and self._peek(":", 1):
                self._at += 2
                value += "::" + self._next()[1]
            return _WORDS.get(value, value)
        raise Unreadable(f"unexpected {value}")

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise Unreadable("the object does not end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self, mark: str, ahead: int = 0) -> bool:
        at = self._at + ahead
        return at < len(self._tokens) and self._tokens[at] == ("mark", mark)

    def _take(self, mark: str) -> bool:
        if self._peek(mark):
            self._at += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise Unreadable(f"{mark} is missing")


def _unescaped(match: re.Match[str]) -> str:
    """What an escape stands for; an unknown one stays, since a path may hold a backslash."""
    code = match[1]
    if code[0] == "u" and len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, match[0])
