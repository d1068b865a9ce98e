"""What a run works with: the rooms behind their ports, and the one way to write to a run.

Apart from `loop.py` since a person's words (`control.py`) need the same without a tick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .core.config import ProjectConfig
from .core.errors import StaleWrite
from .core.events import Event
from .core.model import RunState
from .core.ports import Backlog, Clock, Deliver, Packets, Store, Survey, Verifier

WRITE_RETRIES = 50


@dataclass(frozen=True, slots=True)
class Parts:
    """The rooms behind their ports, as `bootstrap` wired them for one workspace."""

    workspace: str
    """Identity of the repository: the real path of its git common dir."""
    root: str
    config: ProjectConfig
    store: Store
    backlog: Backlog
    verifier: Verifier
    deliver: Deliver
    packets: Packets
    survey: Survey
    clock: Clock
    sink: Callable[[RunState, str], None]
    """Told of what happened after it was recorded; its failure never flips a state."""


def write(parts: Parts, run: str, events: Callable[[RunState], list[Event]]) -> RunState:
    """Decide on what holds now and write; decide again when somebody wrote first."""
    for _ in range(WRITE_RETRIES):
        state = parts.store.load(run)
        new = events(state)
        if not new:
            return state
        try:
            parts.store.append(run, state.run.version, new, parts.clock.now())
        except StaleWrite:
            continue
        after = parts.store.load(run)
        for event in new:
            if event.kind.startswith(("run_", "item_")):
                parts.sink(after, event.kind)
        return after
    raise StaleWrite("The run is being written to all the time", next="try again")
