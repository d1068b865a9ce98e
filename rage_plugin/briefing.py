"""What the agent is told: the brief that begins an item, the packet, the lines between turns."""

from __future__ import annotations

import json
from dataclasses import replace

from .core import facts, proposal
from .core.errors import RageError
from .core.model import ItemSpec, Phase, RunState
from .parts import Parts

GO_ON = "Go on with the RAGE task."
ASK_AGAIN = f"Before you go on, answer with one line: {proposal.ASK}"
INSTRUCTIONS = {
    Phase.ANALYZE: f"Choose one slice, say it in one line, then make it: {proposal.ASK}",
    Phase.GENERATE: "Make the change inside the scope, then rest: RAGE checks and commits.",
    Phase.EXECUTE: "Rest: RAGE runs the checks.",
}


def spec_of(parts: Parts, state: RunState) -> ItemSpec | None:
    """The current item as its source tells it now; None where it is no longer there."""
    try:
        found = [s for s in parts.backlog.resolve(state.run.target) if s.id == state.working.id]
    except RageError:
        return None
    return found[0] if found else None


def deviation(parts: Parts, state: RunState) -> str:
    """How the current item's criteria differ from those hashed at the intake; empty if not (F143).

    The words name the new criteria's hash, so that another change is another deviation.
    """
    item = state.working
    spec = spec_of(parts, state)
    if spec is None:
        return f"{item.id} is no longer in {item.source}"
    now = facts.item_from(spec, state.run.id, 0)
    if now.criteria_hash == item.criteria_hash:
        return ""
    before = len(json.loads(item.criteria))
    return (
        f"the criteria of {item.id} in {item.source} are not those of the start: "
        f"{before} then, {len(spec.criteria)} now ({now.criteria_hash[:8]})"
    )


def brief(parts: Parts, state: RunState) -> str:
    """The message that begins the current item's first turn: by the criteria of the intake."""
    item = state.working
    spec = spec_of(parts, state) or ItemSpec(item.id, item.title, "", item.source)
    agreed = replace(
        spec, criteria=tuple(json.loads(item.criteria)), gates=tuple(json.loads(item.gates))
    )
    return parts.packets.brief(state, agreed, parts.survey.pointers())


def packet(parts: Parts, state: RunState) -> str:
    """The packet for the next model call."""
    return parts.packets.packet(state, INSTRUCTIONS.get(state.run.phase, ""))
