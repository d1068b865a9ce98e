"""Failure memory in decisions: what is retired, refused, opened again, re-planned, or discarded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin.core import recovery
from rage_plugin.core.config import Limits
from rage_plugin.core.judgement import Judgement, Verdict
from rage_plugin.core.model import (
    Approach,
    Change,
    ItemSpec,
    ItemState,
    PauseReason,
    Phase,
    Proposal,
    RunStatus,
    Verification,
)

from .simulated import Simulation, TurnScript, judgement
from .test_decide import GATED, OPEN, SLICE, always

V = Verification
OTHER = Proposal("do it otherwise", ("tests/test_x.py",), ("src",))
PATIENT = Limits(max_fix_attempts=9, noop_turns=9)
STUCK = "run_command: make: no rule"


def failing(messages: Sequence[str], tests: Sequence[tuple[str, ...]] = ()) -> Simulation:
    """A run of one item whose candidates fail so, one after the other; then they pass."""
    left, named = list(messages), list(tests)

    def judge(item: str, base: str, tree: str) -> Judgement:
        if not left:
            return judgement(base, tree, V.PASS)
        names = named.pop(0) if named else ()
        return Judgement(V.FAIL, Verdict.FAIL, base, tree, left.pop(0), failing=names)

    return Simulation(judge, [GATED], PATIENT)


def approach(sim: Simulation, objective: str) -> Approach:
    """What is known of an approach, by its words."""
    return next(a for a in sim.state.approaches if a.objective == objective)


def kinds(sim: Simulation) -> list[str]:
    return [event.kind for event in sim.log]


def test_the_same_error_again_retires_the_approach() -> None:
    """F014, F015: lines, paths and times apart it is one error; the approach is to be avoided."""
    sim = failing(
        [
            "/tmp/a1/src/x.py:12: AssertionError: 2 == 3 (0.31s)",
            "/home/b/src/x.py:99: AssertionError: 2 == 3 (1.20s)",
        ]
    )
    state = sim.turn(TurnScript("t1", SLICE))
    assert approach(sim, "do it").status == "open"
    assert state.avoid == ()
    state = sim.turn(TurnScript("t2"))
    row = approach(sim, "do it")
    assert (row.status, row.retired_by) == ("retired", state.failures[-1].evidence)
    assert [failure.count for failure in state.failures] == [1, 2]
    assert state.avoid == ("do it",)
    assert state.slice is None
    assert kinds(sim)[-2:] == ["reasked", "turn"], "a new approach is asked for once more"


@pytest.mark.parametrize(
    ("messages", "tests"),
    [
        (["2 == 3", "raised TypeError"], []),
        (["1 of 2 tests fail"] * 2, [("test_a",), ("test_b",)]),
    ],
)
def test_another_error_retires_nothing(
    messages: Sequence[str], tests: Sequence[tuple[str, ...]]
) -> None:
    """F014: another text, or other failing tests, are new evidence: the approach goes on."""
    sim = failing(messages, tests)
    sim.turn(TurnScript("t1", SLICE))
    state = sim.turn(TurnScript("t2"))
    assert approach(sim, "do it").status == "open"
    assert state.slice is not None


def test_a_retired_approach_is_refused_without_new_evidence() -> None:
    """F014: in other case, spacing and order of gates it is the same approach, and stays out."""
    sim = failing(["m", "m"])
    sim.turn(TurnScript("t1", Proposal("do it", ("a.py", "b.py"))))
    sim.turn(TurnScript("t2"))
    for words in ("do it", "Do  IT"):
        state = sim.turn(TurnScript(proposal=Proposal(words, ("b.py", "a.py"))))
        assert (sim.log[-2].kind, state.run.phase) == ("approach_refused", Phase.ANALYZE)
        assert sim.log[-2].data["retired_by"] == approach(sim, "do it").retired_by
    assert state.run.noop_turns == 2, "a refused approach brings nothing"
    state = sim.turn(TurnScript(proposal=OTHER))
    assert (state.run.phase, state.slice and state.slice.objective) == (
        Phase.GENERATE,
        OTHER.objective,
    )


def test_a_new_candidate_opens_a_retired_approach() -> None:
    """F014: the row of the approach names the evidence that opened it."""
    sim = failing(["m", "m"])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript(proposal=SLICE))
    assert "approach_refused" in kinds(sim)
    sim.turn(TurnScript("t3", SLICE))
    again = approach(sim, "do it").readmitted_by
    rows = {p.key[0]: p.values for e in sim.log for p in e.puts if p.table == "evidence"}
    assert again is not None
    assert (rows[again]["kind"], rows[again]["tree"]) == ("proposal", "t3")
    assert sim.state.run.status is RunStatus.DONE


def test_a_cosmetic_change_opens_nothing() -> None:
    """F014: comments and white space are no new evidence."""
    sim = failing(["m", "m"])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript("t3", SLICE, cosmetic=True))
    assert sim.log[-2].kind == "approach_refused"


def test_a_correction_opens_a_retired_approach_and_an_older_one_does_not() -> None:
    """F014, F016: what was said before the error is not newer evidence."""
    sim = failing(["m", "m"])
    sim.says("correct use plus")
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript(proposal=SLICE))
    assert sim.log[-2].kind == "approach_refused"
    sim.says("correct use plus in both places")
    sim.turn(TurnScript(proposal=SLICE))
    assert approach(sim, "do it").readmitted_by == sim.state.corrections[-1].evidence


def test_another_error_of_another_approach_opens_a_retired_one() -> None:
    """F014: a changed set of failing tests is new evidence, and the failure's row is named."""
    sim = failing(["m", "m", "raised TypeError"])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript("t3", OTHER))
    sim.turn(TurnScript(proposal=SLICE))
    row = approach(sim, "do it")
    assert (row.status, row.readmitted_by) == ("open", sim.state.failures[-1].evidence)


