"""When an item is done: every rule of the judgement on cells, and what holds for all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin.core.compare import Runs, compare, failing
from rage_plugin.core.gates import Facts, judge, one_line
from rage_plugin.core.judgement import Cell, CheckRecord, Judgement, Origin, Outcome, Verdict
from rage_plugin.core.model import Verification
from rage_plugin.core.testids import MISSING, SESSION, covers, function_of, narrow, path_of

PASS, FAIL, ERROR, SKIP = Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.SKIP
OLD, RED, NEW = "tests/test_a.py::test_old", "tests/test_a.py::test_red", "tests/test_n.py::test_n"
FACTS = Facts(base_tree="b" * 40, tree="c" * 40)


def cell(name: str = "base", verdict: Verdict | None = None, **kinds: object) -> Cell:
    """A cell; `outcomes`, `broken`, `duplicates`, `note` as in the model."""
    outcomes: dict[str, Outcome] = kinds.pop("outcomes", {})  # type: ignore[assignment]
    bad = bool(kinds.get("broken")) or any(o in (FAIL, ERROR) for o in outcomes.values())
    passed = PASS in outcomes.values()
    nothing = Verdict.SKIPPED if outcomes else Verdict.NOTHING_COLLECTED
    by_itself = Verdict.FAIL if bad else Verdict.PASS if passed else nothing
    record = CheckRecord(
        cell=name,
        command="tests",
        tree="t",
        command_hash="h",
        environment_hash="e",
        verdict=verdict or by_itself,
        passed=0,
        failed=0,
        skipped=0,
        seconds=0.0,
        cached=False,
        isolation="overlay",
    )
    return Cell(record=record, per_test=True, outcomes=outcomes, **kinds)  # type: ignore[arg-type]


def runs(
    base: dict[str, Outcome],
    regression: dict[str, Outcome],
    green: dict[str, Outcome] | None = None,
    **more: object,
) -> Runs:
    """A complete matrix in which every run was made twice with the same outcomes."""
    green = regression if green is None else green
    return Runs(
        command="tests",
        base=[cell("base", outcomes=base)] * 2,
        regression=[cell("regression", outcomes=regression)] * 2,
        green=[cell("green", outcomes=green)] * 2,
        **more,  # type: ignore[arg-type]
    )


def fixed(**more: object) -> Runs:
    """The given test was red and is green, and nothing else moved."""
    return runs({OLD: PASS, RED: FAIL}, {OLD: PASS, RED: PASS}, given=(RED,), **more)


def verdict(runs_: Runs, facts: Facts = FACTS) -> Judgement:
    return judge(replace(facts, given=runs_.given, proposed=runs_.proposed), [runs_])


def test_red_before_green_after_is_done() -> None:
    """F162: the given target failed on the base and passes on the candidate."""
    found = verdict(fixed())
    assert (found.verification, found.verdict) == (Verification.PASS, Verdict.PASS)
    assert (found.origin, found.red) == (Origin.GIVEN, (RED,))
    assert not found.reasons


def test_a_given_target_that_was_green_before_does_not_count() -> None:
    """F162: a green suite proves nothing about an issue if it was green before."""
    found = verdict(runs({OLD: PASS}, {OLD: PASS}, given=(OLD,)))
    assert found.verification is Verification.UNVERIFIED
    assert "was not red before" in found.message


def test_a_projects_own_red_test_counts_as_given_without_gates() -> None:
    """F162: an item without a gate is proven by a red test of the project."""
    found = verdict(runs({OLD: PASS, RED: FAIL}, {OLD: PASS, RED: PASS}))
    assert (found.verification, found.origin) == (Verification.PASS, Origin.GIVEN)


def test_with_gates_another_red_test_of_the_project_proves_nothing() -> None:
    """F162: fixing something else is not the item."""
    found = verdict(runs({OLD: PASS, RED: FAIL}, {OLD: PASS, RED: PASS}, given=(OLD,)))
    assert found.verification is Verification.UNVERIFIED


def agents(red: Outcome | None = FAIL, times: int = 2) -> Runs:
    made = runs({OLD: PASS}, {OLD: PASS}, {OLD: PASS, NEW: PASS})
    broken = {} if red else {path_of(NEW): "ImportError: no name 'n'"}
    one = cell("red", outcomes={NEW: red} if red else {}, broken=broken)
    made.red = [one] * times
    return made


@pytest.mark.parametrize("red", [FAIL, ERROR, None])
def test_an_agents_test_that_tells_base_and_candidate_apart_counts(red: Outcome | None) -> None:
    """F162: a new test fails twice with the base's code, also at its import, and passes twice."""
    found = verdict(agents(red))
    assert (found.verification, found.origin) == (Verification.PASS, Origin.AGENT)
    assert found.red == (NEW,)


