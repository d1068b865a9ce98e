"""The agent's `RAGE {…}` line: found and read leniently, validated strictly, never obeyed.

A proposal names one slice, its gates and its scope, or claims that no change is needed. It opens
nothing by itself (law 4). Only the agent's own last message is read, never a tool's output.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .lenient import Unreadable, read_object
from .model import Proposal

ASK = 'RAGE {"slice": "...", "gate": "tests/test_x.py", "scope": ["src/x.py"]}'
"""The line that packet and brief ask for; repeated as it stands, it is not a proposal."""
ASK_NO_CHANGE = 'RAGE {"no_change": "why"}'

MESSAGE_CHARS = 200_000
"""Only the end of a longer message is read."""
OBJECT_CHARS = 32_000
CANDIDATES = 20
OBJECTIVE_CHARS, ENTRY_CHARS = 200, 300
GATES, SCOPES = 20, 50

_KEYS = {
    "slice": "slice",
    "objective": "slice",
    "gate": "gate",
    "gates": "gate",
    "scope": "scope",
    "no_change": "no_change",
}
# What may stand before the word: a bullet, a number, a quote, emphasis, a code mark.
_LINE = re.compile(r"^[ \t>*+\-#`\"'_~|().:0-9\ufeff\u200b]*RAGE(?![A-Za-z0-9_])", re.MULTILINE)
_GAP = re.compile(r"(?:[\s`*_~:=>\"']|json)*\{")
_MEANT = re.compile(r"[^\n]{0,300}?\b(?:slice|objective|gates?|scope|no_change)\b")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a message proposes; without a proposal `reason` says why, empty if there is no line."""

    proposal: Proposal | None
    reason: str = ""


def parse(message: str) -> Parsed:
    """The last valid proposal in an agent's message; it never raises."""
    text = message[-MESSAGE_CHARS:].replace("\r\n", "\n").replace("\r", "\n")
    lines = list(_LINE.finditer(text))[-CANDIDATES:]
    reason = ""
    for line in reversed(lines):
        found = _candidate(text, line.end())
        if found.proposal is not None:
            return found
        reason = reason or found.reason
    return Parsed(None, reason)


def _candidate(text: str, at: int) -> Parsed:
    """What stands behind one `RAGE` at the beginning of a line."""
    gap = _GAP.match(text, at)
    if gap is None:
        return Parsed(None, "no {…} after RAGE" if _MEANT.match(text, at) else "")
    try:
        raw = read_object(text[gap.end() - 1 : gap.end() - 1 + OBJECT_CHARS])
        return Parsed(_validated(raw))
    except Unreadable as problem:
        return Parsed(None, str(problem))


def _validated(raw: dict[str, object]) -> Proposal:
    """The proposal, or `Unreadable` with what is wrong."""
    given: dict[str, object] = {}
    for key, value in raw.items():
        name = _KEYS.get(key.strip().lower())
        if name is None:
            raise Unreadable(f"unknown key {_short(key)}")
        if value in (None, "", []):
            continue
        if name in given:
            raise Unreadable(f"{name} is given twice")
        given[name] = value
    objective = _text(given.get("slice", ""), "slice", OBJECTIVE_CHARS)
    no_change = _text(given.get("no_change", ""), "no_change", ENTRY_CHARS)
    gates = _paths(given.get("gate", []), "gate", GATES)
    scope = _paths(given.get("scope", []), "scope", SCOPES)
    if no_change:
        if objective:
            raise Unreadable("both slice and no_change")
        if no_change == "why":
            raise Unreadable("no_change does not say why")
        return Proposal(no_change=no_change)
    if not objective:
        raise Unreadable("no slice and no no_change")
    return Proposal(objective=objective, gates=gates, scope=scope)


def _text(value: object, name: str, limit: int) -> str:
    """One line of words."""
    if not isinstance(value, str):
        raise Unreadable(f"{name} is not text")
    line = " ".join(value.split())
    line = "".join(c for c in line if c.isprintable())
    if len(line) > limit:
        raise Unreadable(f"{name} has {len(line)} characters, at most {limit}")
    if line and not any(c.isalnum() for c in line):
        raise Unreadable(f"{name} says nothing")
    return line


def _paths(value: object, name: str, most: int) -> tuple[str, ...]:
    """Paths, globs or test ids relative to the workspace, each once, in the order given."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        raise Unreadable(f"{name} is neither text nor a list")
    if len(values) > most:
        raise Unreadable(f"{name} has {len(values)} entries, at most {most}")
    return tuple(dict.fromkeys(_path(entry, name) for entry in values))


def _path(entry: object, name: str) -> str:
    if not isinstance(entry, str) or not entry.strip():
        raise Unreadable(f"{name} holds something that is not a path")
    path = entry.strip()
    if len(path) > ENTRY_CHARS:
        raise Unreadable(f"{name} has an entry of {len(path)} characters, at most {ENTRY_CHARS}")
    if not path.isprintable():
        raise Unreadable(f"{name} holds an unprintable character")
    if path[0] in "-@":
        raise Unreadable(f"{name} looks like an option: {_short(path)}")
    file = path.split("::", 1)[0].replace("\\", "/")
    if file.startswith(("/", "~")) or re.match(r"[A-Za-z]:/", file) or ".." in file.split("/"):
        raise Unreadable(f"{name} leaves the workspace: {_short(path)}")
    return path


def _short(text: str) -> str:
    """A value as a reason may name it."""
    return json.dumps(text[:40])
