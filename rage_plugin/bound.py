"""A run that a session of this process drives: what its hooks ask and note between two ticks.

Apart from `active.py`, which says what each hook answers; here is what an answer rests on.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import bootstrap, control, loop
from .core import limits, recovery
from .core.model import RunState, RunStatus
from .core.signature import action_signature
from .hookspecs import Session, ToolCall, ToolOutcome, Turn

ERROR_CHARS = 200
"""How much of a failed call's text is kept."""


@dataclass(slots=True)
class Bound:
    """A run, its lease, and the turn under way."""

    run: str
    room: bootstrap.Workspace
    session: Session
    lease: loop.Lease
    since: float
    """When the last turn was counted, on the clock that cannot jump."""
    plan: int
    """The plan version that the turn began under."""
    working: bool = False
    """Whether the agent is in the middle of a turn."""
    stuck: str = ""
    """An action that failed again and again in this turn."""

    def state(self) -> RunState | None:
        """The run as it stands, while it is active and this session drives it."""
        state = self.room.store.load(self.run)
        return state if self.holds(state) and state.run.status is RunStatus.ACTIVE else None

    def holds(self, state: RunState) -> bool:
        """Whether nobody took the run over since it was bound."""
        return loop.Lease.of(state.run) == self.lease

    def begin(self, plan_version: int) -> None:
        """A model call is made: the first of a turn fixes the plan that the turn is under."""
        if not self.working:
            self.working, self.plan = True, plan_version

    def ended(self, turn: Turn) -> loop.Ended:
        """The finished turn with what was booked in it; the next one begins."""
        tokens = self.room.accounting.unbooked(self.room.store.load(self.run))
        now = self.room.parts.clock.monotonic()
        ended = loop.Ended(turn, tokens, now - self.since, self.plan, self.stuck)
        self.working, self.stuck = False, ""
        return ended

    def counted(self, plan_version: int) -> None:
        """The turn was counted: time runs anew, under the plan of now."""
        self.since, self.plan = self.room.parts.clock.monotonic(), plan_version

    def unaffordable(self, state: RunState, worst: int) -> limits.Reached | None:
        """The limit that a call of at most `worst` tokens could go over; it is recorded once."""
        unbooked = self.room.accounting.unbooked(state)
        elapsed = self.room.parts.clock.monotonic() - self.since
        reached = limits.before_call(state, unbooked, worst, elapsed)
        if reached is not None:
            control.refuse_call(self.room.parts, self.run, reached, self.lease.fence)
        return reached

    def alert(self, state: RunState) -> str:
        """What the person is told when a budget is nearly spent, once a budget; else nothing."""
        unbooked = self.room.accounting.unbooked(state)
        due = limits.alert_due(state, unbooked)
        if due is None:
            return ""
        control.alert(self.room.parts, self.run, unbooked, self.lease.fence)
        return f"{due[0]:,} of {due[1]:,} tokens of the run are spent"

    def repeated(self, state: RunState, call: ToolCall) -> str | None:
        """The error of a call that failed before, as often as is allowed, on this very evidence."""
        action, item = action_signature(call.name, call.args), state.run.current_item or ""
        seen = self.room.store.failed_calls(self.run, item, action)
        most = limits.read(state.run).same_action
        if len(seen) < most:
            return None
        error = recovery.stuck(seen, loop.evidence_now(self.room.parts, state), most)
        if error is not None:
            self.stuck = f"{call.name}: {error}"
        return error

    def note_failed(self, call: ToolCall, outcome: ToolOutcome) -> None:
        """Remember a failed call with the evidence that it failed on; an observation, no state."""
        state = self.room.store.load(self.run)
        data: dict[str, object] = {
            "tool": call.name,
            "error": " ".join(outcome.text.split())[:ERROR_CHARS],
            "evidence": loop.evidence_now(self.room.parts, state),
        }
        self._observe(state, f"failed:{action_signature(call.name, call.args)}", data)

    def note(self, data: dict[str, object]) -> None:
        """An observation of a tool call, with the plan that it was made under."""
        state = self.room.store.load(self.run)
        self._observe(state, "tool", {**data, "plan_version": state.run.plan_version})

    def _observe(self, state: RunState, kind: str, data: dict[str, object]) -> None:
        item, now = state.run.current_item or "", self.room.parts.clock.now()
        self.room.store.observe(self.run, item, kind, data, now)