@pytest.mark.parametrize("made", [agents(PASS), agents(SKIP), agents(FAIL, times=1)])
def test_an_agents_test_must_fail_twice_on_the_base(made: Runs) -> None:
    """F162: green, skipped or failed only once is no red."""
    assert verdict(made).verification is Verification.UNVERIFIED


def test_an_agents_test_must_pass_twice() -> None:
    """F162: a single green run is chance."""
    made = agents()
    made.green = made.green[:1]
    assert verdict(made).verification is Verification.UNVERIFIED


def test_accept_given_wants_more_than_an_agents_test() -> None:
    """F162: `verification.accept: given` demands the item's or project's own test."""
    found = verdict(agents(), replace(FACTS, accept="given"))
    assert found.verification is Verification.UNVERIFIED
    assert "demands a given one" in found.message
    assert verdict(fixed(), replace(FACTS, accept="given")).verification is Verification.PASS


def test_accept_suite_needs_no_red_but_no_regression_either() -> None:
    """F162: `verification.accept: suite` closes chores."""
    facts = replace(FACTS, accept="suite")
    found = verdict(runs({OLD: PASS}, {OLD: PASS}), facts)
    assert (found.verification, found.origin) == (Verification.PASS, Origin.SUITE)
    assert verdict(runs({OLD: PASS}, {OLD: FAIL}), facts).verification is Verification.FAIL


@pytest.mark.parametrize("after", [FAIL, ERROR, SKIP, None])
def test_what_passed_before_must_still_exist_and_pass(after: Outcome | None) -> None:
    """F140: failing, skipped, xfailed or gone in the base's own tests is a regression."""
    left = {RED: PASS} | ({OLD: after} if after else {})
    found = verdict(runs({OLD: PASS, RED: FAIL}, left, given=(RED,)))
    assert (found.verification, found.regressions) == (Verification.FAIL, (OLD,))
    assert found.verdict is (Verdict.SKIPPED if after is SKIP else Verdict.FAIL)


def test_reported_twice_is_no_evidence() -> None:
    """F140: an id must pass exactly once."""
    made = fixed()
    twice = replace(made.regression[0], duplicates=(OLD,))
    made.regression = [twice, twice]
    assert verdict(made).regressions == (OLD,)


def test_a_file_that_cannot_be_collected_took_its_tests_with_it() -> None:
    """F140: a collection error on the candidate is a regression of every id in the file."""
    made = fixed()
    whole = cell(outcomes={}, broken={path_of(OLD): "SyntaxError: invalid syntax"})
    made.regression = made.green = [whole, whole]
    made.given = ()
    found = verdict(made)
    assert found.regressions == (OLD,)
    assert "SyntaxError" in found.message


@pytest.mark.parametrize("after", [SKIP, None])
def test_a_skip_added_beside_a_right_fix_is_for_a_person(after: Outcome | None) -> None:
    """F140: the base's version passes and the candidate's own is skipped or gone: unverified."""
    own = {RED: PASS} | ({OLD: after} if after else {})
    found = verdict(runs({OLD: PASS, RED: FAIL}, {OLD: PASS, RED: PASS}, own, given=(RED,)))
    assert found.verification is Verification.UNVERIFIED
    assert OLD in found.message


def test_a_given_test_that_is_skipped_does_not_pass() -> None:
    """F162: the base's version passes, but the gate in the candidate's file is skipped."""
    both = {OLD: PASS, RED: PASS}
    found = verdict(runs({OLD: PASS, RED: FAIL}, both, {OLD: PASS, RED: SKIP}, given=(RED,)))
    assert (found.verification, found.failing) == (Verification.FAIL, (RED,))


