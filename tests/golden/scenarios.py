"""What the golden logs tell: one function a run, from its first turn to its end.

Named after what happens in it; together they take every step and every phase edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rage_plugin import control
from rage_plugin.core import limits
from rage_plugin.core.config import GitConfig, Limits, ProjectConfig
from rage_plugin.core.errors import RageError
from rage_plugin.core.judgement import CheckRecord, Judgement, Origin, Verdict
from rage_plugin.core.model import Change, ItemSpec, PauseReason, Proposal, Verification

from ..core.simulated import Simulation, TurnScript, Word, kill

V = Verification
TEST = "tests/test_sums.py::test_add"
SUMS = ItemSpec("5", "Sums are wrong", "", "backlog/5.md", ("two are added",), gates=(TEST,))
DOCS = ItemSpec("6", "Say how to add", "", "backlog/6.md", ("a page",))
AFTER = ItemSpec("7", "Add three", "", "backlog/7.md", depends_on=("5",))
SLICE = Proposal("add the numbers", (TEST,), ("src",))
OTHER = Proposal("add them in another loop", (TEST,), ("src",))
Outcome = Verification | str | Judgement | RageError
"""Of a judgement; a text is the message of one that failed."""
SCENARIOS: dict[str, Callable[[], Simulation]] = {}


def scenario(make: Callable[[], Simulation]) -> Callable[[], Simulation]:
    """A run to be kept, under the function's name."""
    SCENARIOS[make.__name__] = make
    return make


def check(cell: str, tree: str, verdict: Verdict) -> CheckRecord:
    failed = int(verdict is Verdict.FAIL)
    counts = {"passed": 4 - failed, "failed": failed, "skipped": 0}
    hashes = {"command_hash": "c" * 8, "environment_hash": "e" * 8}
    return CheckRecord(
        cell, "tests", tree, verdict=verdict, seconds=0.5, cached=False, isolation="overlay",
        **counts, **hashes,
    )  # fmt: skip


def verdict(base: str, tree: str, outcome: Outcome) -> Judgement:
    """What the checks say, with the rows that they leave."""
    if isinstance(outcome, RageError):
        raise outcome
    if isinstance(outcome, Judgement):
        return replace(outcome, base_tree=base, tree=tree)
    if outcome is V.PASS:
        cells = (check("red", base, Verdict.FAIL), check("green", tree, Verdict.PASS))
        why = f"{TEST} was red and is green"
        return Judgement(
            V.PASS, Verdict.PASS, base, tree, why, Origin.GIVEN, red=(TEST,), checks=cells
        )
    if outcome is V.UNVERIFIED:
        cells = (check("green", tree, Verdict.PASS),)
        return Judgement(V.UNVERIFIED, Verdict.PASS, base, tree, "no test was red", checks=cells)
    message = f"{TEST}: {outcome}"
    cells = (check("green", tree, Verdict.FAIL),)
    return Judgement(V.FAIL, Verdict.FAIL, base, tree, message, failing=(TEST,), checks=cells)


def run(
    outcomes: Sequence[Outcome],
    items: Sequence[ItemSpec] = (SUMS,),
    bounds: Limits | None = None,
    config: ProjectConfig | None = None,
    items_limit: int | None = None,
) -> Simulation:
    """A run whose candidates are judged so, one after the other; the same one always alike."""
    known: dict[tuple[str, str, str], Outcome] = {}

    def judge(item: str, base: str, tree: str) -> Judgement:
        if (item, base, tree) not in known:
            known[item, base, tree] = outcomes[len(known)]
        return verdict(base, tree, known[item, base, tree])

    bounds, config = bounds or Limits(), config or ProjectConfig()
    return Simulation(judge, items, bounds, config, items_limit=items_limit)


def says(words: str) -> Word:
    return lambda sim: sim.says(words)


# --- from the first turn to the last ------------------------------------------------------------


@scenario
def done_in_one_turn() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, tokens=4_000))
    return sim


@scenario
def two_items_one_after_the_other() -> Simulation:
    sim = run([V.PASS, V.PASS], [SUMS, AFTER])
    sim.turn(TurnScript("t1", SLICE, tokens=4_000))
    sim.turn(TurnScript("t2", Proposal("add three", scope=("src",)), tokens=3_000))
    return sim


@scenario
def asked_once_more_then_the_whole_item() -> Simulation:
    sim = run([V.PASS], [DOCS])
    sim.turn(TurnScript("t1", tokens=100))
    sim.turn(TurnScript(text='RAGE {"slice": 5}', tokens=100))
    return sim


@scenario
def failed_item_then_the_next() -> Simulation:
    sim = run(["2 == 3", "0 == 1", "raised TypeError", V.PASS], [SUMS, DOCS, AFTER])
    for number in (1, 2, 3):
        sim.turn(TurnScript(f"t{number}", SLICE, tokens=2_000))
    sim.turn(TurnScript("t4", Proposal("write a page"), tokens=1_000))
    return sim