def test_what_was_no_attempt_opens_nothing() -> None:
    """F014: a tool call that fails again and again says nothing for an approach that failed."""
    sim = failing(["m", "m"])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript(proposal=OTHER))
    state = sim.turn(TurnScript(stuck=STUCK))
    assert STUCK in state.last_failure
    sim.turn(TurnScript(proposal=SLICE))
    assert sim.log[-2].kind == "approach_refused"


def test_an_approach_that_was_opened_again_is_retired_again() -> None:
    """F014: its old pardon goes with it; what opened it once does not open it twice."""
    sim = failing(["m", "m", "m"])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript("t3", SLICE))
    row = approach(sim, "do it")
    assert (row.status, row.readmitted_by) == ("retired", None)
    sim.turn(TurnScript(proposal=SLICE))
    assert sim.log[-2].kind == "approach_refused"


def test_three_items_with_one_error_are_not_one_stuck_task() -> None:
    """F015: the same words fail in three items: each for the first time, and nothing is retired."""
    items = [replace(GATED, id=str(n)) for n in (5, 6, 7)]
    sim = Simulation(always(V.FAIL), items, Limits(max_fix_attempts=0))
    for number in range(3):
        sim.turn(TurnScript(f"t{number}", SLICE))
    failures = [p.values for e in sim.log for p in e.puts if p.table == "failures"]
    assert [f["item"] for f in failures] == ["5", "6", "7"]
    assert len({f["signature"] for f in failures}) == 1
    assert {f["count"] for f in failures} == {1}
    assert not [p for e in sim.log for p in e.puts if p.values.get("status") == "retired"]


def test_committed_work_is_a_new_beginning() -> None:
    """F015: after a commit the same error counts from one."""
    verdicts = iter([V.FAIL, V.PASS, V.FAIL, V.PASS])
    sim = Simulation(lambda i, b, t: judgement(b, t, next(verdicts)), [GATED, OPEN])
    for number, plan in enumerate((SLICE, SLICE, Proposal("x"), Proposal("x"))):
        sim.turn(TurnScript(f"t{number}", plan))
    counts = [p.values["count"] for e in sim.log for p in e.puts if p.table == "failures"]
    assert counts == [1, 1]
    assert sim.state.run.status is RunStatus.DONE


def test_a_stuck_action_is_planned_anew_once_and_never_twice() -> None:
    """F013: the second time the run waits instead; the failed action is in the failure memory."""
    sim = Simulation(always(V.PASS), [GATED])
    sim.turn(TurnScript(proposal=SLICE))
    state = sim.turn(TurnScript(stuck=STUCK))
    assert (state.run.phase, state.slice, state.working.replanned) == (Phase.ANALYZE, None, 1)
    assert STUCK in state.last_failure
    assert state.run.noop_turns == 0
    sim.turn(TurnScript(proposal=OTHER, stuck=STUCK))
    for _ in range(2):
        state = sim.turn(TurnScript(stuck=STUCK))
    assert state.working.replanned == 1
    assert state.run.pause_reason is PauseReason.NO_PROGRESS