@pytest.mark.parametrize(
    ("target", "seen", "says"),
    [
        (RED, {OLD: PASS, RED: SKIP}, "is skipped"),
        (path_of(RED), {OLD: SKIP, RED: SKIP}, "is skipped"),
        ("tests/test_z.py", {OLD: PASS}, "no test was collected"),
        (path_of(RED), {OLD: SKIP, RED: PASS}, ""),
    ],
)
def test_a_gate_needs_a_test_that_passes(target: str, seen: dict[str, Outcome], says: str) -> None:
    """F103: skipped or not collected is no pass; a skipped neighbour in the file is none of it."""
    found = failing(cell("target", outcomes=seen), [target])
    assert list(found.values()) == ([says] if says else [])


def test_a_file_skipped_as_a_whole_is_a_skip_of_its_tests() -> None:
    """F140: a module-level skip is reported under the file's path."""
    other = "tests/test_b.py::test_b"
    found = verdict(runs({OLD: PASS, other: PASS}, {path_of(OLD): SKIP, other: PASS}))
    assert (found.regressions, found.verdict) == ((OLD,), Verdict.SKIPPED)


def test_what_the_base_itself_gives_twice_is_unstable() -> None:
    """F140: passed and then failed on the base: excluded, whatever the candidate does."""
    made = runs({OLD: PASS, RED: FAIL}, {OLD: FAIL, RED: PASS}, given=(RED,))
    made.base[1] = cell(outcomes={OLD: FAIL, RED: FAIL})
    found = verdict(made)
    assert (found.verification, found.unstable, found.regressions) == (
        Verification.PASS,
        (OLD,),
        (),
    )


def test_an_unsealed_test_may_go_but_not_fail() -> None:
    """F138: a person lifted the seal of the file: its tests may be gone or skipped."""
    facts = replace(FACTS, lifted=frozenset({"tests/test_b.py"}))
    other = "tests/test_b.py::test_b"
    for left, want in [({}, Verification.PASS), ({other: FAIL}, Verification.FAIL)]:
        made = runs({RED: FAIL, other: PASS}, {RED: PASS} | left, given=(RED,))
        assert verdict(made, facts).verification is want


def test_a_gate_that_the_bases_version_lost_is_for_a_person() -> None:
    """F162: the base's gate produced an id that the candidate's code does not give any more."""
    old, new = "tests/test_a.py::test_each[old]", "tests/test_a.py::test_each[new]"
    made = runs({OLD: PASS, old: FAIL}, {OLD: PASS, new: PASS}, given=(path_of(OLD),))
    found = verdict(made)
    assert found.verification is Verification.UNVERIFIED
    assert f"{old} is named by the gate and is gone" in found.reasons


def test_a_gate_that_only_the_candidates_version_can_import_fails() -> None:
    """F138: the base's version of the given file still cannot be collected."""
    path = path_of(NEW)
    made = runs({OLD: PASS}, {OLD: PASS}, {OLD: PASS, NEW: PASS}, given=(path,))
    broken = cell(outcomes={OLD: PASS}, broken={path: "ImportError"})
    made.base, made.regression = [broken] * 2, [broken] * 2
    made.target = [cell("target", outcomes={NEW: PASS})]
    assert verdict(made).failing == (path,)


def test_a_file_that_never_could_be_collected_is_named() -> None:
    """F164: broken before and after, and no gate of the item."""
    made = fixed()
    rest = {"tests/test_z.py": "ImportError"}
    made.base = [cell(outcomes={OLD: PASS, RED: FAIL}, broken=rest)] * 2
    made.regression = made.green = [cell(outcomes={OLD: PASS, RED: PASS}, broken=rest)] * 2
    found = verdict(made)
    assert (found.verification, found.preexisting) == (Verification.PASS, ("tests/test_z.py",))


def test_every_test_of_a_named_file_must_pass() -> None:
    """F162: also one that the agent added to it; elsewhere a new failure is a warning."""
    both = {OLD: PASS, RED: PASS}
    new = {"tests/test_a.py::test_added": FAIL}
    made = runs({OLD: PASS, RED: FAIL}, both, both | new, given=(path_of(RED),))
    assert verdict(made).failing == tuple(new)
    made.given = (RED,)
    found = verdict(made)
    assert found.verification is Verification.PASS
    assert "test_added is new and fails" in found.warnings[0]


