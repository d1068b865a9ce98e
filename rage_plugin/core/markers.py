"""Markers in a text by which an agent says that only a person can decide (F061-F064).

Separate because plan, report and diff are read alike. A marker stands in square brackets; prose
never is one. In doubt a text is read as a marker: a needless pause costs a word, a missed one
builds the wrong thing.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from .model import PauseReason

READ = 16_000_000
"""Characters that are read: all of a text, or the first half and the last half of this."""
TEXT, OPTION, OPTIONS = 300, 100, 9
"""The most characters of a marker's text and of an option, and the most options."""


@dataclass(frozen=True, slots=True)
class Marker:
    """One thing that only a person can decide, as the agent put it."""

    kind: PauseReason
    text: str = ""
    """On one line, at most `TEXT` characters; empty for a bare marker."""
    options: tuple[str, ...] = ()
    """The answers that a question offers."""


_MARKDOWN_LINE_END = re.compile(r"(\r\n?|\n)")
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Never `ESC [ C`, which would hide the marker from whoever sees no escapes.
_ESCAPES = re.compile(r"(?:\x1b\[|\x9b)(?:[0-9;:?]++[A-Za-z]|[mKJH])")
_PLAIN = re.compile(r"[\n -~]*+")
_FENCE = re.compile(r" {0,3}(`{3,}+(?=[^`]*$)|~{3,}+)")

# Emphasis may stand inside the brackets. A dash needs a blank: `[critical-path]` is none. Two words
# need no mark before what they say, the one word does: `[critical path]` is none.
_GAP = r"[\s_*`]*+"
_HEAD = re.compile(
    rf"""\[{_GAP}
    (?: (?P<NEEDS_CLARIFICATION> NEEDS? [\s_*-]*+ CLARIFICATIONS? )
      | (?P<SPEC_DEVIATION> SPEC [\s_*-]*+ DEVIATIONS? )
      | (?P<CRITICAL_ISSUE> CRITICAL (?: [\s_*-]*+ ISSUES? )? ) )
    (?: (?P<bare> {_GAP} [!?.]*+ \\? \] )
      | {_GAP} (?: [:\u2013\u2014] | -(?=\s) | (?<=\s)- )
      | (?<!L) \s++ (?=\w) )""",
    re.VERBOSE | re.IGNORECASE,
)
_BALANCED = re.compile(r"(?:[^\[\]]++|\[[^\[\]]*+\])*+\]")
_UNCLOSED = re.compile(r"[^\[\n]{0,400}")
_KINDS = (
    PauseReason.NEEDS_CLARIFICATION,
    PauseReason.SPEC_DEVIATION,
    PauseReason.CRITICAL_ISSUE,
)
# Not markers: an index, a link, a class in a regular expression.
_INDEXED = re.compile(r"(?:[A-Za-z0-9_)\]])\Z")
_ESCAPED = re.compile(r"\\[nrt]\Z")
_LINKED = re.compile(r"\([^\s()]*+(?:\s+(?:\"[^\"\n]*+\"|'[^'\n]*+')\s*+)?\)|[+{]|[*?]\$")
_QUESTION = re.compile(r"(?:^|\s)[-\u2013\u2014]+\s|\?(?:\s*[-\u2013\u2014:]\s)?")


class _Fold(dict[int, int | str | None]):
    """Look-alikes of letters, brackets and blanks become plain; what renders as nothing goes."""

    def __missing__(self, point: int) -> int | str | None:
        char = chr(point)
        category = unicodedata.category(char)
        plain = unicodedata.normalize("NFKC", char)
        fate: int | str | None = point
        if category == "Cs":
            fate = "\ufffd"
        elif category == "Cf" or point in _NOTHING:
            fate = None
        elif category == "Cc":
            fate = point if char.isspace() else None
        elif len(plain) == 1 and plain.isascii() and (plain.isalpha() or plain in "[]:-_|?! "):
            fate = plain
        elif point in (0x3010, 0x3014):
            fate = "["
        elif point in (0x3011, 0x3015):
            fate = "]"
        self[point] = fate
        return fate


# Default_Ignorable_Code_Point apart from Cf: fillers, joiners, variation selectors, plane 14.
_NOTHING = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0),
        *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)),
    )
)
_FOLD = _Fold()