@scenario
def failed_item_pauses_and_leaves_what_changed_meanwhile() -> Simulation:
    bounds = Limits(max_fix_attempts=0, on_failed_item="pause")
    sim = run(["2 == 3", "2 == 4"], [SUMS, DOCS, AFTER], bounds)
    sim.turn(TurnScript("t1", SLICE, left=("src/y.py",)))
    sim.says("resume")
    sim.says("resume")
    sim.turn(TurnScript("t2", Proposal("write a page")))
    return sim


@scenario
def unverified_then_accepted() -> Simulation:
    sim = run([V.UNVERIFIED], [SUMS])
    sim.turn(TurnScript("t1", SLICE))
    sim.says("accept 5")
    return sim


@scenario
def unverified_and_rejected_while_the_next_is_worked_on() -> Simulation:
    sim = run([V.UNVERIFIED, V.PASS], [SUMS, DOCS])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2", Proposal("write a page"), during=says("reject 5 --why 'not so'")))
    return sim


@scenario
def no_change_is_needed() -> Simulation:
    sim = run([V.UNVERIFIED])
    sim.turn(TurnScript(proposal=Proposal(no_change="the numbers are added already")))
    return sim


@scenario
def a_project_without_commits() -> Simulation:
    sim = run([V.PASS, V.PASS], [SUMS, DOCS], config=ProjectConfig(git=GitConfig(commit=False)))
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2", Proposal("write a page")))
    return sim


# --- recovery -----------------------------------------------------------------------------------


@scenario
def repeated_error_retires_an_approach() -> Simulation:
    sim = run(["2 == 3", "2 == 3", V.PASS])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript(proposal=SLICE))
    sim.turn(TurnScript(proposal=OTHER))
    sim.turn(TurnScript("t3"))
    return sim


@scenario
def retired_approach_comes_back_with_a_new_candidate() -> Simulation:
    sim = run(["2 == 3", "2 == 3", V.PASS])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript(proposal=SLICE))
    sim.turn(TurnScript("t3", SLICE))
    return sim


@scenario
def retired_approach_comes_back_by_a_correction() -> Simulation:
    sim = run(["2 == 3", "2 == 3", V.PASS])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.says("correct keep to the plus sign")
    sim.turn(TurnScript(proposal=SLICE))
    sim.turn(TurnScript("t3"))
    return sim


@scenario
def retired_approach_comes_back_by_another_error() -> Simulation:
    sim = run(["2 == 3", "2 == 3", "raised TypeError", V.PASS], bounds=Limits(max_fix_attempts=5))
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript("t3", OTHER))
    sim.turn(TurnScript(proposal=SLICE))
    sim.turn(TurnScript("t4"))
    return sim


@scenario
def stuck_action_is_planned_anew_once() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript(proposal=SLICE))
    sim.turn(TurnScript(stuck="run_command: no such file: make"))
    sim.turn(TurnScript(proposal=OTHER, stuck="run_command: no such file: make"))
    sim.turn(TurnScript(stuck="run_command: no such file: make"))
    sim.turn(TurnScript())
    return sim


@scenario
def out_of_scope_twice() -> Simulation:
    strays = (Change("M", "src/x.py"), Change("M", "setup.py"))
    sim = run([])
    sim.turn(TurnScript("t1", SLICE, changes=strays))
    sim.turn(TurnScript(proposal=SLICE, changes=strays))
    return sim


@scenario
def the_same_candidate_twice() -> Simulation:
    sim = run(["2 == 3"])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2", cosmetic=True))
    sim.turn(TurnScript("t2", cosmetic=True))
    return sim


@scenario
def more_tests_fail_than_the_log_names() -> Simulation:
    many = tuple(f"tests/test_{n}.py::test_{n}" for n in range(70))
    failed = Judgement(V.FAIL, Verdict.FAIL, "", "", "70 tests fail", failing=many)
    sim = run([failed, failed, V.PASS])
    sim.turn(TurnScript("t1", SLICE))
    sim.turn(TurnScript("t2"))
    sim.turn(TurnScript("t3", OTHER))
    return sim


# --- limits -------------------------------------------------------------------------------------


def alert(sim: Simulation) -> None:
    """What a hook does before a model call, with 850 tokens that no turn counted yet."""
    control.alert(sim.parts, "r", 850)


def refuse(sim: Simulation) -> None:
    """What a hook does with a call that may take 5,000 tokens."""
    reached = limits.before_call(sim.state, 0, 5_000, 0.0)
    assert reached is not None
    control.refuse_call(sim.parts, "r", reached)