def test_a_red_run_that_is_not_needed_decides_nothing() -> None:
    """F162: the given gate was red; what the agent's own tests did there is no matter."""
    made = fixed(red=[cell("red", verdict=Verdict.TIMEOUT)])
    assert verdict(made).verification is Verification.PASS


def test_the_first_verdict_of_its_own_is_told() -> None:
    """F103: of several runs that were not whole the first one names the cause."""
    made = fixed()
    made.regression = [cell(verdict=Verdict.TIMEOUT, note="stopped after 3 s")] * 2
    made.green = [cell(verdict=Verdict.PARTIAL)] * 2
    found = verdict(made)
    assert found.verdict is Verdict.TIMEOUT
    assert "stopped after 3 s" in found.message


def test_reported_twice_says_so() -> None:
    """F140: the message of an id that came more than once."""
    both = {OLD: PASS, RED: PASS}
    twice = cell("target", outcomes=both, duplicates=(RED,))
    found = compare(Runs("tests", given=(RED,), target=[twice]))
    assert found.failing == {RED: "was reported more than once"}


def test_a_weakened_gate_fails_in_the_bases_version() -> None:
    """F138: the candidate's version of the gate passes, the base's does not."""
    green = {OLD: PASS, RED: PASS}
    made = runs({OLD: PASS, RED: FAIL}, {OLD: PASS, RED: FAIL}, green, given=(RED,))
    assert verdict(made).failing == (RED,)


def test_changed_parameters_are_for_a_person() -> None:
    """F140: an id is gone while its function remains with other parameters."""
    made = runs({f"{OLD}[1]": PASS, RED: FAIL}, {f"{OLD}[2]": PASS, RED: PASS}, given=(RED,))
    found = verdict(made)
    assert found.verification is Verification.UNVERIFIED
    assert "parameters changed" in found.message


def test_old_failures_are_named_and_not_required() -> None:
    """F164: a suite that was red before passes when nothing that passed fails."""
    other = "tests/test_b.py::test_broken"
    made = runs({RED: FAIL, other: FAIL}, {RED: PASS, other: FAIL}, given=(RED,))
    found = verdict(made)
    assert (found.verification, found.preexisting) == (Verification.PASS, (other,))


@pytest.mark.parametrize(
    ("own", "broken", "word"),
    [
        ({}, {}, "is gone"),
        ({"tests/test_b.py::test_broken": SKIP}, {}, "is skipped"),
        ({"tests/test_b.py": SKIP}, {}, "is skipped"),
        ({"tests/test_b.py::test_broken": FAIL}, {}, ""),
        ({"tests/test_b.py::test_broken": PASS}, {}, ""),
        ({}, {"tests/test_b.py": "ImportError"}, ""),
    ],
)
def test_old_failures_are_not_hidden(
    own: dict[str, Outcome], broken: dict[str, str], word: str
) -> None:
    """F164: beside the right fix an added skip takes an old failure out of sight."""
    other = "tests/test_b.py::test_broken"
    made = runs({RED: FAIL, other: FAIL}, {RED: PASS, other: FAIL}, given=(RED,))
    made.green = [cell("green", outcomes={RED: PASS, **own}, broken=broken)] * 2
    found = verdict(made)
    assert found.verification is (Verification.UNVERIFIED if word else Verification.PASS)
    assert not word or f"{other} failed before and {word}" in found.message


@pytest.mark.parametrize(
    ("own", "word"), [({"tests/test_b.py": SKIP}, "is skipped"), ({}, "is gone"), (None, "")]
)
def test_a_file_that_could_not_be_collected_is_not_hidden(
    own: dict[str, Outcome] | None, word: str
) -> None:
    """F164: the same for a file; one that can be collected by now is no loss."""
    shown = {"tests/test_b.py::test_b": PASS} if own is None else own
    bad = {"tests/test_b.py": "ImportError"}
    made = fixed()
    made.base = [cell(outcomes={OLD: PASS, RED: FAIL}, broken=bad)] * 2
    made.regression = [cell(outcomes={OLD: PASS, RED: PASS}, broken=bad)] * 2
    made.green = [cell(outcomes={OLD: PASS, RED: PASS, **shown})] * 2
    found = verdict(made)
    assert found.verification is (Verification.UNVERIFIED if word else Verification.PASS)
    assert not word or f"tests/test_b.py failed before and {word}" in found.message


