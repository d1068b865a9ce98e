"""Which finite limit a run has reached. Looked at only after evidence was."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from .config import Limits
from .model import PauseReason, Run, RunState


def dump(limits: Limits) -> str:
    """The limits as the JSON that `runs.limits` holds."""
    return json.dumps(asdict(limits), sort_keys=True)


def read(run: Run) -> Limits:
    """The limits in force for a run."""
    return Limits(**json.loads(run.limits))


def typed(configured: Limits, budget: int | None, max_iterations: int | None) -> Limits:
    """Limits with what a person typed on top: tokens and turns of the run."""
    chosen = configured
    if budget is not None:
        item = min(budget, configured.item_tokens or budget)
        chosen = replace(chosen, run_tokens=budget, item_tokens=item)
    if max_iterations is not None:
        chosen = replace(chosen, run_iterations=max_iterations, max_iterations=max_iterations)
    return chosen


def active_seconds(run: Run, now: float) -> float:
    """Wall time the run was active; a clock set back counts as no time."""
    return run.active_seconds + max(0.0, now - run.resumed_at)


def run_limit(state: RunState, now: float) -> tuple[PauseReason, str] | None:
    """The run's limit that is reached, with a sentence that names its figure."""
    limits, run = read(state.run), state.run
    if _over(run.iteration, limits.run_iterations):
        return PauseReason.LIMIT_ITERATIONS, f"{run.iteration} turns were the limit of the run"
    if _over(run.tokens, limits.run_tokens):
        return PauseReason.LIMIT_TOKENS, (
            f"{run.tokens:,} tokens used of {limits.run_tokens:,} for the run"
        )
    if _over(active_seconds(run, now), limits.wall_seconds):
        return PauseReason.LIMIT_TIME, f"{limits.wall_seconds:.0f} s were the limit of the run"
    if run.noop_turns >= limits.noop_turns:
        detail = f"{run.noop_turns} turns in a row brought no new change and no new result"
        failed = state.item.reason if state.item is not None and state.item.attempts else ""
        return PauseReason.NO_PROGRESS, f"{detail}; the last check: {failed}" if failed else detail
    if run.provider_errors >= limits.provider_errors:
        return PauseReason.PROVIDER_ERRORS, f"{run.provider_errors} provider errors in a row"
    return None


def item_limit(state: RunState) -> tuple[PauseReason, str] | None:
    """The limit that keeps the current item from a further turn."""
    limits, item = read(state.run), state.item
    if item is None:
        return None
    if _over(item.iteration, limits.max_iterations):
        return PauseReason.LIMIT_ITERATIONS, f"{item.iteration} turns were the limit of the item"
    if _over(item.tokens, limits.item_tokens):
        return PauseReason.LIMIT_TOKENS, (
            f"{item.tokens:,} tokens used of {limits.item_tokens:,} for the item"
        )
    return None


def _over(value: float, limit: float | None) -> bool:
    return limit is not None and value >= limit
