"""The decisions of a run once more, from its log alone (F026).

A tick records what it saw. From that and the folded state the policy decides anew, and each step is
held against what the log holds next; words of a person and of hooks are inputs, and only folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .decide import Walk
from .fold import apply
from .model import RunState
from .observation import recorded, restored
from .ports import LoggedEvent
from .retrace import Different, Tick

__all__ = ["Replay", "recorded", "replay", "replayed"]
SHOWN = 20
"""Differences that a person is shown; the JSON has all."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What deciding again came to."""

    ticks: int
    decisions: int
    """Steps that came out as the log has them."""
    differences: tuple[str, ...]
    """One plain line each; the first of a tick ends its comparison."""
    skipped: int
    """Ticks that saw more than the log keeps, where a difference says nothing."""


def replay(events: Sequence[LoggedEvent]) -> Replay:
    """Fold a whole log, and at each tick decide again what it decided."""
    ticks = decisions = skipped = 0
    differences: list[str] = []
    state: RunState | None = None
    for number, row in enumerate(events):
        try:
            state = apply(state, row.event)
        except (ValueError, KeyError, TypeError) as error:
            differences.append(f"event {row.seq} ({row.event.kind}) cannot be folded: {error}")
            break
        if row.event.kind != "tick":
            continue
        ticks += 1
        try:
            seen, whole = restored(row.event.data["seen"])  # type: ignore[arg-type]
        except (ValueError, KeyError, TypeError, AttributeError):
            skipped += 1  # written by another release
            continue
        tick = Tick(Walk(state, seen), events, number)
        try:
            tick.decide()
        except Different as different:
            if whole and tick.whole:
                differences.append(str(different))
            else:
                skipped += 1
        decisions += tick.decisions
    return Replay(ticks, decisions, tuple(differences), skipped)


def replayed(events: Sequence[LoggedEvent]) -> tuple[str, dict[str, object]]:
    """The replay for a person, and as JSON."""
    done = replay(events)
    lines = [f"{done.decisions} decisions of {done.ticks} ticks were made again from the log."]
    if done.skipped:
        lines.append(f"{done.skipped} ticks cannot be compared: they saw more than the log keeps.")
    if not done.differences:
        lines.append("The policy of today decides the same.")
    else:
        lines.append("The policy of today decides otherwise:")
        lines += [f"  {line}" for line in done.differences[:SHOWN]]
        if (more := len(done.differences) - SHOWN) > 0:
            lines.append(f"  and {more} more")
    data: dict[str, object] = {
        "ticks": done.ticks,
        "decisions": done.decisions,
        "differences": list(done.differences),
        "skipped": done.skipped,
        "same": not done.differences,
    }
    return "\n".join(lines), data