def test_a_skipped_test_that_fails_now_is_named() -> None:
    """F164: a strict expected failure that passes by the fix; a red suite stays one, and says so."""
    other = "tests/test_b.py::test_expected"
    made = runs({RED: FAIL, other: SKIP}, {RED: PASS, other: FAIL}, given=(RED,))
    found = verdict(made)
    assert found.verification is Verification.PASS
    assert any(other in w and "was skipped before and fails now" in w for w in found.warnings)


def test_a_suite_that_was_green_and_is_not_any_more_is_for_a_person() -> None:
    """F076: a skipped test was no pass that could be lost, yet the suite is red by the change."""
    made = agents()
    other = "tests/test_b.py::test_expected"
    made.base = [cell("base", outcomes={OLD: PASS, other: SKIP})] * 2
    made.regression = [cell("regression", outcomes={OLD: PASS, other: FAIL})] * 2
    made.green = [cell("green", outcomes={OLD: PASS, other: FAIL, NEW: PASS})] * 2
    found = verdict(made)
    assert found.verification is Verification.UNVERIFIED
    assert "was skipped before and fails now" in found.message


def test_an_unstable_test_counts_neither_way() -> None:
    """F140: passed, failed and passed again: excluded and listed."""
    made = fixed()
    flaky = cell(outcomes={OLD: FAIL, RED: PASS})
    made.regression = [flaky, cell(outcomes={OLD: PASS})]
    made.green = [flaky, cell(outcomes={OLD: PASS, RED: PASS})]
    found = verdict(made)
    assert (found.verification, found.unstable) == (Verification.PASS, (OLD,))


def test_an_unstable_gate_is_no_pass() -> None:
    """F162: a gate that passes now and then does not pass."""
    made = fixed(target=[cell("target", outcomes={RED: PASS})])
    flaky = cell(outcomes={OLD: PASS, RED: FAIL})
    made.green = [flaky, flaky]
    assert verdict(made).verification is Verification.FAIL


def test_in_doubt_is_asked_for_before_it_is_believed() -> None:
    """F140: a first failure of what passed at base is to be run again on both."""
    made = runs({OLD: PASS}, {OLD: FAIL})
    made.base, made.regression, made.green = made.base[:1], made.regression[:1], []
    assert compare(made).doubtful == [OLD]


def test_an_import_error_is_red_only_if_the_bases_suite_collects() -> None:
    """F162: with every file of the base broken, a failed import says nothing."""
    path = path_of(RED)
    after = {RED: PASS, "tests/test_b.py::test_b": PASS}
    made = runs({}, after, given=(RED,))
    made.base = [cell(broken={path: "ImportError", "tests/test_b.py": "ImportError"})] * 2
    assert verdict(made).verification is Verification.UNVERIFIED
    made.base = [cell(outcomes={OLD: PASS}, broken={path: "ImportError"})] * 2
    made.regression = made.green = [cell(outcomes={**after, OLD: PASS})] * 2
    assert verdict(made).verification is Verification.PASS


@pytest.mark.parametrize("bad", sorted(set(Verdict) - {Verdict.PASS, Verdict.FAIL}))
@pytest.mark.parametrize("kind", ["target", "regression", "green"])
def test_no_verdict_but_pass_opens_a_gate(bad: Verdict, kind: str) -> None:
    """F103: each verdict of its own stays its own and fails the item."""
    made = fixed(target=[cell("target", outcomes={RED: PASS})])
    for one in [getattr(made, kind)]:
        one[0] = replace(one[0], record=replace(one[0].record, verdict=bad))
    found = verdict(made)
    assert (found.verification, found.verdict) == (Verification.FAIL, bad)
    assert not found.blocked


@pytest.mark.parametrize("bad", [Verdict.TIMEOUT, Verdict.COULD_NOT_RUN, Verdict.PARTIAL])
def test_a_base_that_cannot_be_checked_blocks(bad: Verdict) -> None:
    """F164: no attempt can help where the base itself could not be checked."""
    made = fixed()
    made.base = [cell(verdict=bad)]
    found = verdict(made)
    assert (found.verification, found.verdict, found.blocked) == (Verification.FAIL, bad, True)


