"""Where runs and items may stand and how they move: the tables of `core/`, with words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from rage_plugin.core import judgement, model, phases

from . import words
from .markdown import LATER, same, source_text, table


def sections() -> tuple[str, ...]:
    """In the order of the page."""
    return (
        "## Where a run stands",
        _meanings(model.RunStatus, words.RUN_STATUS),
        "### Pause reasons",
        "The first word of `reason` in a report of a paused run.",
        _meanings(model.PauseReason, words.PAUSE_REASONS, unused=_unused_reasons()),
        "## Phases",
        _meanings(model.Phase, words.PHASES),
        "### Phase edges",
        "Any other edge raises and writes no row; so does an edge without its evidence.",
        _phase_edges(),
        "## Item states",
        _meanings(model.ItemState, words.ITEM_STATES),
        "### Item edges",
        "Any other edge raises.",
        _item_edges(),
        "### Verification of an item",
        "It is separate from the item's state.",
        _meanings(model.Verification, words.VERIFICATION),
        "### Origin of the proof",
        _meanings(judgement.Origin, words.ORIGIN),
        "## Verdicts of a check",
        "Only `pass` is a pass. None of the others opens a gate.",
        _meanings(judgement.Verdict, words.VERDICTS),
        "### Outcomes of one test",
        _meanings(judgement.Outcome, words.OUTCOMES),
    )


def _unused_reasons() -> frozenset[str]:
    """Reasons that no code gives yet: the page says so instead of promising them."""
    text = source_text(lambda path: path.name != "model.py")
    return frozenset(r for r in model.PauseReason if f"PauseReason.{r.name}" not in text)


def _phase_edges() -> str:
    rows = [
        (f"{source} → {to}", " or ".join(f"`{k}`" for k in sorted(kinds)))
        for (source, to), kinds in phases.PHASE_EDGES.items()
    ]
    return table(("edge", "evidence that it must name"), rows)


def _item_edges() -> str:
    rows = [(f"{a} → {b}", f"`{verb}`") for (a, b), verb in phases.ITEM_EDGES.items()]
    return table(("edge", "verb"), rows)


def _meanings(kind: type[StrEnum], meanings: Mapping[str, str], unused: Iterable[str] = ()) -> str:
    same(kind.__name__, kind, meanings)
    later = {name: f" {LATER.format('gives')}" for name in unused}
    rows = [(f"`{m}`", meanings[m] + later.get(m, "")) for m in kind]
    return table((re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower(), "meaning"), rows)
