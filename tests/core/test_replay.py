"""A run's decisions, made once more from its log."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin.core import lifecycle
from rage_plugin.core.decide import Seen
from rage_plugin.core.events import encode
from rage_plugin.core.markers import Marker
from rage_plugin.core.model import Change, PauseReason, Proposal
from rage_plugin.core.observation import recorded, restored

WORDS = st.text(max_size=40)
MARKERS = st.builds(
    Marker,
    st.sampled_from(
        [
            PauseReason.SPEC_DEVIATION,
            PauseReason.NEEDS_CLARIFICATION,
            PauseReason.CRITICAL_ISSUE,
        ]
    ),
    WORDS,
    st.lists(WORDS, max_size=3).map(tuple),
)


def sights(words: st.SearchStrategy[str], most: int) -> st.SearchStrategy[Seen]:
    """Observations with texts and lists of some size."""
    several = st.lists(words, max_size=most).map(tuple)
    return st.builds(
        Seen,
        st.sampled_from(["", "a" * 40, "t1"]),
        st.lists(st.builds(Change, st.sampled_from("AMDT"), words), max_size=most).map(tuple),
        st.none() | st.builds(Proposal, words, several, several, words),
        words,
        st.sampled_from(["done", "limit", "interrupt", "error"]),
        st.integers(0, 10**9),
        st.floats(0, 1e10),
        error=words,
        turn=st.booleans(),
        cosmetic=st.booleans(),
        elapsed=st.floats(0, 1e6),
        size=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
        markers=st.lists(MARKERS, max_size=min(most, 4)).map(tuple),
        deviation=words,
        stale=st.booleans(),
        stuck=words,
    )


def as_stored(told: object) -> dict[str, object]:
    return json.loads(json.dumps(told))


@given(sights(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12), 3))
def test_an_observation_survives_the_log(seen: Seen) -> None:
    """F026: what a usual tick saw comes back as it was."""
    assert restored(as_stored(recorded(seen))) == (seen, True)


@settings(max_examples=200)
@given(sights(st.text(max_size=500), 60))
def test_a_tick_is_bounded_and_says_what_it_left_out(seen: Seen) -> None:
    """F048: whatever a tick saw, its event stays under 1.5 KB; what came back whole is the same."""
    event = lifecycle.seen(recorded(seen))
    assert len(encode(event).encode("utf-8", "backslashreplace")) < 1_500 - 200
    again, whole = restored(as_stored(recorded(seen)))
    assert whole == (again == seen)