def test_a_needed_red_run_that_timed_out_is_no_red() -> None:
    """F103: a new test that hangs on the old code is not red."""
    made = agents()
    made.red = [cell("red", verdict=Verdict.TIMEOUT, outcomes={NEW: FAIL})] * 2
    found = verdict(made)
    assert (found.verification, found.verdict) == (Verification.FAIL, Verdict.TIMEOUT)


def test_a_threshold_of_the_whole_run_counts() -> None:
    """F103: the run fails although no test does."""
    made = fixed()
    low = cell(outcomes={OLD: PASS, RED: PASS, SESSION: FAIL}, note="coverage 10 < 80")
    made.green = [low, low]
    found = verdict(made)
    assert found.verification is Verification.FAIL
    assert "coverage" in found.message


def test_a_threshold_that_was_missed_before_is_an_old_failure() -> None:
    """F164: coverage was too low beside the red test; the fix is not refused for it."""
    made = fixed()
    made.base = [cell(outcomes={OLD: PASS, RED: FAIL, SESSION: FAIL})] * 2
    made.regression = made.green = [cell(outcomes={OLD: PASS, RED: PASS, SESSION: FAIL})] * 2
    found = verdict(made)
    assert (found.verification, found.preexisting) == (Verification.PASS, (SESSION,))


def test_paths_decide_before_runs() -> None:
    """F138: a sealed path that changed is tampered, whatever the runs say."""
    found = verdict(fixed(), replace(FACTS, tampered=("conftest.py",)))
    assert (found.verification, found.verdict) == (Verification.FAIL, Verdict.TAMPERED)
    assert found.tampered == ("conftest.py",)
    moved = verdict(fixed(), replace(FACTS, moved=True))
    assert (moved.verification, moved.verdict) == (Verification.FAIL, Verdict.PARTIAL)


def test_a_reason_of_the_paths_leaves_it_to_a_person() -> None:
    """F140: an existing test that was changed is unverified at best, with the red named."""
    found = verdict(fixed(), replace(FACTS, reasons=("tests/test_b.py: changed",)))
    assert (found.verification, found.origin) == (Verification.UNVERIFIED, Origin.GIVEN)
    assert found.verdict is not Verdict.PASS


def test_nothing_changed_and_the_claim_of_it() -> None:
    """F162: an empty change fails; claimed, it is unverified, or fails by a red gate."""
    same = replace(FACTS, tree=FACTS.base_tree)
    assert judge(same, []).message == "Nothing changed"
    claimed = replace(same, claim_no_change=True, given=(RED,))
    assert judge(claimed, []).verification is Verification.UNVERIFIED
    red = Runs("tests", given=(RED,), target=[cell("target", outcomes={RED: FAIL})])
    found = judge(claimed, [red])
    assert found.verification is Verification.FAIL
    assert found.message.startswith(f"Claimed no change, but {RED} fails")


def test_a_run_that_was_not_made_proves_nothing() -> None:
    """F162: a missing cell never opens a gate."""
    for kind in ("base", "regression", "green"):
        made = fixed()
        getattr(made, kind).clear()
        assert verdict(made).verification is not Verification.PASS
    assert judge(FACTS, []).verification is Verification.FAIL


def test_optional_commands_only_warn_and_all_required_ones_hold() -> None:
    """F104: optional failure is a warning, required failure blocks."""
    optional = Runs("lint", required=False, green=[cell(outcomes={"x": FAIL})])
    facts = replace(FACTS, given=(RED,))
    found = judge(facts, [fixed(), optional])
    assert found.verification is Verification.PASS
    assert found.warnings == ("lint (optional): fail",)
    second = runs({"t.py::t": PASS}, {"t.py::t": FAIL})
    assert judge(facts, [fixed(), second]).verification is Verification.FAIL


def exits(base: str, after: str, **more: list[Verdict]) -> Runs:
    """A command with exit codes only; further runs of a kind by keyword."""
    made = Runs("check", per_test=False, given=("t.sh",))
    for kind, word in (("base", base), ("regression", after), ("green", after)):
        getattr(made, kind).append(cell(kind, verdict=Verdict(word)))
    for kind, verdicts in more.items():
        getattr(made, kind).extend(cell(kind, verdict=v) for v in verdicts)
    return made


