"""What the cells of one command prove, test by test: failing gates, regressions, reds, doubts.

Separate from `gates.py` because a project may have several commands: this page reads one of them,
that one weighs them all. Every id counts by all the runs that met it; runs of one tree that
disagree make the id unstable, and an unstable id is no evidence either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .judgement import Cell, Outcome, Verdict
from .testids import (
    MISSING,
    SESSION,
    covered,
    covers,
    function_of,
    ids,
    known,
    path_of,
    status,
    touches,
)

RAN = frozenset({Verdict.PASS, Verdict.FAIL})
"""Verdicts of a run that was whole; anything else is a verdict of its own (law 5)."""
EMPTY = frozenset({Verdict.SKIPPED, Verdict.NOTHING_COLLECTED})
_BAD = frozenset({Outcome.FAIL, Outcome.ERROR})


@dataclass(slots=True)
class Runs:
    """The cells of one command; it grows while the matrix runs.

    The first cell of `base`, `regression` and `green` is the whole suite, every further one a
    narrower re-run on the same tree. `target` is the gate alone on the candidate.
    """

    command: str
    required: bool = True
    per_test: bool = True
    given: tuple[str, ...] = ()
    """A person's targets that this command is asked to run."""
    proposed: tuple[str, ...] = ()
    """The agent's targets that this command is asked to run."""
    target: list[Cell] = field(default_factory=list)
    base: list[Cell] = field(default_factory=list)
    red: list[Cell] = field(default_factory=list)
    """The candidate's tests on the base's code."""
    regression: list[Cell] = field(default_factory=list)
    """The base's tests on the candidate's code."""
    green: list[Cell] = field(default_factory=list)
    again: list[Cell] = field(default_factory=list)
    """Exit codes only: the whole command once more on the base and on the candidate."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Everything that has to pass by name."""
        return tuple(dict.fromkeys((*self.given, *self.proposed)))

    @property
    def candidate(self) -> list[Cell]:
        """The runs of the candidate's own tests on its own code."""
        return [*self.target, *self.green]

    @property
    def cells(self) -> list[Cell]:
        """Every cell, in the order in which they are told."""
        return [
            *self.target,
            *self.base,
            *self.red,
            *self.regression,
            *self.green,
            *self.again,
        ]


@dataclass(slots=True)
class Finding:
    """What one command's cells prove so far."""

    command: str
    verdict: Verdict = Verdict.PASS
    """The first verdict that is neither pass nor fail, of a run that was needed."""
    note: str = ""
    blocked: bool = False
    failing: dict[str, str] = field(default_factory=dict)
    """Why each id or target that has to pass does not."""
    regressions: dict[str, str] = field(default_factory=dict)
    skipped: bool = False
    """Something that passed before is skipped now."""
    doubtful: list[str] = field(default_factory=list)
    """Ids that passed at base, fail in a candidate's run, and were run there only once."""
    preexisting: list[str] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    given_red: list[str] = field(default_factory=list)
    agent_red: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """What only a person can decide, each a plain sentence."""
    warnings: list[str] = field(default_factory=list)
    complete: bool = False
    """Base, regression and green were all run."""

    @property
    def settled(self) -> bool:
        """No further run can turn this into a pass."""
        return bool(
            self.blocked or self.verdict is not Verdict.PASS or self.failing or self.regressions
        )


def failing(cell: Cell, targets: Iterable[str]) -> dict[str, str]:
    """Why targets do not pass in a cell, by id; a target without one passing test does not."""
    bad: dict[str, str] = {}
    seen = ids([cell])
    for target in targets:
        broken = {b: why for b, why in cell.broken.items() if touches(target, b)}
        inside = covered([target], seen)
        states = {t: status(cell, t) for t in inside}
        for name, why in broken.items():
            bad[target if why == MISSING else name] = why
        for test, state in states.items():
            if state in _BAD:
                bad[test] = message(cell, test)
        if not broken and not any(s is Outcome.PASS or s in _BAD for s in states.values()):
            bad[target] = "is skipped" if inside else "no test was collected"
        elif states.get(target) is Outcome.SKIP:
            bad[target] = "is skipped"
    return bad


def message(cell: Cell, test: str) -> str:
    """One line on why an id does not pass in a cell."""
    if test in cell.duplicates:
        return "was reported more than once"
    said = cell.messages.get(test) or cell.broken.get(path_of(test), "")
    state = status(cell, test)
    return said or (
        "is gone" if state is None else "is skipped" if state is Outcome.SKIP else "failed"
    )


