"""What the agent is told: the brief that begins an item, the packet, the lines between turns."""

from __future__ import annotations

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


def spec_of(parts: Parts, state: RunState) -> ItemSpec:
    """The current item as its source tells it now; its criteria must be those of the intake."""
    item = state.working
    for spec in parts.backlog.resolve(state.run.target):
        if spec.id == item.id:
            if facts.item_from(spec, state.run.id, 0).criteria_hash != item.criteria_hash:
                raise RageError(
                    f"The criteria of {item.id} changed since the run began ({item.source})",
                    kept="Everything committed so far",
                    next="restore the file and /rage resume, or /rage stop and start again",
                )
            return spec
    raise RageError(
        f"{item.id} is no longer in {item.source}",
        kept="Everything committed so far",
        next="restore it and /rage resume, or /rage stop",
    )


def brief(parts: Parts, state: RunState) -> str:
    """The message that begins the current item's first turn."""
    return parts.packets.brief(state, spec_of(parts, state), parts.survey.pointers())


def packet(parts: Parts, state: RunState) -> str:
    """The packet for the next model call."""
    return parts.packets.packet(state, INSTRUCTIONS.get(state.run.phase, ""))
