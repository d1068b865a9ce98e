"""One line of foreign text, cleaned and cut to a number of tokens: what every field is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from rage_plugin import tokens

from .sanitize import CLIP, clean_line, show

SOURCE_CHARS = 2_000
"""More of a value is not even looked at, so that a packet costs the same for any text."""
CHARS_A_TOKEN = 5
"""A field is cut to this many characters a token first, so that it is read at a glance."""


class Line:
    """A value as one safe line, from which shorter and shorter forms can be taken."""

    def __init__(self, text: str, known: Sequence[str] = ()) -> None:
        if len(text) > SOURCE_CHARS:
            # The last word goes, since half of a secret is one that no rule recognises.
            text = text[:SOURCE_CHARS].rsplit(None, 1)[0]
        self.text = clean_line(show(text, known))

    @classmethod
    def own(cls, text: str) -> Line:
        """A line in RAGE's own words, which may hold the `RAGE {…}` that it asks for."""
        line = cls("")
        line.text = clean_line(text)
        return line

    def head(self, most: int) -> str:
        """The beginning, at most `most` tokens, with "…" where something was cut."""
        return _shrink(self.text, most, _head)

    def ends(self, most: int) -> str:
        """The beginning and the end: of a path or a test id both say something."""
        return _shrink(self.text, most, _ends)

    def quoted(self, most: int) -> str:
        """The beginning in quotation marks that the text cannot close; empty if there is none."""
        inner = _shrink(self.text.replace('"', "'"), most - 2, _head)
        return f'"{inner}"' if inner else ""


def _head(text: str, keep: int) -> str:
    return text[:keep].rstrip() + CLIP


def _ends(text: str, keep: int) -> str:
    first = keep // 3
    return text[:first] + CLIP + text[first - keep :]


# Most values are the same from call to call.
@lru_cache(maxsize=256)
def _shrink(text: str, most: int, cut: Callable[[str, int], str]) -> str:
    """The longest form found that has at most `most` tokens; empty where none has."""
    keep = min(len(text), most * CHARS_A_TOKEN)
    form = text if keep == len(text) else cut(text, keep)
    while keep > 0 and not tokens.fits(form, most):
        keep = min(keep - 1, keep * most // tokens.counter().count(form))
        form = cut(text, keep)
    return form if keep > 0 else ""
