"""Which finite limit a run has reached. Looked at only after evidence was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from .config import Amount, Limits
from .model import Item, PauseReason, Run, RunState


def dump(limits: Limits) -> str:
    """The limits as the JSON that `runs.limits` holds."""
    return json.dumps(asdict(limits), sort_keys=True)


def read(run: Run) -> Limits:
    """The limits in force for a run."""
    return Limits(**json.loads(run.limits))


def typed(
    configured: Limits,
    budget: Amount | None = None,
    max_iterations: Amount | None = None,
    time: Amount | None = None,
    state: RunState | None = None,
) -> Limits:
    """Limits with what a person typed on top: tokens, turns and seconds of the run.

    Of a run that goes on, `state`: where its item's own limit holds it up, that one moves too.
    """
    chosen = configured
    if budget is not None:
        total = _whole(budget.applied(configured.run_tokens))
        own = configured.item_tokens
        if budget.more or (own is not None and state is not None and _held_by_item(state, own)):
            own = _whole(budget.applied(own)) if budget.more else total
        elif own is not None and total is not None:
            own = min(own, total)
        chosen = replace(chosen, run_tokens=total, item_tokens=own)
    if max_iterations is not None:
        chosen = replace(
            chosen,
            run_iterations=_whole(max_iterations.applied(configured.run_iterations)),
            max_iterations=_whole(max_iterations.applied(configured.max_iterations)),
        )
    if time is not None:
        chosen = replace(chosen, wall_seconds=time.applied(configured.wall_seconds))
    return chosen


def _held_by_item(state: RunState, own: int) -> bool:
    refused = refused_call(state.run)
    alone = refused is not None and not refused.whole
    return alone or (state.item is not None and state.item.tokens >= own)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that is reached, with a sentence that names its figure."""

    reason: PauseReason
    detail: str
    whole: bool = True
    """Of the run, and not of the current item alone."""

    def encode(self) -> str:
        """As `runs.refused_call` holds it."""
        return f"{self.reason} {'run' if self.whole else 'item'}: {self.detail}"


def before_call(state: RunState, unbooked: int, worst: int, elapsed: float) -> Reached | None:
    """Why the next model call must not be made: its worst case does not fit what is left (F043).

    `unbooked` tokens and `elapsed` seconds were spent since the state was written last.
    """
    limits, run, item = read(state.run), state.run, state.item
    spent = run.tokens + unbooked
    if not _fits(spent, worst, limits.run_tokens):
        return _next_call(spent, limits.run_tokens, worst, "run")
    if _over(run.active_seconds + elapsed, limits.wall_seconds):
        return _time(limits)
    if item is None:
        return None
    spent = item.tokens + unbooked
    if not _fits(spent, worst, limits.item_tokens):
        return _next_call(spent, limits.item_tokens, worst, "item")
    return _costs_too_much(item, limits.token_multiple, spent)


def breaker(state: RunState, size: tuple[int, int]) -> Reached | None:
    """Whether an item came to a multiple of what was expected: tokens, files, lines (F068, F069).

    The expectation is a person's (`estimate` in the item), else the most that a finished item of
    this workspace cost; without either there is none, and the other limits hold.
    """
    item, limits = state.working, read(state.run)
    reached = _costs_too_much(item, limits.token_multiple, item.tokens)
    if reached is not None or limits.scope_multiple is None:
        return reached
    for what, came, expected in (
        ("files", size[0], item.expected_files),
        ("lines", size[1], item.expected_lines),
    ):
        if expected and came > limits.scope_multiple * expected:
            detail = f"{item.id} changes {came:,} {what}, and {expected:,} were expected"
            return Reached(PauseReason.CIRCUIT_BREAKER, detail, whole=False)
    return None


def alert_due(state: RunState, unbooked: int = 0) -> tuple[int, int] | None:
    """Tokens spent and the budget, where the person must be told now: once a budget (F044)."""
    limits, run = read(state.run), state.run
    budget, spent = limits.run_tokens, run.tokens + unbooked
    if budget is None or run.alerted == budget or spent < limits.alert_at * budget:
        return None
    return spent, budget


def refused_call(run: Run) -> Reached | None:
    """The limit that the last refused model call ran into."""
    if not run.refused_call:
        return None
    head, _, detail = run.refused_call.partition(": ")
    reason, _, scope = head.partition(" ")
    return Reached(PauseReason(reason), detail, scope == "run")


def run_limit(state: RunState) -> Reached | None:
    """The run's limit that is reached, or that the next call would have gone over."""
    limits, run = read(state.run), state.run
    refused = refused_call(run)
    if refused is not None and refused.whole:
        return refused
    if _over(run.iteration, limits.run_iterations):
        detail = f"{run.iteration} turns were the limit of the run"
        return Reached(PauseReason.LIMIT_ITERATIONS, detail)
    if _over(run.tokens, limits.run_tokens):
        detail = f"{run.tokens:,} tokens used of {limits.run_tokens:,} for the run"
        return Reached(PauseReason.LIMIT_TOKENS, detail)
    if _over(run.active_seconds, limits.wall_seconds):
        return _time(limits)
    if run.noop_turns >= limits.noop_turns:
        detail = f"{run.noop_turns} turns in a row brought no new change and no new result"
        failed = state.item.reason if state.item is not None and state.item.attempts else ""
        detail = f"{detail}; the last check: {failed}" if failed else detail
        return Reached(PauseReason.NO_PROGRESS, detail)
    if run.provider_errors >= limits.provider_errors:
        detail = f"{run.provider_errors} provider errors in a row"
        return Reached(PauseReason.PROVIDER_ERRORS, detail)
    return None


def item_limit(state: RunState) -> Reached | None:
    """The limit that keeps the current item from a further turn."""
    limits, item = read(state.run), state.item
    if item is None:
        return None
    if _over(item.iteration, limits.max_iterations):
        detail = f"{item.iteration} turns were the limit of the item"
        return Reached(PauseReason.LIMIT_ITERATIONS, detail, whole=False)
    if _over(item.tokens, limits.item_tokens):
        detail = f"{item.tokens:,} tokens used of {limits.item_tokens:,} for the item"
        return Reached(PauseReason.LIMIT_TOKENS, detail, whole=False)
    return refused_call(state.run) or _costs_too_much(item, limits.token_multiple, item.tokens)


def _next_call(spent: int, limit: int | None, worst: int, whose: str) -> Reached:
    detail = f"{spent:,} tokens used of {limit:,} for the {whose}"
    if worst:
        detail += f", and the next call may take {worst:,}"
    return Reached(PauseReason.LIMIT_TOKENS, detail, whole=whose == "run")


def _time(limits: Limits) -> Reached:
    detail = f"{limits.wall_seconds:.0f} s were the limit of the run"
    return Reached(PauseReason.LIMIT_TIME, detail)


def _costs_too_much(item: Item, multiple: float | None, spent: int) -> Reached | None:
    if multiple is None or not item.expected_tokens or spent <= multiple * item.expected_tokens:
        return None
    detail = f"{item.id} comes to {spent:,} tokens, and {item.expected_tokens:,} were expected"
    return Reached(PauseReason.CIRCUIT_BREAKER, detail, whole=False)


def _fits(spent: int, worst: int, limit: int | None) -> bool:
    return limit is None or (spent < limit and spent + worst <= limit)


def _over(value: float, limit: float | None) -> bool:
    return limit is not None and value >= limit
