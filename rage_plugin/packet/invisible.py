"""Which characters render as nothing, so that text can hide in them or be split by them."""

from __future__ import annotations

import unicodedata

# Not format characters, and yet invisible: fillers, joiners, variation selectors apart from the two
# that choose between text and picture, plane 14 (Unicode: Default_Ignorable_Code_Point).
_ODD = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE0E),
        *range(0xFFF0, 0xFFF9),
    )
)


def invisible(point: int) -> bool:
    """Whether a code point is a format character (Cf) or otherwise default-ignorable."""
    return unicodedata.category(chr(point)) == "Cf" or point in _ODD or 0xE0000 <= point <= 0xE0FFF


class _Visible(dict[int, int | None]):
    """A translation table that is worked out for each code point when it is first met."""

    def __missing__(self, point: int) -> int | None:
        fate = None if invisible(point) else point
        self[point] = fate
        return fate


_VISIBLE = _Visible()


def visible(text: str) -> tuple[str, list[int]]:
    """The text without invisible characters, and where each that is left stood.

    The list is empty where nothing was taken out.
    """
    if text.isascii():
        return text, []
    view = text.translate(_VISIBLE)
    if len(view) == len(text):
        return text, []
    return view, [i for i, c in enumerate(text) if _VISIBLE[ord(c)] is not None]
