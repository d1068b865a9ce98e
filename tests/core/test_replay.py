"""A run's decisions, made once more from its log."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin import control
from rage_plugin.core import lifecycle, limits
from rage_plugin.core.config import Limits
from rage_plugin.core.decide import Seen
from rage_plugin.core.errors import RageError
from rage_plugin.core.events import encode
from rage_plugin.core.markers import Marker
from rage_plugin.core.model import (
    Change,
    ItemSpec,
    PauseReason,
    Phase,
    Proposal,
    RunStatus,
    Verification,
)
from rage_plugin.core.observation import recorded, restored
from rage_plugin.core.phases import PHASE_EDGES
from rage_plugin.core.replay import replay, replayed

from ..golden.make import FOLDER, lines, read
from ..golden.scenarios import SCENARIOS
from .simulated import RUN, Logged, Simulation, TurnScript, Word, judgement, kill
from .test_decide import GATED, OPEN, SLICE

V = Verification
KINDS = st.sampled_from(
    [PauseReason.SPEC_DEVIATION, PauseReason.NEEDS_CLARIFICATION, PauseReason.CRITICAL_ISSUE]
)
SHORT = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12)


def sights(words: st.SearchStrategy[str], most: int) -> st.SearchStrategy[Seen]:
    """Observations with texts and lists of some size."""
    several = st.lists(words, max_size=most).map(tuple)
    markers = st.builds(Marker, KINDS, words, several)
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
        markers=st.lists(markers, max_size=min(most, 4)).map(tuple),
        deviation=words,
        stale=st.booleans(),
        stuck=words,
    )


def as_stored(told: object) -> dict[str, object]:
    return json.loads(json.dumps(told))


@given(sights(SHORT, 3))
def test_an_observation_survives_the_log(seen: Seen) -> None:
    """F026: what a usual tick saw comes back as it was."""
    assert restored(as_stored(recorded(seen))) == (seen, True)


@settings(max_examples=200, deadline=None)
@given(sights(st.text(st.characters(exclude_categories=[]), max_size=500), 60))
def test_a_tick_is_bounded_and_says_what_it_left_out(seen: Seen) -> None:
    """F048: whatever a tick saw, its event stays under 1.5 KB; what came back whole is the same."""
    event = lifecycle.seen(recorded(seen))
    assert len(encode(event).encode("utf-8", "backslashreplace")) < 1_500 - 200
    again, whole = restored(as_stored(recorded(seen)))
    assert whole == (again == seen)


def log(name: str) -> list[Logged]:
    return list(read((FOLDER / f"{name}.jsonl").read_text("utf-8")))


def first(rows: list[Logged]) -> str:
    """The first difference; empty if there is none."""
    return next(iter(replay(rows).differences), "")


@pytest.mark.parametrize(
    ("name", "where", "value", "told"),
    [
        (
            "repeated_error_retires_an_approach",
            "rage_plugin.core.recovery.REPEATED",
            3,
            "(phase): the log says execute → analyze (tests/test_sums.py::test_add: 2 == 3 (the "
            "same error again: this approach is retired)), the policy of today says execute → "
            "analyze (tests/test_sums.py::test_add: 2 == 3)",
        ),
        (
            "done_in_one_turn",
            "rage_plugin.core.phases.PHASE_EDGES",
            {k: v for k, v in PHASE_EDGES.items() if k != (Phase.GENERATE, Phase.EXECUTE)},
            "event 5 (phase): the log says generate → execute (1 file changed for 5), the policy "
            "of today says that this cannot be: There is no edge from generate to execute",
        ),
        (
            "alert_by_the_turns_end",
            "rage_plugin.core.limits.alert_due",
            lambda state: None,
            "(budget_alert): the log says budget_alert: 900 of 1,000 tokens of the run are spent, "
            "the policy of today says begin 6",
        ),
        (
            "breaker_of_scope",
            "rage_plugin.core.limits.breaker",
            lambda state, size: None,
            "(run_paused): the log says run_paused: 5 changes 21 lines, and 10 were expected, the "
            "policy of today says generate → execute (1 file changed for 5)",
        ),
        (
            "a_question_is_answered",
            "rage_plugin.core.decide.undecided",
            lambda state, seen: None,
            "(run_paused): the log says run_paused: 5: which sums? - whole | broken, the policy "
            "of today says analyze → generate (The agent proposed one slice of 5)",
        ),
        (
            "out_of_scope_twice",
            "rage_plugin.core.decide.outside",
            lambda changes, scope, gates: [],
            "the policy of today says generate → execute (2 files changed for 5)",
        ),
        (
            "stuck_action_is_planned_anew_once",
            "rage_plugin.core.decide.limits.run_limit",
            lambda state: None,
            "event 16 (run_paused): the log says run_paused: 2 turns in a row brought no new "
            "change and no new result, the policy of today says that the agent goes on",
        ),
        (
            "failed_item_then_the_next",
            "rage_plugin.core.decide.next_item",
            lambda items: None,
            "(item_began): the log says item_began: Reviewed 6: Say how to add, the policy of "
            "today says run_paused: #5 failed; #6, #7 waits for what came before",
        ),
    ],
)
def test_another_policy_is_named_where_it_first_differs(
    monkeypatch: pytest.MonkeyPatch, name: str, where: str, value: object, told: str
) -> None:
    """F026, F160: a changed rule shows at the first decision that comes out otherwise."""
    assert not first(log(name))
    monkeypatch.setattr(where, value)
    assert told in first(log(name))


@pytest.mark.parametrize(
    ("name", "limit", "value", "told"),
    [
        (
            "provider_errors",
            "provider_errors",
            2,
            "event 6 (turn): the log says turn: Turn 2 ended",
        ),
        ("provider_errors", "provider_errors", 4, "the policy of today says"),
        ("failed_item_then_the_next", "max_fix_attempts", 1, "the policy of today says the item f"),
        ("failed_item_then_the_next", "max_fix_attempts", 3, "the policy of today says that the a"),
        ("turns_and_time_are_finite", "wall_seconds", None, "the policy of today says that the a"),
    ],
)
def test_another_limit_is_named_where_it_first_differs(
    name: str, limit: str, value: object, told: str
) -> None:
    """F026: with other limits than a run had, it would have gone otherwise."""
    rows = log(name)
    assert not first(rows)

    def limited(row: Logged) -> Logged:
        puts = tuple(
            replace(
                put,
                values={
                    **put.values,
                    "limits": json.dumps({**json.loads(str(put.values["limits"])), limit: value}),
                },
            )
            if "limits" in put.values
            else put
            for put in row.event.puts
        )
        return replace(row, event=replace(row.event, puts=puts))

    assert told in first([limited(row) for row in rows])


DECIDED = {
    *("phase", "judged", "turn", "intent", "item_done", "item_unverified", "item_failed"),
    *("reasked", "approach_refused", "budget_alert", "run_done"),
}


@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - {"more_tests_fail_than_the_log_names"}))
def test_no_decided_event_can_be_altered_or_left_out(name: str) -> None:
    """F026: what a tick decided is held against the log, event by event, all that it says."""
    rows = log(name)
    ticks = {row.version for row in rows if row.event.kind == "tick"}
    for at, row in enumerate(rows):
        if row.version not in ticks or row.event.kind not in DECIDED:
            continue
        altered = replace(row.event, why=f"{row.event.why}, altered")
        told = first([*rows[:at], replace(row, event=altered), *rows[at + 1 :]])
        assert told.startswith(f"event {row.seq} ({row.event.kind}): the log says "), told
        assert first([*rows[:at], *rows[at + 1 :]]), f"without event {row.seq}"
        for number, put in enumerate(row.event.puts):
            if put.table in ("evidence", "outbox") or "commit" in put.values:
                continue  # these are what was found, and no decision
            values = {n: "x" if isinstance(v, str) else 12_345 for n, v in put.values.items()}
            puts = [*row.event.puts]
            puts[number] = replace(put, values=values)
            changed = replace(row, event=replace(row.event, puts=tuple(puts)))
            assert first([*rows[:at], changed, *rows[at + 1 :]]), (row.seq, put)


def test_what_a_tick_saw_decides() -> None:
    """F026: with another observation the decision is another."""
    rows = log("done_in_one_turn")
    tick = rows[2]
    seen = {**tick.event.data["seen"], "tree": "base"}  # type: ignore[dict-item]
    other = replace(tick, event=replace(tick.event, data={"seen": seen}))
    told = first([*rows[:2], other, *rows[3:]])
    assert told == (
        "event 4 (phase): the log says evidence 3f273b0cff15: tree is 't1', the policy of today says 'base'"
    )


def test_a_person_reads_the_replay() -> None:
    """F160: a text and its JSON; the differences are listed up to a number."""
    rows = log("done_in_one_turn")
    text, data = replayed(rows)
    assert data == {"ticks": 1, "decisions": 7, "differences": [], "skipped": 0, "same": True}
    assert text.endswith("The policy of today decides the same.")
    altered = replace(rows[3].event, why="Because")
    text, data = replayed([*rows[:3], replace(rows[3], event=altered), *rows[4:]])
    assert not data["same"]
    assert "\n  event 4 (phase): the log says analyze → generate (Because), the policy" in text
    text, data = replayed([])
    assert (data["ticks"], data["same"]) == (0, True)


def test_a_tick_that_cannot_be_compared_is_skipped() -> None:
    """F026: what was cut, or another release wrote, is "not comparable" and never "different"."""
    rows = log("done_in_one_turn")
    seen = rows[2].event.data["seen"]
    assert isinstance(seen, dict)
    for other in (
        {**seen, "tree": "base", "cut": ["changes"]},
        {**seen, "tree": "base", "moon": "full"},
        {**seen, "markers": [{"kind": "NO_SUCH_KIND"}]},
        {**seen, "changes": [["M", "src/x.py"]]},
        None,
    ):
        event = replace(rows[2].event, data={"seen": other})
        done = replay([*rows[:2], replace(rows[2], event=event), *rows[3:]])
        assert (done.differences, done.skipped, done.ticks) == ((), 1, 1), other


def test_a_log_that_cannot_be_folded_ends_there() -> None:
    """F026: a log without its beginning is named, not raised."""
    rows = log("done_in_one_turn")
    assert first(rows[1:]).startswith("event 2 (item_began) cannot be folded: ")


SAID = st.sampled_from(
    [
        *("pause", "stop", "resume", "resume --confirm", "resume --budget +5k", "accept 5"),
        *("correct use a set", "correct --instead use a list", "reject 5 --why no"),
        *("answer yes", "resolve spec", "resolve code", "resume --max-iterations +2 --time +1h"),
    ]
)
LESS = st.sampled_from(["pause", "stop", "correct use a set", "correct --instead use a list"])
BOUNDS = st.sampled_from(
    [
        Limits(),
        Limits(max_fix_attempts=1, run_tokens=3_000, item_tokens=2_000, on_failed_item="pause"),
        Limits(max_fix_attempts=5, noop_turns=4, wall_seconds=40, max_iterations=6),
    ]
)


def alert(sim: Simulation) -> None:
    control.alert(sim.parts, RUN, 500)


def refuse(sim: Simulation) -> None:
    if (reached := limits.before_call(sim.state, 0, 2_000, 0.0)) is not None:
        control.refuse_call(sim.parts, RUN, reached)


def spoken(words: str) -> Word:
    def speak(sim: Simulation) -> None:
        with suppress(RageError):
            sim.says(words)

    return speak


MEANWHILE = st.none() | LESS.map(spoken) | st.sampled_from([kill, alert, refuse])
RANDOM = st.builds(
    TurnScript,
    tree=st.none() | st.sampled_from(["base", "t1", "t2", "t3", "t4", "t5", "t6"]),
    proposal=st.none()
    | st.sampled_from([SLICE, Proposal("x"), Proposal("y"), Proposal(no_change="it is so")]),
    text=st.sampled_from(
        ["", "", "", "[NEEDS CLARIFICATION: a? - b | c]", "[CRITICAL: x]", "[SPEC_DEVIATION: d]"]
    ),
    reason=st.sampled_from(["done"] * 5 + ["limit", "error", "interrupt"]),
    tokens=st.integers(0, 1000),
    changes=st.sampled_from(
        [(Change("M", "src/x.py"),), (Change("A", "y"),), (Change("M", "s"),), ()]
    ),
    seconds=st.floats(0, 30),
    jump=st.sampled_from([0.0, 0.0, 86_400.0, -86_400.0]),
    error=st.sampled_from(["", "overloaded"]),
    size=st.tuples(st.integers(0, 5), st.integers(0, 50)),
    added=st.sampled_from(["", "", "# [CRITICAL: y]"]),
    cosmetic=st.booleans(),
    stuck=st.sampled_from(["", "", "make: no rule"]),
    during=st.none() | LESS.map(spoken) | st.sampled_from([alert, refuse]),
    judging=MEANWHILE,
    acting=MEANWHILE,
    left=st.sampled_from([(), (), ("src/z.py",)]),
)
SPENT = ItemSpec("5", "t", "b", "s", gates=("tests/test_x.py",), expected_tokens=900)
SIZED = ItemSpec("5", "t", "b", "s", expected_lines=20)


@settings(max_examples=250, deadline=None)
@given(
    st.lists(RANDOM | SAID, min_size=1, max_size=14),
    st.dictionaries(
        st.sampled_from(["t1", "t2", "t3", "t4", "t5", "t6"]),
        st.tuples(st.sampled_from([V.PASS, V.FAIL, V.FAIL, V.UNVERIFIED]), st.sampled_from("mn")),
    ),
    st.sampled_from([[GATED], [OPEN], [GATED, OPEN], [SPENT, OPEN], [SIZED, OPEN]]),
    BOUNDS,
)
def test_whatever_happens_replays(
    steps: list[TurnScript | str],
    verdicts: dict[str, tuple[Verification, str]],
    items: list[ItemSpec],
    bounds: Limits,
) -> None:
    """F026: any run that anybody can think of is decided again from its log without a difference.

    Turns of every kind, a person's words at every moment, hooks, crashes, a clock that jumps.
    """
    sim = Simulation(
        lambda i, b, t: judgement(b, t, *verdicts.get(t, (V.FAIL, "m"))), items, bounds
    )
    for step in steps:
        if isinstance(step, str):
            spoken(step)(sim)
        elif sim.state.run.status is RunStatus.ACTIVE and not sim.dead:
            sim.turn(step)
    rows = read(lines(sim))
    done = replay(rows)
    assert done.differences == ()
    assert done.skipped == 0
    assert done.ticks == sum(row.event.kind == "tick" for row in rows)