def test_a_candidate_is_judged_though_an_action_was_stuck() -> None:
    """F013: evidence comes first: something changed, so nothing is planned anew."""
    sim = Simulation(always(V.PASS), [GATED])
    assert sim.turn(TurnScript("t1", SLICE, stuck=STUCK)).run.status is RunStatus.DONE


def test_one_new_plan_an_item_whatever_for() -> None:
    """F013: an item that left its scope once is not planned anew for a stuck action as well."""

    sim = Simulation(always(V.PASS), [GATED], PATIENT)
    sim.turn(TurnScript("t1", SLICE, changes=(Change("M", "setup.py"),)))
    assert sim.state.working.replanned == 1
    sim.turn(TurnScript("base", SLICE, stuck=STUCK))
    assert sim.state.run.phase is Phase.GENERATE


CALL = st.fixed_dictionaries({"evidence": st.sampled_from("ab"), "error": st.text(max_size=5)})


@given(st.lists(CALL, max_size=8), st.sampled_from("abc"), st.integers(1, 4))
def test_an_action_is_stuck_on_one_evidence_alone(
    calls: list[dict[str, str]], now: str, limit: int
) -> None:
    """F013: stuck are the last calls, as many as allowed, all on the evidence that holds now."""
    last = calls[-limit:]
    want = len(last) == limit and all(call["evidence"] == now for call in last)
    found = recovery.stuck(calls, now, limit)
    assert found == (calls[-1]["error"] if want else None)


def test_what_an_action_rests_on() -> None:
    """F013, F015: the tree, the item, the plan and the last failure make the evidence state."""
    sim = failing(["m", "n"])
    seen = {recovery.evidence_state(sim.state, "base"), recovery.evidence_state(sim.state, "t1")}
    assert recovery.evidence_state(sim.state, "base") in seen
    sim.turn(TurnScript("t1", SLICE))
    seen.add(recovery.evidence_state(sim.state, "t1"))
    sim.says("correct otherwise")
    seen.add(recovery.evidence_state(sim.state, "t1"))
    run = replace(sim.state.run, current_item="6")
    seen.add(recovery.evidence_state(replace(sim.state, run=run), "t1"))
    assert len(seen) == 5


def test_a_stale_turn_is_neither_judged_nor_a_no_op() -> None:
    """F016: what was begun under a superseded plan is discarded; its tokens count all the same."""

    def judge(item: str, base: str, tree: str) -> Judgement:
        assert tree != "t1", "judged though the plan was superseded"
        return judgement(base, tree, V.PASS)

    sim = Simulation(judge, [GATED])
    state = sim.turn(
        TurnScript("t1", SLICE, tokens=70, during=lambda s: s.says("correct use a set"))
    )
    assert (state.run.noop_turns, state.run.tokens, state.run.iteration) == (0, 70, 1)
    assert (state.run.phase, state.slice) == (Phase.ANALYZE, None)
    assert state.items["5"].attempts == 0
    assert sim.turn(TurnScript("t2", SLICE)).run.status is RunStatus.DONE


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6))
def test_stale_turns_never_pause_for_no_progress(turns: int) -> None:
    """F016: however often a person speaks in the middle of a turn, that is no standstill."""
    sim = Simulation(always(V.PASS), [GATED])
    for number in range(turns):
        words = f"correct do it the {number}. way"
        sim.turn(TurnScript(during=lambda s, w=words: s.says(w)))  # type: ignore[misc]
    assert sim.state.run.status is RunStatus.ACTIVE


def test_a_failed_item_takes_nothing_along() -> None:
    """F014, F015: the next item knows no failure, no approach and no candidate of the one before."""
    sim = Simulation(always(V.FAIL), [GATED, ItemSpec("8", "t", "b", "s")])
    for number in range(3):
        sim.turn(TurnScript(f"t{number}", SLICE))
    state = sim.state
    assert state.items["5"].state is ItemState.FAILED
    assert (state.failures, state.approaches, state.judged_trees) == ((), (), frozenset())
    assert state.avoid == ()