def test_an_exit_code_alone_needs_a_targeted_red_and_a_green_baseline() -> None:
    """F162: runners without a per-test report follow the exit-code rule."""
    new = {"red": [Verdict.FAIL] * 2, "green": [Verdict.PASS]}
    assert verdict(exits("pass", "pass", **new)).verification is Verification.PASS
    assert verdict(exits("pass", "pass")).verification is Verification.UNVERIFIED
    red_baseline = verdict(exits("fail", "pass", **new))
    assert red_baseline.verification is Verification.UNVERIFIED
    assert "was red before" in red_baseline.message
    still = verdict(exits("fail", "fail"))
    assert (still.verification, still.preexisting) == (Verification.UNVERIFIED, ("check",))


def test_an_exit_code_that_turned_bad_is_a_regression_if_it_stays_bad() -> None:
    """F140: a required command that was green fails now, and fails again."""
    stays = exits("pass", "fail", again=[Verdict.PASS, Verdict.FAIL])
    assert verdict(stays).regressions == ("check",)
    wavers = exits("pass", "fail", again=[Verdict.FAIL, Verdict.FAIL])
    assert verdict(wavers).verification is Verification.UNVERIFIED
    assert verdict(wavers).unstable == ("check",)


def test_a_lint_that_was_red_and_still_is_leaves_it_to_a_person() -> None:
    """F104: one required exit-code command red before and after is named."""
    lint = exits("fail", "fail")
    lint.given = ()
    found = judge(replace(FACTS, given=(RED,)), [fixed(), lint])
    assert found.verification is Verification.UNVERIFIED
    lint = exits("fail", "pass")
    lint.given = ()
    assert judge(replace(FACTS, given=(RED,)), [fixed(), lint]).verification is Verification.PASS


def test_a_message_is_one_clean_line() -> None:
    """F103: at most 200 characters, no control characters, the reason and the count in it."""
    made = fixed()
    names = [f"tests/test_a.py::test_{'x' * 150}_{n}" for n in range(3)]
    red = cell("target", outcomes=dict.fromkeys(names, FAIL), messages={})
    said = dict.fromkeys(names, "AssertionError:\n\x1b[31m2 != 3\x07 " + "é" * 300)
    made.given, made.target = (path_of(RED),), [replace(red, messages=said)]
    message = verdict(made).message
    assert len(message) <= 200
    assert message.endswith("(+2 more)")
    assert message.isprintable()
    assert one_line("a\x00b\n c") == "ab c"


@pytest.mark.parametrize(
    ("target", "test", "yes"),
    [
        ("tests", "tests/a.py::t", True),
        ("tests/", "tests/a/b.py::C::t[x]", True),
        ("test", "tests/a.py::t", False),
        (".", "a.py::t", True),
        ("a.py", "a.py::t", True),
        ("a.py", "b/a.py::t", False),
        ("a.py::t", "a.py::t[1]", True),
        ("a.py::t", "a.py::t2", False),
        ("a.py::C", "a.py::C::t[a::b]", True),
        ("a.py::t[1]", "a.py::t[1]", True),
        ("a.py::t[1]", "a.py::t[11]", False),
    ],
)
def test_what_a_target_covers(target: str, test: str, yes: bool) -> None:
    """F106: a file, a folder, a class, a function with all its parameters, or one id."""
    assert covers(target, test) is yes


def test_ids_take_any_parameter() -> None:
    """F140: brackets and colons in a parameter belong to the parameter."""
    assert function_of("a.py::C::t[x::y[0]]") == "a.py::C::t"
    assert len(narrow(f"a{n % 3}.py::t{n}" for n in range(100))) == 3
    assert MISSING


# --- what holds for every matrix -----------------------------------------------------------------

