"""The phase table and the item table are exactly those of the design."""

from __future__ import annotations

import itertools

import pytest

from rage_plugin.core.errors import IllegalTransition
from rage_plugin.core.model import ItemState, Phase
from rage_plugin.core.phases import ITEM_EDGES, PHASE_EDGES, check_item_edge, check_phase_edge

EVERY_KIND = frozenset().union(*PHASE_EDGES.values())


def test_phase_edges_are_those_of_the_design() -> None:
    """F008: review → analyze → generate → execute → (review | done), and back to analyze."""
    p = Phase
    assert set(PHASE_EDGES) == {
        (p.REVIEW, p.ANALYZE),
        (p.ANALYZE, p.GENERATE),
        (p.GENERATE, p.EXECUTE),
        (p.EXECUTE, p.REVIEW),
        (p.EXECUTE, p.DONE),
        (p.GENERATE, p.ANALYZE),
        (p.EXECUTE, p.ANALYZE),
    }


@pytest.mark.parametrize("edge", list(itertools.product(Phase, Phase)))
def test_any_other_phase_edge_raises(edge: tuple[Phase, Phase]) -> None:
    """F008: an edge that the table does not have raises whatever evidence is named."""
    if edge in PHASE_EDGES:
        check_phase_edge(*edge, EVERY_KIND)
    else:
        with pytest.raises(IllegalTransition):
            check_phase_edge(*edge, EVERY_KIND)


@pytest.mark.parametrize("edge", list(PHASE_EDGES))
def test_no_phase_edge_without_its_evidence(edge: tuple[Phase, Phase]) -> None:
    """F025: each edge names the kinds of evidence that justify it, and no other will do."""
    for kind in PHASE_EDGES[edge]:
        check_phase_edge(*edge, frozenset({kind}))
    with pytest.raises(IllegalTransition):
        check_phase_edge(*edge, frozenset())
    with pytest.raises(IllegalTransition):
        check_phase_edge(*edge, EVERY_KIND - PHASE_EDGES[edge])


def test_items_have_eleven_edges_and_terminal_states_no_exit() -> None:
    """F092: exactly 11 edges; DONE, FAILED and SKIPPED are final."""
    assert len(ITEM_EDGES) == 11
    final = {ItemState.DONE, ItemState.FAILED, ItemState.SKIPPED}
    assert not any(source in final for source, _ in ITEM_EDGES)
    for edge in itertools.product(ItemState, ItemState):
        if edge in ITEM_EDGES:
            assert check_item_edge(*edge) == ITEM_EDGES[edge]
        else:
            with pytest.raises(IllegalTransition):
                check_item_edge(*edge)