@scenario
def alert_then_the_budget_is_raised() -> Simulation:
    sim = run([V.PASS], bounds=Limits(run_tokens=1_000, item_tokens=None))
    sim.turn(TurnScript(proposal=SLICE, tokens=850, during=alert))
    sim.turn(TurnScript(tokens=10, during=alert))
    sim.turn(TurnScript(tokens=200))
    sim.says("resume")
    sim.says("resume --budget +5k")
    sim.turn(TurnScript(tokens=4_000))
    sim.turn(TurnScript("t1", tokens=10))
    return sim


@scenario
def alert_by_the_turns_end() -> Simulation:
    sim = run([V.PASS, V.PASS], [SUMS, DOCS], Limits(run_tokens=1_000, item_tokens=None))
    sim.turn(TurnScript("t1", SLICE, tokens=900))
    sim.turn(TurnScript("t2", Proposal("write a page"), tokens=20))
    return sim


@scenario
def a_call_is_refused() -> Simulation:
    sim = run([V.PASS], bounds=Limits(run_tokens=10_000, item_tokens=None))
    sim.turn(TurnScript(proposal=SLICE, tokens=6_000))
    sim.turn(TurnScript(reason="limit", during=refuse))
    sim.says("resume --budget +20k")
    sim.turn(TurnScript("t1", tokens=5_000))
    return sim


@scenario
def the_items_budget_is_spent_and_the_next_begins() -> Simulation:
    sim = run([V.PASS], [SUMS, DOCS], Limits(item_tokens=5_000))
    sim.turn(TurnScript(proposal=SLICE, tokens=4_000))
    sim.turn(TurnScript(reason="limit", during=refuse))
    sim.turn(TurnScript("t1", Proposal("write a page"), tokens=10))
    return sim


@scenario
def as_many_items_as_were_asked_for() -> Simulation:
    sim = run([V.PASS, V.PASS], [SUMS, DOCS], items_limit=1)
    sim.turn(TurnScript("t1", SLICE))
    sim.says("resume")
    sim.turn(TurnScript("t2", Proposal("write a page")))
    return sim


@scenario
def breaker_of_tokens() -> Simulation:
    sim = run([V.PASS], [replace(SUMS, expected_tokens=1_000)])
    sim.turn(TurnScript(proposal=SLICE, tokens=2_500))
    sim.turn(TurnScript("t1", tokens=100))
    sim.says("resume")
    sim.says("resume --budget +50k")
    return sim


@scenario
def breaker_of_tokens_before_a_call() -> Simulation:
    sim = run([V.PASS], [replace(SUMS, expected_tokens=1_000)])
    sim.turn(TurnScript(proposal=SLICE, tokens=2_500))
    sim.turn(TurnScript(during=refuse, reason="limit"))
    sim.says("resume --confirm")
    sim.turn(TurnScript("t1", tokens=100))
    return sim


@scenario
def breaker_of_scope() -> Simulation:
    sim = run([V.PASS], [replace(SUMS, expected_files=2, expected_lines=10)])
    sim.turn(TurnScript("t1", SLICE, size=(1, 21)))
    sim.says("resume")
    sim.says("resume --confirm")
    sim.turn(TurnScript("t2", size=(1, 20)))
    return sim


@scenario
def turns_and_time_are_finite() -> Simulation:
    bounds = Limits(max_iterations=2, noop_turns=99, wall_seconds=100)
    sim = run([], bounds=bounds)
    sim.turn(TurnScript(proposal=SLICE, seconds=10))
    sim.turn(TurnScript(seconds=10, jump=86_400))
    sim.says("resume --max-iterations +3")
    sim.turn(TurnScript(seconds=90, jump=-86_400))
    return sim


@scenario
def provider_errors() -> Simulation:
    sim = run([])
    for _ in range(3):
        sim.turn(TurnScript(reason="error", error="overloaded"))
    return sim


# --- a person, and what comes in between --------------------------------------------------------


@scenario
def a_question_is_answered() -> Simulation:
    asked = "[NEEDS CLARIFICATION: which sums? - whole | broken]"
    sim = run([V.PASS])
    sim.turn(TurnScript(proposal=SLICE, text=asked))
    sim.says("resume")
    sim.says("answer whole")
    sim.says("resume")
    sim.turn(TurnScript("t1", SLICE, text=asked))
    return sim


@scenario
def a_critical_note_is_confirmed() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, added="# [CRITICAL: the old sums are in the ledger]"))
    sim.says("resume --confirm")
    sim.turn(TurnScript(added="# [CRITICAL: the old sums are in the ledger]"))
    return sim


@scenario
def a_deviation_is_ruled_on() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, text="[SPEC_DEVIATION: also subtracts]"))
    sim.says("resolve spec")
    sim.says("resume")
    sim.turn(TurnScript("t2", SLICE, text="[SPEC_DEVIATION: also subtracts]"))
    sim.says("resolve code")
    sim.says("resume")
    sim.turn(TurnScript("t3", SLICE, text="[SPEC_DEVIATION: also subtracts]"))
    return sim


