"""Whether two versions of a file differ in comments and white space alone.

Such a change is not a new attempt: repeating it would only throw a flaky gate's dice again.
"""

from __future__ import annotations

import io
import tokenize

_IGNORED = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENCODING})
_BY_KIND = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.ENDMARKER})


def cosmetic(path: str, before: bytes | None, after: bytes | None) -> bool:
    """True if nothing that runs differs: by tokens in Python, by white space elsewhere."""
    if before is None or after is None:
        return before == after
    if before == after:
        return True
    if path.endswith((".py", ".pyi")):
        try:
            return _tokens(before) == _tokens(after)
        except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
            return False
    return before.split() == after.split()


def _tokens(source: bytes) -> list[tuple[int, str]]:
    return [
        (t.type, "" if t.type in _BY_KIND else t.string)
        for t in tokenize.tokenize(io.BytesIO(source).readline)
        if t.type not in _IGNORED
    ]
