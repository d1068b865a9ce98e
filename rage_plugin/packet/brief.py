"""The brief: once an item, all that its source says, in at most `packet.brief_tokens` tokens.

What an author of issues wrote (title, text, criteria) stands inside fences. Where the whole is too
long, the text is cut first, at a line's end and down to `TEXT_LEAST` characters; then criteria and
gates from the end of their lists; then the rest of the text. Each cut says what was left out and
which file holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rage_plugin.core.model import ItemSpec, RunState
from rage_plugin.core.proposal import ASK, ASK_NO_CHANGE
from rage_plugin.tokens import fits

from . import render
from .clip import Line
from .sanitize import FENCED_CHARS, enclose, fenceable

LEAST_CAP = 500
TEXT_LEAST = 600
NO_TEXT = "(no description)"
_NOMINAL = 1_500
_TITLE, _ENTRY, _POINTER = 60, 80, 24
_DIRECTIVES, _POINTERS = 4, 6


def compose(
    state: RunState,
    spec: ItemSpec,
    pointers: Sequence[str],
    *,
    cap: int,
    nonce: str,
    known: Sequence[str],
) -> str:
    """The brief of one item; the same arguments give the same bytes."""
    brief = _Brief(state, spec, pointers, nonce, known, min(cap, _NOMINAL) / _NOMINAL)
    whole = min(len(brief.text), FENCED_CHARS)
    least = min(whole, TEXT_LEAST)
    entries = brief.entries

    def room(chars: int, count: int) -> bool:
        return fits(brief.render(chars, count), cap)

    if not room(least, entries):
        entries = _most(entries, lambda count: room(least, count))
    if not room(whole, entries):
        whole = _most(whole, lambda chars: room(chars, entries))
    return brief.render(whole, entries)


def _most(below: int, holds: Callable[[int], bool]) -> int:
    """The largest number under `below` for which `holds`, by halving; 0 if there is none.

    A cut may fall on a line's end, so that one more character need not mean more text.
    """
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class _Brief:
    """Everything that a brief may say, cleaned and redacted once, then cut to any length."""

    def __init__(
        self,
        state: RunState,
        spec: ItemSpec,
        pointers: Sequence[str],
        nonce: str,
        known: Sequence[str],
        scale: float,
    ) -> None:
        entry = int(_ENTRY * scale)
        self._nonce = nonce
        self._source = Line(spec.source, known).ends(int(_POINTER * scale))
        self._run = Line(state.run.id).head(12)
        self._item = Line(spec.id, known).head(12)
        title = Line(spec.title, known).head(int(_TITLE * scale))
        self._title = fenceable(title, nonce)
        body = fenceable(spec.body, nonce, known)
        self.text = body if body.strip() else NO_TEXT
        self._criteria = [
            f"{number}. {fenceable(Line(text, known).head(entry), nonce)}"
            for number, text in enumerate(spec.criteria, start=1)
        ]
        self._gates = [f"- {Line(gate, known).ends(entry)}" for gate in spec.gates]
        self._directives = "\n".join(
            f"- {Line(text, known).quoted(entry)}" for text in state.directives[-_DIRECTIVES:]
        )
        names = [Line(path, known).ends(int(_POINTER * scale)) for path in pointers[:_POINTERS]]
        self._pointers = ", ".join(name for name in names if name)
        self.entries = max(len(self._criteria), len(self._gates))

    def render(self, chars: int, entries: int) -> str:
        """The brief with so many characters of text and so many criteria and gates."""
        text = enclose(
            self.text, "issue", self._nonce, cap_chars=chars, rest=self._source, head=self._title
        )
        criteria = self._listed(self._criteria, entries)
        if criteria:
            criteria = enclose(criteria, "criteria", self._nonce, cap_chars=len(criteria))
        return render.brief(
            {
                "run": self._run,
                "item": self._item,
                "text": text,
                "criteria": criteria,
                "gates": self._listed(self._gates, entries),
                "directives": self._directives,
                "pointers": self._pointers,
                "ask": ASK,
                "ask_no_change": ASK_NO_CHANGE,
            }
        )

    def _listed(self, lines: Sequence[str], most: int) -> str:
        """The first lines of a list, and how many more its source has."""
        left = len(lines) - most
        more = [f"… and {left} more in {self._source or 'the source'}"] if left > 0 else []
        return "\n".join([*lines[:most], *more])