def unusable(finding: Finding, name: str, cell: Cell, *, empty: bool = False) -> bool:
    """Record a verdict that is neither pass nor fail; `empty`: no tests is an answer here."""
    if cell.verdict in RAN or (empty and cell.verdict in EMPTY):
        return False
    if finding.verdict is Verdict.PASS:
        finding.verdict = cell.verdict
        why = cell.note or next(iter(cell.broken.values()), "")
        word = str(cell.verdict).replace("_", " ")
        finding.note = f"{name} of {finding.command}: {word}" + (f" ({why})" if why else "")
    return True


def passed_at_base(runs: Runs) -> list[str]:
    """The ids that passed in the base's whole run, exactly once, sorted."""
    if not runs.base:
        return []
    whole = runs.base[0]
    return sorted(t for t in whole.outcomes if status(whole, t) is Outcome.PASS)


def compare(runs: Runs, lifted: Callable[[str], bool] = lambda _path: False) -> Finding:
    """What the cells say so far. `lifted` tells the test files that a person unsealed."""
    finding = Finding(runs.command)
    for cell in runs.target:
        if not unusable(finding, "The gate's run", cell):
            finding.failing |= failing(cell, runs.targets)
    if runs.base and unusable(finding, "The base's run", runs.base[0], empty=True):
        finding.blocked = True
    if finding.settled or not runs.base:
        return finding
    _regression(finding, runs, lifted)
    _gates(finding, runs, lifted)
    _named(finding, runs)
    _hidden(finding, runs, lifted)
    _reds(finding, runs)
    finding.complete = bool(runs.base and runs.regression and runs.green)
    return finding


def _regression(finding: Finding, runs: Runs, lifted: Callable[[str], bool]) -> None:
    before = passed_at_base(runs)
    for cell in runs.regression[:1]:
        unusable(finding, "The run of the base's tests", cell, empty=not before)
    for cell in runs.green[:1]:
        unusable(finding, "The whole run", cell)
        _unexplained(finding, runs.base[0], cell)
    kinds = [
        (cells, own, {function_of(t) for t in ids(cells[:1])})
        for cells, own in ((runs.regression, False), (runs.green, True))
        if cells
    ]
    for test in before:
        if any(s is not Outcome.PASS for s in known(runs.base[1:], test)):
            finding.unstable.append(test)
            continue
        for cells, own, functions in kinds:
            states = [status(cells[0], test), *known(cells[1:], test)]
            if any(s is not Outcome.PASS for s in states):
                kept = function_of(test) in functions
                _differs(finding, test, cells, states, own, kept, lifted(path_of(test)))
                break


def _differs(
    finding: Finding,
    test: str,
    cells: Sequence[Cell],
    states: Sequence[Outcome | None],
    own: bool,
    function_kept: bool,
    free: bool,
) -> None:
    """Judge an id that passed at base and does not always pass in one kind of run."""
    first = states[0]
    if any(s is Outcome.PASS for s in states):
        finding.unstable.append(test)
    elif first is None and function_kept:
        finding.reasons.append(f"{test}: its parameters changed, a person has to decide")
    elif first not in _BAD and free:
        return
    elif first not in _BAD and own:
        word = "is skipped" if first is Outcome.SKIP else "is gone"
        finding.reasons.append(f"{test} passed before and {word} in the candidate's tests")
        finding.skipped |= first is Outcome.SKIP
    else:
        if len(cells) == 1:
            finding.doubtful.append(test)
        finding.regressions[test] = message(cells[0], test)


def _gates(finding: Finding, runs: Runs, lifted: Callable[[str], bool]) -> None:
    """The named targets, in the base's version on the candidate and in the candidate's own."""
    old = ids(runs.base)
    for test in covered(runs.targets, old):
        if lifted(path_of(test)) or (test in finding.unstable and test not in runs.targets):
            continue
        before = known(runs.base, test)
        allowed = {Outcome.PASS} | ({Outcome.SKIP} if set(before) == {Outcome.SKIP} else set())
        for cells in (runs.regression, runs.green):
            states = known(cells, test)
            gone = bool(cells) and not states and bool(covered(runs.targets, ids(cells[:1])))
            if gone and Outcome.PASS not in before:
                finding.reasons.append(f"{test} is named by the gate and is gone")
            if any(s not in allowed for s in states):
                finding.failing[test] = message(cells[0], test)
    broken = {b for c in runs.base for b in c.broken}
    for cell in runs.regression:
        for name, why in cell.broken.items():
            if why != MISSING and name in broken and any(touches(t, name) for t in runs.targets):
                finding.failing[name] = why
    for cell in runs.green[:1]:
        tests = covered(runs.targets, ids([cell]))
        new = [t for t in tests if t not in finding.unstable or t in runs.targets]
        for test in new:
            if status(cell, test) in _BAD:
                finding.failing[test] = message(cell, test)


