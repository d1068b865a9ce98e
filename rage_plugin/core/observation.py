"""What a tick saw, as the log keeps it: bounded, and enough to decide again from (F026).

Separate from `replay.py`, which only reads logs; this runs in every tick.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

from .decide import Seen
from .markers import Marker
from .model import Change, PauseReason, Proposal

ROOM = 1_200
"""Bytes of JSON that an observation takes at most."""
WORDS = 300
"""Characters of a free text that are kept: what a decision quotes of one at most."""
SHARE, MARKED = 400, 700
"""Bytes that gates and scope may take each, and markers: the rest is left for changed paths."""
PLAIN = Seen("", (), None, "", "done", 0, 0.0)
"""What is at its default here is not written down."""
NUMBERS = ("tree", "reason", "tokens", "now", "turn", "cosmetic", "elapsed", "stale", "size")
"""Fields that are never long."""
TEXTS = ("deviation", "stuck", "proposal_problem", "error")
KNOWN = frozenset((*NUMBERS, *TEXTS, "proposal", "markers", "changes", "cut", "more"))
T = TypeVar("T")


def recorded(seen: Seen) -> dict[str, object]:
    """An observation as JSON values, without what is at its default.

    What does not fit is left out and its field named under `cut`; `more` counts left out paths.
    """
    kept: dict[str, object] = {
        name: getattr(seen, name) for name in NUMBERS if getattr(seen, name) != getattr(PLAIN, name)
    }
    room = _Room(ROOM - _bytes(kept) - _bytes(sorted(KNOWN)))
    if seen.proposal is not None:
        proposal = {
            "objective": room.text("proposal", seen.proposal.objective),
            "no_change": room.text("proposal", seen.proposal.no_change),
            "gates": room.some("proposal", seen.proposal.gates),
            "scope": room.some("proposal", seen.proposal.scope),
        }
        kept["proposal"] = {name: value for name, value in proposal.items() if value}
    for name in TEXTS:
        if text := room.text(name, getattr(seen, name)):
            kept[name] = text
    markers = [{k: v for k, v in asdict(m).items() if v} for m in seen.markers]
    if told := room.some("markers", markers, share=MARKED):
        kept["markers"] = told
    paths = [f"{change.status} {change.path}" for change in seen.changes]
    if shown := room.some("changes", paths, share=ROOM):
        kept["changes"] = shown
    if more := len(paths) - len(shown):
        kept["more"] = more
    if room.cut:
        kept["cut"] = sorted(room.cut)
    return kept


def restored(told: Mapping[str, Any]) -> tuple[Seen, bool]:
    """The observation that was recorded, and whether it is all that the tick saw.

    What another release recorded, and this one does not know, makes it less than all.
    """
    plain = {field.name: getattr(PLAIN, field.name) for field in fields(Seen)}
    seen = {name: told.get(name, plain[name]) for name in (*NUMBERS, *TEXTS)}
    if (proposal := told.get("proposal")) is not None:
        lists = {name: tuple(proposal.get(name, ())) for name in ("gates", "scope")}
        proposal = Proposal(**{**proposal, **lists})
    markers = [
        Marker(PauseReason(m["kind"]), m.get("text", ""), tuple(m.get("options", ())))
        for m in told.get("markers", ())
    ]
    changes = tuple(Change(*line.split(" ", 1)) for line in told.get("changes", ()))
    seen |= {"size": tuple(seen["size"]), "markers": tuple(markers), "changes": changes}
    return Seen(proposal=proposal, **seen), not told.get("cut") and set(told) <= KNOWN


class _Room:
    """The bytes that are left; what does not fit is cut, and its field named."""

    def __init__(self, left: int) -> None:
        self._left = left
        self.cut: set[str] = set()

    def text(self, name: str, value: str) -> str:
        """The beginning of a text."""
        shown = value[:WORDS]
        while shown and _bytes(shown) > self._left:
            shown = shown[: len(shown) * max(self._left, 0) // _bytes(shown)]
        if shown != value:
            self.cut.add(name)
        self._left -= _bytes(shown) if shown else 0
        return shown

    def some(self, name: str, values: Sequence[T], share: int = SHARE) -> list[T]:
        """The first of a list."""
        shown: list[T] = []
        left = min(self._left, share)
        for value in values:
            if _bytes(value) > left:
                self.cut.add(name)
                break
            shown.append(value)
            left -= _bytes(value)
            self._left -= _bytes(value)
        return shown


def _bytes(value: object) -> int:
    """What a value takes in the log, with what parts it from the next."""
    text = json.dumps(value, ensure_ascii=False)
    return len(text.encode("utf-8", "backslashreplace")) + 2
