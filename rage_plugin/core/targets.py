"""What a person types as TARGET, parsed: `#5`, `5`, `epic:5`, `backlog`, a path, or a foreign id.

Pure and separate, because the grammar, the backlog room and a third party's source must agree on
what a target is, and because two spellings of one target have to be one run (F004).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from .errors import UsageError

FORMS = "#5, 5, epic:5, backlog, or the path of a markdown file or folder"
MAX_LENGTH = 500

_REFERENCE = re.compile(r"#(?=\S)")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):\s*(?P<rest>\S.*)")
_NUMBER = re.compile(r"\d+(\.\d+)*")
_MARKDOWN = (".md", ".markdown")


class TargetKind(StrEnum):
    """What a target names."""

    ITEM = "item"
    EPIC = "epic"
    BACKLOG = "backlog"
    PATH = "path"
    WORD = "word"
    """A bare word: a path where one exists, else an item's id."""
    FOREIGN = "foreign"
    """`scheme:rest`, for a source that knows the scheme."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed target; two spellings of one target are equal."""

    kind: TargetKind
    value: str
    """An id without `#`, a path as it was typed, or the whole text of a foreign target."""

    def __str__(self) -> str:
        match self.kind:
            case TargetKind.ITEM:
                return f"#{self.value}"
            case TargetKind.EPIC:
                return f"epic:{self.value}"
            case _:
                return self.value


def parse_target(text: str) -> Target:
    """Parse what was typed; `UsageError` names the forms when it is none of them."""
    typed = text.strip()
    if len(typed) >= 2 and typed[0] == typed[-1] and typed[0] in "'\"":
        typed = typed[1:-1].strip()
    if not typed:
        raise UsageError("A target is missing", next=f"write {FORMS}")
    if len(typed) > MAX_LENGTH or "\0" in typed:
        raise UsageError("This is not a target", next=f"write {FORMS}")
    if typed.casefold() == "backlog":
        return Target(TargetKind.BACKLOG, "backlog")
    if _REFERENCE.match(typed) or _NUMBER.fullmatch(typed):
        return Target(TargetKind.ITEM, _id(typed, text))
    scheme = _SCHEME.fullmatch(typed)
    if scheme and scheme["scheme"].casefold() == "epic":
        return Target(TargetKind.EPIC, _id(scheme["rest"], text))
    if typed.casefold() in ("epic:", "#", "epic"):
        raise UsageError(f"The id is missing after `{typed}`", next=f"write {FORMS}")
    if scheme and ("://" in typed or not typed.lower().endswith(_MARKDOWN)):
        return Target(TargetKind.FOREIGN, typed)
    if "/" in typed or typed in (".", "..") or typed.lower().endswith(_MARKDOWN):
        return Target(TargetKind.PATH, typed)
    return Target(TargetKind.WORD, typed)


def normal_id(text: str) -> str:
    """One spelling of an id: without `#` and leading zeros, composed, other characters as `-`.

    `005` is `5` and `größere Änderung` is `größere-Änderung`; the result is empty when nothing
    of an id is left.
    """
    composed = unicodedata.normalize("NFC", text.strip().removeprefix("#"))
    joined = re.sub(r"[^\w.]+", "-", composed)
    # An id becomes part of a branch name, where `..`, a leading or a last dot are not allowed.
    plain = re.sub(r"\.{2,}", ".", joined).strip("-._")
    return re.sub(r"^0+(?=\d)", "", plain)


def _id(typed: str, text: str) -> str:
    found = normal_id(typed)
    if not found or re.search(r"\s|,", typed):
        raise UsageError(f"`{text.strip()}` is not one item's id", next=f"write {FORMS}")
    return found