def _named(finding: Finding, runs: Runs) -> None:
    """Failures that decide nothing and that a report names: old ones, and new tests that fail."""
    whole = runs.base[0]
    for cell in runs.regression[:1] or runs.green[:1]:
        for test in sorted(whole.outcomes):
            if status(whole, test) in _BAD and status(cell, test) in _BAD:
                finding.preexisting.append(test)
        finding.preexisting += sorted(b for b in whole.broken if b in cell.broken)
    old = ids(runs.base)
    for cell in runs.green[:1]:
        woken = [
            t
            for t in sorted(whole.outcomes)
            if status(whole, t) is Outcome.SKIP and status(cell, t) in _BAD
        ]
        said = [f"{t} was skipped before and fails now: {message(cell, t)}" for t in woken]
        # Where all was green before, that is the end of it, and a person has to know.
        (finding.reasons if whole.verdict is Verdict.PASS else finding.warnings).extend(said)
        new = [t for t in sorted(cell.outcomes) if t not in old and status(cell, t) in _BAD]
        finding.warnings += [f"{t} is new and fails: {message(cell, t)}" for t in new[:5]]


def _hidden(finding: Finding, runs: Runs, lifted: Callable[[str], bool]) -> None:
    """Failures of before that are still there, and that the candidate's own tests do not show."""
    for old, new in zip(runs.regression[:1], runs.green[:1], strict=False):
        whole, now = runs.base[0], ids([new])
        for test in sorted({*whole.outcomes, *whole.broken} - {SESSION}):
            if lifted(path_of(test)) or not {status(whole, test), status(old, test)} <= _BAD:
                continue
            states = {status(new, t) for t in (test, *covered([test], now))} - {None}
            if not states & {Outcome.PASS, *_BAD}:
                word = "is skipped" if states else "is gone"
                finding.reasons.append(f"{test} failed before and {word} in the candidate's tests")
                finding.skipped |= bool(states)


def _reds(finding: Finding, runs: Runs) -> None:
    old = ids(runs.base)
    broken = {b for c in runs.base for b, why in c.broken.items() if why != MISSING}
    collects = base_collects(runs)
    whole = [c for c in runs.candidate if c.verdict in RAN]
    for test in sorted(ids(whole)):
        if test in finding.unstable or not _always(whole, test, {Outcome.PASS}):
            continue
        fixed = known(runs.regression, test)
        if fixed and (test in old or path_of(test) in broken):
            wanted = not runs.given or any(covers(t, test) for t in runs.given)
            if wanted and set(fixed) == {Outcome.PASS} and red_in(runs.base, test, collects):
                finding.given_red.append(test)
        elif test not in old and red_in(runs.red, test, collects):
            finding.agent_red.append(test)
    if not finding.given_red and not finding.agent_red:
        for cell in runs.red:
            unusable(finding, "The run of the new tests on the old code", cell, empty=True)


def red_in(cells: Sequence[Cell], test: str, collects: bool, times: int = 2) -> bool:
    """Whether the id failed in at least `times` runs and never did anything else."""
    ran = [c for c in cells if c.verdict in RAN or c.verdict in EMPTY]
    if not _always(ran, test, _BAD, times):
        return False
    return collects or all(test in c.outcomes for c in ran if status(c, test) is not None)


def base_collects(runs: Runs) -> bool:
    """Whether an import error at base says something: the base's own suite could be collected."""
    whole = runs.base[0]
    others = [b for b in whole.broken if not any(touches(t, b) for t in runs.given)]
    return bool(whole.outcomes) or not others


def _always(cells: Sequence[Cell], test: str, wanted: Iterable[Outcome], times: int = 2) -> bool:
    states = known(cells, test)
    return len(states) >= times and set(states) <= set(wanted)


def _unexplained(finding: Finding, base: Cell, green: Cell) -> None:
    """A run that fails although no test in it does, e.g. by a threshold of coverage."""
    if green.verdict is not Verdict.FAIL or not _only_exit_code(green):
        return
    why = green.note or "fails although no test in it does"
    if base.verdict is Verdict.PASS or (SESSION in green.outcomes and SESSION not in base.outcomes):
        finding.failing[finding.command] = why
    elif SESSION not in green.outcomes and not _only_exit_code(base):
        finding.reasons.append(f"{finding.command}: {why}")


def _only_exit_code(cell: Cell) -> bool:
    """Whether nothing but the exit code says that the run failed."""
    bad = any(o in _BAD for t, o in cell.outcomes.items() if t != SESSION)
    return not (bad or cell.broken or cell.duplicates)
