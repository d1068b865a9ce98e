"""What follows at a turn's end, decided without any room."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin.core.config import Limits
from rage_plugin.core.decide import outside
from rage_plugin.core.judgement import Judgement
from rage_plugin.core.model import (
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

V = Verification
GATED = ItemSpec("5", "t", "b", "s", gates=("tests/test_x.py",))
OPEN = ItemSpec("6", "t", "b", "s")
SLICE = Proposal("do it", ("tests/test_x.py",), ("src",))


def always(verification: Verification) -> Callable[[str, str, str], Judgement]:
    return lambda item, base, tree: judgement(base, tree, verification)


def test_a_right_change_ends_in_one_turn() -> None:
    """F012: one turn walks analyze → generate → execute → done, each edge recorded."""
    sim = Simulation(always(V.PASS), [GATED])
    state = sim.turn(TurnScript(tree="t1", proposal=SLICE))
    assert state.run.status is RunStatus.DONE
    assert state.items["5"].state is ItemState.DONE
    assert sim.commits == [("5", "verified")]
    edges = [(e.data["from"], e.data["to"]) for e in sim.log if e.kind in ("phase", "item_done")]
    assert edges == [("analyze", "generate"), ("generate", "execute"), ("execute", "done")]


def test_every_phase_edge_names_evidence() -> None:
    """F025: no phase edge without the ids of the evidence rows behind it."""
    sim = Simulation(always(V.PASS), [GATED, OPEN])
    sim.turn(TurnScript(tree="t1", proposal=SLICE))
    sim.turn(TurnScript(tree="t2", proposal=SLICE))
    rows = {p.key[0] for e in sim.log for p in e.puts if p.table == "evidence"}
    edges = [e for e in sim.log if "to" in e.data]
    assert len(edges) == 6
    for event in edges:
        assert event.evidence
        assert set(event.evidence) <= rows


def test_a_missing_line_costs_one_reask_then_the_default_slice() -> None:
    """F010: without a proposal one re-ask, then the whole item is the slice."""
    sim = Simulation(always(V.PASS), [OPEN])
    state = sim.turn(TurnScript(tree="t1"))
    assert state.run.phase is Phase.ANALYZE
    assert state.items["6"].reasked == 1
    assert state.run.noop_turns == 0, "the re-ask is exempt"
    state = sim.turn(TurnScript())
    assert state.run.status is RunStatus.DONE


def test_a_persons_gate_needs_no_reask_once_there_is_a_change() -> None:
    """A change that a given gate can judge is judged at once."""
    sim = Simulation(always(V.PASS), [GATED])
    assert sim.turn(TurnScript(tree="t1")).run.status is RunStatus.DONE


def test_two_quiet_turns_pause_the_run() -> None:
    """F147: two no-op turns in a row pause, whatever they cost."""
    sim = Simulation(always(V.FAIL), [GATED])
    statuses = [sim.turn(TurnScript()).run.status for _ in range(4)]
    assert statuses == [RunStatus.ACTIVE] * 3 + [RunStatus.PAUSED]
    assert sim.state.run.pause_reason is PauseReason.NO_PROGRESS


def test_three_provider_errors_in_a_row_pause_the_run() -> None:
    """F147: three provider errors in a row pause; one good turn begins the count anew."""
    sim = Simulation(always(V.FAIL), [GATED])
    sim.turn(TurnScript(reason="error"))
    sim.turn(TurnScript(reason="error"))
    sim.turn(TurnScript(tree="t1"))
    for _ in range(2):
        assert sim.turn(TurnScript(reason="error")).run.status is RunStatus.ACTIVE
    assert sim.turn(TurnScript(reason="error")).run.pause_reason is PauseReason.PROVIDER_ERRORS


def test_a_providers_error_is_quoted_in_part() -> None:
    """F026: a decision quotes no more of a free text than the log keeps of it."""
    sim = Simulation(always(V.FAIL), [GATED], Limits(provider_errors=1))
    detail = sim.turn(TurnScript(reason="error", error="x" * 9_000)).run.pause_detail
    assert detail.endswith(f"the last: {'x' * 300}")


def test_work_that_is_done_at_the_last_error_counts() -> None:
    """Evidence is looked at before limits."""
    sim = Simulation(always(V.PASS), [GATED])
    sim.turn(TurnScript(reason="error"))
    sim.turn(TurnScript(reason="error"))
    assert sim.turn(TurnScript(tree="t1", reason="error")).run.status is RunStatus.DONE


def test_two_fix_cycles_and_no_third() -> None:
    """F059: after two fix cycles the item fails; a third never starts."""
    sim = Simulation(always(V.FAIL), [GATED, OPEN])
    for number in range(3):
        state = sim.turn(TurnScript(tree=f"t{number}", proposal=SLICE))
    assert state.items["5"].state is ItemState.FAILED
    assert state.items["5"].attempts == 3
    assert state.run.current_item == "6", "the next independent item goes on"
    assert sim.tree == "base", "its changes were taken back"


def test_a_failed_item_pauses_where_the_project_says_so() -> None:
    """F059: limits.on_failed_item = pause."""
    sim = Simulation(always(V.FAIL), [GATED, OPEN], Limits(on_failed_item="pause"))
    for number in range(3):
        state = sim.turn(TurnScript(tree=f"t{number}", proposal=SLICE))
    assert state.run.pause_reason is PauseReason.ITEM_FAILED


def test_a_failed_attempt_is_not_judged_again_on_the_same_tree() -> None:
    """F137: a tree that was judged is no new evidence."""
    calls: list[str] = []

    def judge(item: str, base: str, tree: str) -> Judgement:
        calls.append(tree)
        return judgement(base, tree, V.FAIL)

    sim = Simulation(judge, [GATED])
    sim.turn(TurnScript(tree="t1"))
    sim.turn(TurnScript(tree="t1"))
    sim.turn(TurnScript(tree="t1"))
    assert calls == ["t1"]
    assert sim.state.run.pause_reason is PauseReason.NO_PROGRESS
    assert sim.state.run.pause_detail.endswith(f"; the last check: {sim.state.items['5'].reason}")


def test_unverified_is_committed_and_others_go_on() -> None:
    """F162: an item without a red check waits for a person, dependents too, others go on."""
    items = [GATED, OPEN, ItemSpec("7", "t", "b", "s", depends_on=("5",))]
    verdicts = {"5": V.UNVERIFIED, "6": V.PASS}
    sim = Simulation(lambda i, b, t: judgement(b, t, verdicts[i]), items)
    sim.turn(TurnScript(tree="t1", proposal=SLICE))
    assert sim.state.run.current_item == "6"
    state = sim.turn(TurnScript(tree="t2", proposal=SLICE))
    assert sim.commits == [("5", "unverified"), ("6", "verified")]
    assert state.items["5"].state is ItemState.IN_PROGRESS
    assert state.items["7"].state is ItemState.PENDING
    assert state.run.pause_reason is PauseReason.UNVERIFIED


def test_no_change_needed_is_a_claim_and_no_proof() -> None:
    """`no_change` ends unverified at best."""
    sim = Simulation(always(V.UNVERIFIED), [OPEN])
    state = sim.turn(TurnScript(proposal=Proposal(no_change="it works already")))
    assert state.items["6"].verification is V.UNVERIFIED
    assert state.run.status is RunStatus.PAUSED


def test_a_change_outside_the_scope_is_replanned_once_then_pauses() -> None:
    """A change outside the scope is re-planned once, then pauses."""
    sim = Simulation(always(V.PASS), [OPEN])
    stray = (Change("M", "src/x.py"), Change("M", "setup.py"))
    state = sim.turn(TurnScript(tree="t1", proposal=SLICE, changes=stray))
    assert state.run.phase is Phase.ANALYZE
    assert "setup.py" in state.last_failure
    state = sim.turn(TurnScript(proposal=SLICE, changes=stray))
    assert state.run.pause_reason is PauseReason.SCOPE


def test_an_interrupt_pauses_and_judges_nothing() -> None:
    """Law 7: an interrupt never restarts the agent by itself."""

    def judge(item: str, base: str, tree: str) -> Judgement:
        raise AssertionError("judged after an interrupt")

    sim = Simulation(judge, [GATED])
    state = sim.turn(TurnScript(tree="t1", reason="interrupt"))
    assert state.run.pause_reason is PauseReason.INTERRUPT


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (Limits(max_iterations=2, noop_turns=99), PauseReason.LIMIT_ITERATIONS),
        (Limits(run_iterations=2, noop_turns=99), PauseReason.LIMIT_ITERATIONS),
        (Limits(item_tokens=150), PauseReason.LIMIT_TOKENS),
        (Limits(run_tokens=150), PauseReason.LIMIT_TOKENS),
        (Limits(wall_seconds=15), PauseReason.LIMIT_TIME),
    ],
)
def test_each_limit_pauses_with_its_own_reason(bounds: Limits, reason: PauseReason) -> None:
    """F046, law 8: iterations, tokens and wall time are finite."""
    sim = Simulation(always(V.FAIL), [GATED], bounds)
    sim.turn(TurnScript(tokens=100, seconds=10))
    state = sim.turn(TurnScript(tokens=100, seconds=10))
    assert state.run.pause_reason is reason


def test_the_last_allowed_turn_may_finish_the_item() -> None:
    """Evidence is looked at before limits."""
    sim = Simulation(always(V.PASS), [GATED], Limits(max_iterations=1, run_iterations=1))
    assert sim.turn(TurnScript(tree="t1", tokens=10**9)).run.status is RunStatus.DONE


TURNS = st.builds(
    TurnScript,
    tree=st.none() | st.sampled_from(["base", "t1", "t2", "t3", "t4", "t5"]),
    proposal=st.none()
    | st.sampled_from([SLICE, Proposal("x"), Proposal(no_change="it works already")]),
    text=st.sampled_from(["", 'RAGE {"slice": 5}']),
    reason=st.sampled_from(["done", "done", "done", "limit", "error", "interrupt"]),
    tokens=st.integers(0, 1000),
    changes=st.sampled_from([(Change("M", "src/x.py"),), (Change("A", "y"),), ()]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(TURNS, min_size=1, max_size=6),
    st.dictionaries(st.sampled_from(["t1", "t2", "t3", "t4", "t5"]), st.sampled_from(list(V))),
    st.sampled_from(
        [[GATED], [OPEN], [GATED, OPEN], [OPEN, ItemSpec("7", "t", "b", "s", depends_on=("6",))]]
    ),
)
def test_every_behaviour_ends_and_done_needs_proof(
    turns: list[TurnScript], verdicts: dict[str, Verification], items: list[ItemSpec]
) -> None:
    """Laws 4 and 8, F028: whatever the agent does for ever, the run ends; done needs a pass each.

    Also F026: the same log folded anew gives the same state.
    """
    passed: set[str] = set()

    def judge(item: str, base: str, tree: str) -> Judgement:
        found = verdicts.get(tree, V.FAIL)
        found = V.FAIL if found is V.NONE else found
        if found is V.PASS:
            passed.add(item)
        return judgement(base, tree, found)

    sim = Simulation(judge, items)
    bound = 12 * len(items) + 2
    for number in range(bound):
        if sim.state.run.status is not RunStatus.ACTIVE:
            break
        sim.turn(turns[min(number, len(turns) - 1)])
    assert sim.state.run.status is not RunStatus.ACTIVE
    if sim.state.run.status is RunStatus.DONE:
        assert passed == {i.id for i in items}
    assert {i for i, status in sim.commits if status == "verified"} <= passed

    from rage_plugin.core.fold import apply

    again = None
    for event in sim.log:
        again = apply(again, event)
    assert again == sim.state


def test_scope_covers_folders_globs_and_the_gates_own_files() -> None:
    """A slice's scope is paths, folders or globs; the file of a gate is always inside."""
    changes = [Change("M", p) for p in ("src/a.py", "src/deep/b.py", "tests/test_a.py", "c.md")]
    assert outside(changes, ["src"], []) == ["tests/test_a.py", "c.md"]
    assert outside(changes, ["./src/"], ["tests/test_a.py::test_x"]) == ["c.md"]
    assert outside(changes, ["*.md", "src/*", "tests/**"], []) == []
    assert outside(changes, ["**"], []) == []
    assert outside(changes, ["sr"], []) == [c.path for c in changes]
