"""Untrusted text made safe to show: what nobody can see goes, the rest is bounded and fenced.

Nothing is recognised by its meaning, since an honest issue may quote an attack. Text is put where
it can only be data; what it may cause is decided elsewhere.

What goes: ANSI sequences, C0 and C1 controls (not newline and tab), every format character (Cf:
bidi controls, zero-width characters, tags, soft hyphens) and the other characters that render as
nothing. A zero-width joiner stays between two emoji, where it is part of the picture. What stays:
everything that a person would see, in its own normalisation. Lone surrogates become U+FFFD.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from .invisible import invisible
from .redact import redact

CLIP = "…"
FENCED_CHARS = 8_000
"""The most characters of one untrusted text (F116)."""

# An unterminated string sequence loses its introducer only, so that it cannot hide what follows.
_ANSI = re.compile(
    r"""(?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]
      | (?: \x1b[\]PX^_] | [\x9d\x90\x98\x9e\x9f] )
        [^\x00-\x1f\x7f-\x9f]* (?: \x07 | \x1b\\ | \x9c )
      | \x1b [ -/]* [0-~]""",
    re.VERBOSE,
)
_NEWLINE = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_EMOJI = "\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_STRAY_JOINER = re.compile(rf"(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])")
_RAGE_LINE = re.compile(r"(?<![A-Za-z0-9])RAGE(?=(?:[\s`*_~:=>\"']|json)*\{)")


class _Clean(dict[int, int | str | None]):
    """A translation table that is worked out for each code point when it is first met."""

    def __missing__(self, point: int) -> int | str | None:
        category = unicodedata.category(chr(point))
        fate: int | str | None = point
        if category == "Cs":
            fate = "\ufffd"
        elif category == "Cc":
            fate = point if point in (0x09, 0x0A) else None
        elif invisible(point):
            fate = point if point == 0x200D else None
        self[point] = fate
        return fate


_CLEAN = _Clean()


def clean_block(text: str) -> str:
    """The text without what a person cannot see; line ends become newlines and stay."""
    if text.isascii() and text.isprintable():
        return text
    plain = _NEWLINE.sub("\n", _ANSI.sub("", text))
    return _STRAY_JOINER.sub("", plain.translate(_CLEAN))


def clean_line(text: str, limit: int | None = None) -> str:
    """The text on one line, runs of white space as one blank, at most `limit` characters."""
    line = " ".join(clean_block(text).split())
    return line if limit is None else clip(line, limit)


def clip(text: str, limit: int) -> str:
    """The first characters, at most `limit`, the last of them "…" where something was cut."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + CLIP


def defuse(text: str) -> str:
    """The text without anything that reads as a `RAGE {…}` line if an agent repeats it."""
    return _RAGE_LINE.sub("RAGE·", text)


def show(text: str, known: Sequence[str] = ()) -> str:
    """A block of untrusted text as it may be shown: cleaned, secrets redacted, defused."""
    return defuse(redact(clean_block(text), known))


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, ended at a line's end where one lies in the second half."""
    if len(text) <= limit:
        return text
    head = text[: max(limit, 0)]
    line = head.rfind("\n")
    return head[:line] if line > limit // 2 else head


def fence(
    text: str,
    kind: str,
    nonce: str,
    *,
    cap_chars: int = FENCED_CHARS,
    known: Sequence[str] = (),
    rest: str = "",
) -> str:
    """Untrusted text between two markers that carry a nonce: cleaned, redacted, capped (F116).

    The nonce is taken out of the text, so nothing inside can close the fence. `rest` says where
    the whole text lies in case it was cut. Raises `ValueError` for a nonce that is too plain.
    """
    return enclose(fenceable(text, nonce, known), kind, nonce, cap_chars=cap_chars, rest=rest)


def fenceable(text: str, nonce: str, known: Sequence[str] = ()) -> str:
    """Text as it may stand between the markers, not yet capped."""
    if not re.fullmatch(r"[0-9a-zA-Z]{8,64}", nonce):
        raise ValueError("a fence needs a nonce of 8 to 64 letters and digits")
    body = re.sub(re.escape(nonce), "[nonce]", show(text, known), flags=re.IGNORECASE)
    return body.strip("\n")


def enclose(
    body: str, kind: str, nonce: str, *, cap_chars: int, rest: str = "", head: str = ""
) -> str:
    """The markers around a `fenceable` text, under a head line; where it is cut, a line says so."""
    kept = cut(body, cap_chars)
    lines = [head] if head else []
    lines += [kept] if kept else []
    if len(kept) < len(body):
        where = f"; the whole text is in {rest}" if rest else ""
        lines.append(f"[cut after {len(kept)} of {len(body)} characters{where}]")
    return "\n".join([f"<<<UNTRUSTED {kind} {nonce}", *lines, f"{nonce}>>>"])
