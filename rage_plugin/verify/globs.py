"""Path patterns as the profile writes them: `tests/**/*.py`, `docs`, `*.snap`.

Separate because `fnmatch` lets `*` cross a `/` and `pathlib` has no `**` before Python 3.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path relative to the root matches a pattern or lies below one that is a folder.

    A pattern without `/` matches in every folder.
    """
    # A path is its own pattern, whatever it holds: `pages/[id].tsx`.
    return any(path == p or _compiled(p).fullmatch(path) for p in patterns)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    text = pattern.removeprefix("./").rstrip("/")
    anywhere = "" if "/" in text or text == "**" else "(?:.*/)?"
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^\]/]+\])", text.removeprefix("/"))
    regex = "".join(_part(p) for p in parts)
    return re.compile(f"{anywhere}{regex}(?:/.*)?", re.DOTALL)


def _part(part: str) -> str:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in known:
        return known[part]
    if len(part) > 2 and part[0] == "[" and part[-1] == "]":
        inside = part[1:-1]
        negated = inside.startswith("!")
        body = re.escape(inside.removeprefix("!")).replace(r"\-", "-")
        return f"[{'^' if negated else ''}{body}]"
    return re.escape(part)
