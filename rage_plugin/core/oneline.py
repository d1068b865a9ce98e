"""Any text as one line that a terminal may show.

Titles, questions and reasons come from issues and agents. A line for a person takes them through
here, so that none of them clears a screen, hides behind another or breaks a list. What a model is
shown has a stricter cleaner of its own, in `packet/`.
"""

from __future__ import annotations

import re
import unicodedata

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]")
_GONE = frozenset({"Cc", "Cf", "Cn", "Co"})


def one_line(text: str, limit: int | None = None) -> str:
    """The text on one line of at most `limit` characters, without what cannot be seen."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(_shown(c) for c in _ANSI.sub("", text))
    line = " ".join(text.split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _shown(char: str) -> str:
    if char.isspace():
        return " "
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    return "" if category in _GONE else char