@scenario
def the_criteria_were_changed() -> Simulation:
    sim = run([V.PASS, V.PASS], [SUMS, DOCS])
    sim.turn(TurnScript("t1", SLICE, acting=_reworded))
    sim.says("resolve code")
    sim.says("resume")
    sim.turn(TurnScript("t2", Proposal("write a page")))
    return sim


def _reworded(sim: Simulation) -> None:
    sim.items = [sim.items[0], replace(sim.items[1], criteria=("a page", "a picture"))]


@scenario
def a_correction_in_the_middle_of_a_turn() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, during=says("correct do not touch the loop")))
    sim.turn(TurnScript("t2", OTHER))
    return sim


@scenario
def corrections_between_turns() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript(proposal=SLICE))
    sim.says("correct add them in pairs")
    sim.says("correct --instead add them one by one")
    sim.turn(TurnScript("t1", OTHER))
    return sim


@scenario
def a_correction_while_checks_run() -> Simulation:
    sim = run([V.PASS, V.PASS])
    sim.turn(TurnScript("t1", SLICE, judging=says("correct keep the signature")))
    sim.turn(TurnScript("t2", OTHER))
    return sim


@scenario
def a_correction_while_the_commit_is_made() -> Simulation:
    sim = run([V.PASS, V.PASS], [SUMS, DOCS])
    sim.turn(TurnScript("t1", SLICE, acting=says("correct keep the signature")))
    sim.turn(TurnScript("t2", Proposal("write a page")))
    return sim


@scenario
def paused_while_checks_run() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, judging=says("pause")))
    sim.says("resume")
    sim.turn(TurnScript())
    return sim


@scenario
def stopped_while_the_commit_is_made() -> Simulation:
    sim = run([V.PASS], [SUMS, DOCS])
    sim.turn(TurnScript("t1", SLICE, acting=says("stop")))
    return sim


@scenario
def alerted_while_an_item_is_taken_back() -> Simulation:
    bounds = Limits(max_fix_attempts=0, run_tokens=1_000, item_tokens=None)
    sim = run(["2 == 3", V.PASS], [SUMS, DOCS], bounds)
    sim.turn(TurnScript("t1", SLICE, acting=alert, tokens=10))
    sim.turn(TurnScript("t2", Proposal("write a page"), tokens=10))
    return sim


@scenario
def killed_while_checks_run() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, judging=kill))
    sim.says("resume", session="s2")
    sim.turn(TurnScript(proposal=SLICE))
    return sim


@scenario
def killed_while_the_commit_is_made() -> Simulation:
    sim = run([V.PASS, V.PASS], [SUMS, DOCS])
    sim.turn(TurnScript("t1", SLICE, acting=kill))
    sim.says("resume", session="s2")
    sim.turn(TurnScript("t2", Proposal("write a page")))
    return sim


@scenario
def killed_while_an_item_is_taken_back() -> Simulation:
    sim = run(["2 == 3", V.PASS], [SUMS, DOCS], Limits(max_fix_attempts=0))
    sim.turn(TurnScript("t1", SLICE, acting=kill))
    sim.says("resume", session="s2")
    sim.turn(TurnScript("t2", Proposal("write a page")))
    return sim


@scenario
def on_another_branch() -> Simulation:
    def switch(sim: Simulation) -> None:
        sim.branch = "main"

    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, judging=switch))
    sim.says("resume")
    sim.branch = ""
    sim.says("resume")
    return sim


@scenario
def interrupted() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, reason="interrupt"))
    sim.says("resume")
    sim.turn(TurnScript(proposal=SLICE))
    return sim


@scenario
def checks_cannot_run() -> Simulation:
    blocked = Judgement(
        V.FAIL, Verdict.COULD_NOT_RUN, "", "", "the base cannot be checked", blocked=True
    )
    sim = run([blocked, RageError("no space is left"), V.PASS])
    sim.turn(TurnScript("t1", SLICE))
    sim.says("resume")
    sim.turn(TurnScript("t2"))
    sim.says("resume")
    sim.turn(TurnScript("t3"))
    return sim


@scenario
def the_commit_fails() -> Simulation:
    def full(sim: Simulation) -> None:
        raise RageError("no space is left")

    sim = run([V.PASS])
    sim.turn(TurnScript("t1", SLICE, acting=full))
    sim.says("resume")
    return sim


@scenario
def the_session_ends() -> Simulation:
    sim = run([V.PASS])
    sim.turn(TurnScript(proposal=SLICE))
    control.interrupt(sim.parts, "r", PauseReason.SESSION_ENDED, "The chat ended")
    sim.says("resume", session="s2")
    sim.turn(TurnScript("t1"))
    return sim
