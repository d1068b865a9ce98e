"""Limits and a person's say in decisions: budgets, breakers, time, markers and rulings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin import control
from rage_plugin.core import limits
from rage_plugin.core.config import Limits, ProjectConfig, VerifyConfig
from rage_plugin.core.judgement import Judgement
from rage_plugin.core.model import Change, PauseReason, Phase, RunStatus, Verification

from .simulated import RUN, Simulation, TurnScript, judgement
from .test_decide import GATED, OPEN, SLICE, always

V = Verification
DAY = 86_400.0
ONLY_RUN = Limits(run_tokens=1_000, item_tokens=None, noop_turns=99, max_iterations=99)


def alerts(sim: Simulation) -> list[str]:
    return [event.why for event in sim.log if event.kind == "budget_alert"]


def alert(sim: Simulation) -> None:
    """A hook before a model call, with tokens that no turn has counted yet."""
    control.alert(sim.parts, RUN, 900)


def refuse(sim: Simulation) -> None:
    """A hook before a model call that may cost 5,000 tokens."""
    reached = limits.before_call(sim.state, 0, 5_000, 0.0)
    assert reached is not None
    control.refuse_call(sim.parts, RUN, reached)


def unjudged(item: str, base: str, tree: str) -> Judgement:
    raise AssertionError(f"{tree} was judged")


def test_a_budget_is_alerted_once_and_a_raised_one_once_more() -> None:
    """F044: at 80 %, also across a pause and a resume; a new budget is a new alert."""
    sim = Simulation(always(V.PASS), [GATED], ONLY_RUN)
    sim.turn(TurnScript(proposal=SLICE, tokens=799))
    assert alerts(sim) == []
    sim.turn(TurnScript(tokens=1, during=alert))
    sim.turn(TurnScript(tokens=10))
    sim.says("pause")
    sim.says("resume")
    sim.turn(TurnScript(tokens=190, during=alert))
    assert len(alerts(sim)) == 1
    assert sim.state.run.pause_reason is PauseReason.LIMIT_TOKENS
    sim.says("resume --budget +4k")
    sim.turn(TurnScript(tokens=2_900))
    assert len(alerts(sim)) == 1, "3,900 of 5,000 are less than four fifths"
    sim.turn(TurnScript(tokens=100))
    sim.turn(TurnScript(tokens=100, during=alert))
    assert alerts(sim)[1:] == ["4,000 of 5,000 tokens of the run are spent"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 700), st.booleans(), st.sampled_from(["", "pause", "budget"])),
        max_size=8,
    )
)
def test_no_budget_is_alerted_twice(steps: list[tuple[int, bool, str]]) -> None:
    """F044: whoever sees it first, and whatever comes in between."""
    sim = Simulation(always(V.PASS), [GATED], ONLY_RUN)
    for tokens, hook, word in steps:
        if sim.state.run.status is RunStatus.ACTIVE:
            sim.turn(TurnScript(tokens=tokens, during=alert if hook else None))
        if word == "pause" and sim.state.run.status is RunStatus.ACTIVE:
            sim.says("pause")
        if sim.state.run.status is RunStatus.PAUSED:
            sim.says("resume --budget +1k" if word == "budget" else "resume")
    budgets = [p.values["alerted"] for e in sim.log for p in e.puts if "alerted" in p.values]
    told = [b for b in budgets if b]
    assert len(told) == len(set(told))
    run = sim.state.run
    spent = limits.read(run).run_tokens or 0
    assert run.tokens < 0.8 * spent or run.alerted == spent or not steps


def test_without_a_budget_nothing_is_alerted() -> None:
    """F044: `none` is unlimited."""
    sim = Simulation(always(V.PASS), [GATED], replace(ONLY_RUN, run_tokens=None))
    sim.turn(TurnScript(proposal=SLICE, tokens=10**9))
    assert alerts(sim) == []
    assert sim.state.run.status is RunStatus.ACTIVE


def test_a_budget_is_crossed_once() -> None:
    """F117: however many calls are refused, one event says it and one decision follows."""

    def several(sim: Simulation) -> None:
        for _ in range(5):
            refuse(sim)

    sim = Simulation(unjudged, [GATED], replace(ONLY_RUN, run_tokens=4_000))
    sim.turn(TurnScript(reason="limit", during=several, tokens=100))
    kinds = [event.kind for event in sim.log]
    assert kinds.count("budget_reached") == 1
    assert kinds.count("run_paused") == 1
    assert sim.state.run.pause_reason is PauseReason.LIMIT_TOKENS
    sim.says("resume")
    assert sim.state.run.status is RunStatus.PAUSED, "no more to spend was given"
    sim.says("resume --budget +50k")
    assert (sim.state.run.status, sim.state.run.refused_call) == (RunStatus.ACTIVE, "")


def test_the_work_of_a_turn_without_budget_counts() -> None:
    """F043: evidence comes before limits: what was done before the refused call is judged."""
    sim = Simulation(always(V.PASS), [GATED], replace(ONLY_RUN, run_tokens=4_000))
    sim.turn(TurnScript("t1", SLICE, reason="limit", during=refuse))
    assert sim.state.run.status is RunStatus.DONE


@pytest.mark.parametrize(
    ("estimate", "spent", "size", "says"),
    [
        ({"expected_tokens": 1_000}, 2_000, (9, 99), ""),
        ({"expected_tokens": 1_000}, 2_001, (1, 1), "2,001 tokens, and 1,000 were expected"),
        ({"expected_files": 2}, 0, (4, 999), ""),
        ({"expected_files": 2}, 0, (5, 1), "5 changes 5 files, and 2 were expected"),
        ({"expected_lines": 10}, 0, (99, 20), ""),
        ({"expected_lines": 10}, 0, (1, 21), "5 changes 21 lines, and 10 were expected"),
        ({}, 10**6, (10**4, 10**6), ""),
    ],
)
def test_twice_what_was_expected_waits_for_a_person(
    estimate: dict[str, int], spent: int, size: tuple[int, int], says: str
) -> None:
    """F068, F069: more than twice, in tokens, files or lines; without an estimate never."""
    judge = unjudged if says else always(V.PASS)
    bounds = Limits(item_tokens=None, run_tokens=None)
    sim = Simulation(judge, [replace(GATED, **estimate)], bounds)
    sim.turn(TurnScript(proposal=SLICE, tokens=spent))
    state = sim.turn(TurnScript("t1", size=size))
    if not says:
        assert state.run.status is RunStatus.DONE
        return
    assert state.run.pause_reason is PauseReason.CIRCUIT_BREAKER
    assert state.run.pause_detail.endswith(says)
    sim.says("resume")
    assert sim.state.run.status is RunStatus.PAUSED, "it needs a confirmation"
    sim.judge = always(V.PASS)
    sim.says("resume --confirm")
    assert sim.turn(TurnScript(size=size)).run.status is RunStatus.DONE


def test_a_breaker_can_be_switched_off() -> None:
    """F068, F069: `none` is no multiple at all."""
    item = replace(GATED, expected_tokens=1, expected_files=1, expected_lines=1)
    sim = Simulation(always(V.PASS), [item], Limits(token_multiple=None, scope_multiple=None))
    sim.turn(TurnScript(proposal=SLICE, tokens=900))
    assert sim.turn(TurnScript("t1", size=(50, 50))).run.status is RunStatus.DONE


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([5.0, 30.0]), st.sampled_from([0.0, DAY, -DAY])), max_size=8)
)
def test_only_time_that_passed_counts(turns: list[tuple[float, float]]) -> None:
    """F046, F045: a clock that jumps a day either way neither opens the limit nor puts it off."""
    sim = Simulation(always(V.PASS), [GATED], replace(ONLY_RUN, wall_seconds=100.0))
    passed = 0.0
    for seconds, jump in turns:
        if sim.state.run.status is RunStatus.ACTIVE:
            sim.turn(TurnScript(seconds=seconds, jump=jump))
            passed += seconds
            reached = sim.state.run.pause_reason is PauseReason.LIMIT_TIME
            assert reached == (passed >= 100)
            assert sim.state.run.active_seconds == passed


def test_a_pause_takes_no_time() -> None:
    """F046: hours in which the run waited are not its own."""
    sim = Simulation(always(V.PASS), [GATED], replace(ONLY_RUN, wall_seconds=100.0))
    sim.turn(TurnScript(proposal=SLICE, seconds=60))
    sim.says("pause")
    sim.now += 10 * DAY
    sim.says("resume")
    assert sim.turn(TurnScript(seconds=39)).run.status is RunStatus.ACTIVE
    assert sim.turn(TurnScript(seconds=1)).run.pause_reason is PauseReason.LIMIT_TIME


MARKERS = [
    ("[NEEDS CLARIFICATION: which port? - 80 | 8080]", PauseReason.NEEDS_CLARIFICATION),
    ("[SPEC_DEVIATION: also renames it]", PauseReason.SPEC_DEVIATION),
    ("[CRITICAL: drops a table]", PauseReason.CRITICAL_ISSUE),
    ("[SPEC_DEVIATION]", PauseReason.SPEC_DEVIATION),
]
SETTINGS = [
    *(ProjectConfig(verification=VerifyConfig(accept=a)) for a in ("red_green", "given", "suite")),
    ProjectConfig(activation_auto=True, scan_code_fences=False),
]


@pytest.mark.parametrize(("text", "reason"), MARKERS)
@pytest.mark.parametrize("config", SETTINGS)
@pytest.mark.parametrize("where", ["said", "written", "said after an error"])
def test_a_marker_pauses_before_anything_is_checked(
    text: str, reason: PauseReason, config: ProjectConfig, where: str
) -> None:
    """F061-F064: whatever a project accepts by itself, a person decides what is theirs."""
    sim = Simulation(unjudged, [GATED], config=config)
    script = TurnScript("t1", SLICE)
    if where == "written":
        script = replace(script, added=f"# {text}")
    else:
        script = replace(script, text=text, reason="done" if where == "said" else "error")
    state = sim.turn(script)
    assert (state.run.status, state.run.pause_reason) == (RunStatus.PAUSED, reason)
    assert state.blockers[-1].reason == reason
    assert not [e for e in sim.log if e.data.get("to") == Phase.EXECUTE]
    if reason is PauseReason.CRITICAL_ISSUE:
        sim.says("resume")
        assert sim.state.run.status is RunStatus.PAUSED, "it has to be confirmed"


def ruled(*words: str) -> Simulation:
    """A run that waits for a ruling on `also renames it` and got it, going on."""
    sim = Simulation(always(V.FAIL), [GATED, OPEN], Limits(noop_turns=99, max_fix_attempts=9))
    sim.turn(TurnScript("t1", SLICE, text="[SPEC_DEVIATION: also renames it]"))
    for said in words:
        sim.says(said)
    assert sim.state.run.status is RunStatus.ACTIVE
    return sim


def paused_by(sim: Simulation, text: str, tree: str) -> PauseReason | None:
    return sim.turn(TurnScript(tree, SLICE, text=text)).run.pause_reason


def test_code_settles_the_same_words_for_good() -> None:
    """F062: what a person let stand is not asked again in another tree; other words are."""
    sim = ruled("resolve code", "resume")
    for tree in ("t1", "t2", "t3"):
        assert paused_by(sim, "[SPEC_DEVIATION: also renames it]", tree) is None
    other = "[SPEC_DEVIATION: also renames them]"
    assert paused_by(sim, other, "t3") is PauseReason.SPEC_DEVIATION


def test_spec_settles_one_tree_alone() -> None:
    """F062: what has to be taken back is asked about again where it still is."""
    text = "[SPEC_DEVIATION: also renames it]"
    sim = ruled("resolve spec", "resume")
    assert paused_by(sim, text, "t1") is None, "the tree that the ruling was about"
    assert paused_by(sim, text, "t2") is PauseReason.SPEC_DEVIATION


def test_a_bare_marker_is_settled_by_its_tree_alone() -> None:
    """F062: without words nothing says that another one means the same."""
    sim = Simulation(always(V.FAIL), [GATED], Limits(noop_turns=99, max_fix_attempts=9))
    assert paused_by(sim, "[SPEC_DEVIATION]", "t1") is PauseReason.SPEC_DEVIATION
    sim.says("resolve code")
    sim.says("resume")
    assert paused_by(sim, "[SPEC_DEVIATION]", "t1") is None
    assert paused_by(sim, "[SPEC_DEVIATION]", "t2") is PauseReason.SPEC_DEVIATION


def test_a_ruling_is_of_one_kind_and_one_item() -> None:
    """F061-F063: the same words as another kind, or in the next item, are asked about again."""
    sim = ruled("resolve code", "resume")
    critical = "[CRITICAL: also renames it]"
    assert paused_by(sim, critical, "t1") is PauseReason.CRITICAL_ISSUE
    sim.says("resume --confirm")
    sim.judge = always(V.PASS)
    assert paused_by(sim, critical, "t2") is None
    assert sim.state.run.current_item == "6"
    assert paused_by(sim, critical, "t3") is PauseReason.CRITICAL_ISSUE


@pytest.mark.parametrize("text", [m[0] for m in MARKERS])
def test_every_marker_has_a_way_on(text: str) -> None:
    """F085: an answer, a ruling or a confirmation, and the very same words pause no more."""
    words: dict[PauseReason, Callable[[Simulation], object]] = {
        PauseReason.NEEDS_CLARIFICATION: lambda s: (s.says("answer 80"), s.says("resume")),
        PauseReason.SPEC_DEVIATION: lambda s: (s.says("resolve code"), s.says("resume")),
        PauseReason.CRITICAL_ISSUE: lambda s: s.says("resume --confirm"),
    }
    sim = Simulation(lambda i, b, t: judgement(b, t, V.PASS), [GATED])
    state = sim.turn(TurnScript("t1", SLICE, text=text, changes=(Change("A", "src/y.py"),)))
    assert state.run.pause_reason is not None
    words[state.run.pause_reason](sim)
    assert sim.turn(TurnScript("t1", SLICE, text=text)).run.status is RunStatus.DONE
