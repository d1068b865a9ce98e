"""The tables of phases, items and runs: every legal edge, and the evidence an edge must name."""

from __future__ import annotations

from .errors import IllegalTransition
from .model import ItemState, Phase, RunStatus

_P = Phase
PHASE_EDGES: dict[tuple[Phase, Phase], frozenset[str]] = {
    # (from, to): kinds of evidence, one of which the transition must name
    (_P.REVIEW, _P.ANALYZE): frozenset({"review"}),
    (_P.ANALYZE, _P.GENERATE): frozenset({"proposal", "default_slice"}),
    (_P.GENERATE, _P.EXECUTE): frozenset({"change", "delegation", "test", "no_change"}),
    (_P.GENERATE, _P.ANALYZE): frozenset({"correction", "scope", "replan"}),
    (_P.EXECUTE, _P.ANALYZE): frozenset({"judgement", "correction"}),
    (_P.EXECUTE, _P.REVIEW): frozenset({"judgement"}),
    (_P.EXECUTE, _P.DONE): frozenset({"judgement"}),
}

_S = ItemState
ITEM_EDGES: dict[tuple[ItemState, ItemState], str] = {
    (_S.PENDING, _S.CLAIMED): "claim",
    (_S.CLAIMED, _S.IN_PROGRESS): "start",
    (_S.CLAIMED, _S.DONE): "complete",
    (_S.IN_PROGRESS, _S.DONE): "complete",
    (_S.CLAIMED, _S.FAILED): "fail",
    (_S.IN_PROGRESS, _S.FAILED): "fail",
    (_S.PENDING, _S.SKIPPED): "skip",
    (_S.CLAIMED, _S.SKIPPED): "skip",
    (_S.IN_PROGRESS, _S.SKIPPED): "skip",
    (_S.CLAIMED, _S.PENDING): "release",
    (_S.IN_PROGRESS, _S.PENDING): "release",
}


RUN_EDGES: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.ACTIVE: frozenset(RunStatus) - {RunStatus.ACTIVE},
    RunStatus.PAUSED: frozenset(RunStatus),
    # Absorbing: whatever arrives later, from whichever process, opens no run again (F142).
    RunStatus.STOPPED: frozenset(),
    RunStatus.DONE: frozenset(),
    RunStatus.FAILED: frozenset(),
}


def check_run_edge(source: RunStatus, to: RunStatus, kind: str) -> None:
    """Raise `IllegalTransition` unless a run may go there; a pause ends by `resumed` alone."""
    if to not in RUN_EDGES[source] and to is not source:
        raise IllegalTransition(f"A run that is {source} does not become {to}")
    if source is RunStatus.PAUSED and to is RunStatus.ACTIVE and kind != "resumed":
        raise IllegalTransition(f"A paused run goes on by a person's word, not by {kind}")


def check_phase_edge(source: Phase, to: Phase, evidence_kinds: frozenset[str]) -> None:
    """Raise `IllegalTransition` unless the edge exists and one needed kind of evidence is named."""
    needed = PHASE_EDGES.get((source, to))
    if needed is None:
        raise IllegalTransition(f"There is no edge from {source} to {to}")
    if not needed & evidence_kinds:
        raise IllegalTransition(
            f"{source} → {to} needs evidence of {' or '.join(sorted(needed))}, "
            f"got {', '.join(sorted(evidence_kinds)) or 'none'}"
        )


def check_item_edge(source: ItemState, to: ItemState) -> str:
    """The verb of the edge, or `IllegalTransition`; terminal states have no exits (F092)."""
    verb = ITEM_EDGES.get((source, to))
    if verb is None:
        raise IllegalTransition(f"An item cannot go from {source} to {to}")
    return verb