def scan(text: str, *, code_fences: bool = True) -> tuple[Marker, ...]:
    """All markers of a text, each once, in order.

    `[NEEDS CLARIFICATION: which port? - 80 | 8080]`, `[SPEC_DEVIATION]`, `[CRITICAL: text]` and
    the like, in any case, with blank, `_` or `-` between the words, with invisible characters
    anywhere, over at most one line break; a text whose bracket is not closed by then ends with its
    line. Not markers are `a[CRITICAL]`, `[critical](url)` and `[critical]+`. With `code_fences`
    off, what stands in fenced code is not read. Linear time; see `READ`.
    """
    if len(text) > READ:
        text = f"{text[: READ // 2]}\n\n{text[-READ // 2 :]}"
    if not code_fences:
        text = _unfenced(text)
    return tuple(dict.fromkeys(_markers(_folded(text))))


def _unfenced(text: str) -> str:
    """The text with empty lines for fenced code; a fence that is never closed ends with the text.

    Looks at the text as Markdown does, before anything is folded, so that nothing becomes a fence.
    """
    lines, fence = _MARKDOWN_LINE_END.split(text), ""
    for n in range(0, len(lines), 2):  # between them stand the line ends
        line = lines[n]
        opened = None if fence else _FENCE.match(line)
        if fence or opened:
            lines[n] = ""
        if opened:
            fence = opened[1]
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return "".join(lines)


def _folded(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    # What stands invisible between the two characters of a line end makes no second one.
    return _LINE_END.sub("\n", _ESCAPES.sub("", text).translate(_FOLD))


def _markers(text: str) -> Iterator[Marker]:
    breaks = [found.start() for found in re.finditer(r"\n", text)]
    brackets = [found.start() for found in re.finditer(r"\]", text)]
    closed = 0
    for head in _HEAD.finditer(text):
        start, end = head.span()
        lines = text.count("\n", start, end)
        if lines > 1 or (start != closed and _is_index(text, start)):
            continue
        body = ""
        if head["bare"] is None:
            stop = _after(breaks, end, 1 - lines, len(text))
            body, end = _body(text, end, stop, _after(brackets, end, 0, stop))
        if not _LINKED.match(text, end):
            closed = end
            yield _marker(next(kind for kind in _KINDS if head[kind]), body)


def _is_index(text: str, start: int) -> bool:
    """Whether a name or a bracket stands before; the letter of an escaped line end is no name."""
    before = text[max(start - 2, 0) : start]
    return bool(_INDEXED.search(before)) and not _ESCAPED.search(before)


def _after(places: list[int], start: int, skip: int, default: int) -> int:
    """The first of the places from `start` on, but for those to skip."""
    found = bisect_left(places, start) + skip
    return min(places[found], default) if found < len(places) else default


def _body(text: str, start: int, stop: int, bracket: int) -> tuple[str, int]:
    """What a marker says, and where it ends."""
    balanced = _BALANCED.match(text, start, stop)
    if balanced:
        return balanced[0][:-1], balanced.end()
    if bracket < stop:
        return text[start:bracket], bracket + 1
    unclosed = _UNCLOSED.match(text, start, stop)
    return (unclosed[0], unclosed.end()) if unclosed else ("", start)


def _marker(kind: PauseReason, body: str) -> Marker:
    text = _clean(body)
    if kind is not PauseReason.NEEDS_CLARIFICATION or "|" not in text:
        return Marker(kind, _clip(text, TEXT))
    # "which port? - 80 | 8080": the first option follows the last dash or question mark before it.
    question, first = text, text[: text.index("|")]
    asked = list(_QUESTION.finditer(first))
    if asked:
        question, first = text[: asked[-1].end()], first[asked[-1].end() :]
    offered = [first, *text[text.index("|") + 1 :].split("|")]
    options = [_clip(_clean(option), OPTION) for option in offered]
    question = question.rstrip("-\u2013\u2014: ") if asked else text
    return Marker(kind, _clip(question or text, TEXT), tuple(o for o in options if o)[:OPTIONS])


def _clean(text: str) -> str:
    return " ".join(text.split()).strip(" *_`\\")


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"