TESTS = [f"tests/test_{f}.py::test_{n}" for f in "ab" for n in "123"] + [
    "tests/test_a.py::test_p[1]"
]
outcomes = st.dictionaries(st.sampled_from(TESTS), st.sampled_from(list(Outcome)), max_size=7)
brokens = st.dictionaries(
    st.sampled_from(["tests/test_a.py", "tests/test_b.py"]), st.just("ImportError"), max_size=1
)
cells = st.builds(
    lambda o, b, d: cell(
        outcomes={t: s for t, s in o.items() if path_of(t) not in b}, broken=b, duplicates=tuple(d)
    ),
    outcomes,
    brokens,
    st.lists(st.sampled_from(TESTS), max_size=1),
)
several = st.lists(cells, min_size=1, max_size=3)
targets = st.lists(st.sampled_from([*TESTS, "tests", "tests/test_a.py"]), max_size=2).map(tuple)
matrices = st.builds(
    Runs,
    command=st.just("tests"),
    given=targets,
    proposed=targets,
    target=st.lists(cells, max_size=1),
    base=several,
    red=st.lists(cells, max_size=2),
    regression=several,
    green=several,
)
likely = st.builds(
    lambda old, red, new, given_: runs(
        dict.fromkeys(old, PASS) | dict.fromkeys(red - old, FAIL),
        dict.fromkeys(old | red, PASS),
        dict.fromkeys(old | red | new, PASS),
        given=tuple(given_),
        red=[cell(outcomes=dict.fromkeys(new - old - red, FAIL))] * 2,
    ),
    st.sets(st.sampled_from(TESTS)),
    st.sets(st.sampled_from(TESTS)),
    st.sets(st.sampled_from(TESTS)),
    st.lists(st.sampled_from(TESTS), max_size=1),
)


def fails(one: Cell, test: str) -> bool:
    said = one.outcomes.get(test)
    return said in (FAIL, ERROR) or (said is None and path_of(test) in one.broken)


@settings(max_examples=400, deadline=None)
@given(st.one_of(matrices, likely))
def test_a_pass_always_has_a_red_and_lost_nothing(made: Runs) -> None:
    """F162, F140: pass implies a red id that is green now, and that what passed still passes."""
    found = verdict(made)
    assert len(found.message) <= 200
    assert (found.verdict is Verdict.PASS) == (found.verification is Verification.PASS)
    if found.verification is not Verification.PASS:
        return
    assert found.red
    for test in found.red:
        failed = [c for c in (*made.base, *made.red) if fails(c, test)]
        assert len(failed) >= 2
        assert all(c.outcomes.get(test, PASS) is PASS for c in made.green)
    for test, said in made.base[0].outcomes.items():
        if said is PASS and test not in made.base[0].duplicates and test not in found.unstable:
            assert made.regression[0].outcomes.get(test) is PASS
            assert made.green[0].outcomes.get(test) is PASS


@settings(max_examples=300, deadline=None)
@given(likely, st.data())
def test_one_failure_of_what_passed_never_passes(made: Runs, data: st.DataObject) -> None:
    """F140: whichever id is lost, in the base's tests or in the candidate's: never a pass."""
    passed = sorted(t for t, o in made.base[0].outcomes.items() if o is PASS)
    if not passed:
        return
    test = data.draw(st.sampled_from(passed))
    said = data.draw(st.sampled_from([FAIL, ERROR, SKIP, None]))
    kind = data.draw(st.sampled_from(["regression", "green"]))
    before = getattr(made, kind)[0]
    left = {t: o for t, o in before.outcomes.items() if t != test} | ({test: said} if said else {})
    setattr(made, kind, [cell(kind, outcomes=left)] * 2)
    assert verdict(made).verification is not Verification.PASS


@settings(max_examples=200, deadline=None)
@given(st.one_of(matrices, likely), st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_reported_does_not_matter(made: Runs, random) -> None:  # type: ignore[no-untyped-def]
    """F162: same outcomes, same judgement."""
    before = verdict(made)

    def mixed(one: Cell) -> Cell:
        items = list(one.outcomes.items())
        random.shuffle(items)
        return replace(one, outcomes=dict(items))

    for kind in ("target", "base", "red", "regression", "green"):
        setattr(made, kind, [mixed(c) for c in getattr(made, kind)])
    assert verdict(made) == before


@settings(max_examples=200, deadline=None)
@given(likely)
def test_an_honest_fix_is_never_refused(made: Runs) -> None:
    """F162: red twice, green twice, nothing lost: done, whatever else the suite holds."""
    reds = {t for t in made.base[0].outcomes if fails(made.base[0], t)}
    fresh = set(made.green[0].outcomes) - set(made.base[0].outcomes)
    given_ = set(made.given)
    proven = (reds & given_ if given_ else reds) or fresh
    known = given_ <= set(made.green[0].outcomes)
    if proven and known:
        assert verdict(made).verification is Verification.PASS
