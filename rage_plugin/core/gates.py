"""When an item is done: from the cells and the facts about paths to one judgement. Pure.

Four conditions in the order in which they can fail: nothing sealed changed, the gates
pass, nothing that passed before was lost, and something was red before and is green now. A
verdict that is not pass never opens a gate, and what only a person can decide is `unverified`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .compare import Finding, Runs, compare
from .compare_exit import compare_exit
from .judgement import Judgement, Origin, Verdict
from .model import Verification

LINE = 200
"""Characters of a judgement's message."""
CLAIMED = "Claimed no change, but "


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything about a candidate that is not a cell."""

    base_tree: str
    tree: str
    given: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    accept: str = "red_green"
    tampered: tuple[str, ...] = ()
    """Sealed paths that the candidate changed and nobody unsealed."""
    reasons: tuple[str, ...] = ()
    """What the paths, the environment or ignored files leave to a person."""
    warnings: tuple[str, ...] = ()
    lifted: frozenset[str] = frozenset()
    """Test files that a person unsealed: they count in the candidate's version."""
    claim_no_change: bool = False
    moved: bool = False
    """The work tree changed while the checks ran."""

    @property
    def unchanged(self) -> bool:
        """The candidate is the base."""
        return self.base_tree == self.tree


def judge(facts: Facts, runs: Sequence[Runs]) -> Judgement:
    """What the runs prove about the candidate; missing runs never prove anything."""
    required = [r for r in runs if r.required]
    findings = [find(facts, r) for r in required]
    say = _Saying(facts, runs, findings)
    if facts.tampered:
        names = _several(facts.tampered)
        return say.fail(Verdict.TAMPERED, f"{names} is sealed: put it back, or a person unseals it")
    if facts.moved:
        return say.fail(Verdict.PARTIAL, "The work tree changed while it was checked")
    if facts.unchanged and not facts.claim_no_change:
        return say.fail(Verdict.FAIL, "Nothing changed")
    for finding in findings:
        if finding.verdict is not Verdict.PASS:
            return say.fail(finding.verdict, finding.note, blocked=finding.blocked)
    failing = {k: v for f in findings for k, v in f.failing.items()}
    if failing:
        claimed = CLAIMED if facts.unchanged else ""
        return say.fail(Verdict.FAIL, claimed + _first(failing))
    lost = {k: v for f in findings for k, v in f.regressions.items()}
    if lost:
        verdict = Verdict.SKIPPED if set(lost.values()) == {"is skipped"} else Verdict.FAIL
        return say.fail(verdict, _first(lost, "passed before and "))
    if facts.unchanged:
        return say.unverified(("Claimed that no change is needed, and no check says so",))
    if not findings or not all(f.complete for f in findings):
        return say.fail(Verdict.PARTIAL, "Not every run that is needed was made")
    return _proof(facts, findings, say)


def find(facts: Facts, runs: Runs) -> Finding:
    """What one command's cells prove so far."""
    lifted: Callable[[str], bool] = facts.lifted.__contains__
    return compare(runs, lifted) if runs.per_test else compare_exit(runs)


def one_line(text: str, limit: int = LINE) -> str:
    """The text as one line without control characters, at most `limit` characters."""
    spaced = " ".join(text.split())
    plain = "".join(c for c in spaced if unicodedata.category(c)[0] != "C")
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def _proof(facts: Facts, findings: Sequence[Finding], say: _Saying) -> Judgement:
    """Red before green, with nothing left for a person to decide."""
    given = [t for f in findings for t in f.given_red]
    agent = [t for f in findings for t in f.agent_red]
    reasons = [*facts.reasons, *(r for f in findings for r in f.reasons)]
    if not any(r.per_test for r in say.runs if r.required):
        reasons += [
            f"{r.command} was red before: with an exit code alone it shows no regression"
            for r in say.runs
            if r.required and r.base[0].verdict is Verdict.FAIL
        ]
    origin: Origin | None = None
    if given:
        origin = Origin.GIVEN
    elif agent and facts.accept != "given":
        origin = Origin.AGENT
    elif facts.accept == "suite":
        origin = Origin.SUITE
    elif agent:
        reasons.append("Only a test of the agent was red before; the profile demands a given one")
    elif facts.given:
        reasons.append(f"{_several(facts.given)} was not red before, so it proves nothing")
    else:
        reasons.append("No check failed before and passes now")
    if reasons or origin is None:
        return say.unverified(tuple(dict.fromkeys(reasons)), origin, given or agent)
    return say.passed(origin, given or agent)


@dataclass(frozen=True, slots=True)
class _Saying:
    """Puts a judgement together with everything that a report must name."""

    facts: Facts
    runs: Sequence[Runs]
    findings: Sequence[Finding]

    def fail(self, verdict: Verdict, message: str, *, blocked: bool = False) -> Judgement:
        return self._judgement(
            Verification.FAIL, verdict, message, reasons=(message,), blocked=blocked
        )

    def unverified(
        self, reasons: tuple[str, ...], origin: Origin | None = None, red: Sequence[str] = ()
    ) -> Judgement:
        verdict = Verdict.SKIPPED if any(f.skipped for f in self.findings) else Verdict.PARTIAL
        more = f" (+{len(reasons) - 1} more)" if len(reasons) > 1 else ""
        room = LINE - len("Unverified: ") - len(more)
        message = f"Unverified: {one_line(reasons[0], room)}{more}"
        return self._judgement(
            Verification.UNVERIFIED, verdict, message, reasons=reasons, origin=origin, red=red
        )

    def passed(self, origin: Origin, red: Sequence[str]) -> Judgement:
        verb = "was red and is" if len(red) == 1 else "were red and are"
        message = f"{_several(red)} {verb} green" if red else "The suite is green"
        return self._judgement(Verification.PASS, Verdict.PASS, message, origin=origin, red=red)

    def _judgement(
        self,
        verification: Verification,
        verdict: Verdict,
        message: str,
        *,
        reasons: tuple[str, ...] = (),
        origin: Origin | None = None,
        red: Sequence[str] = (),
        blocked: bool = False,
    ) -> Judgement:
        every = self.findings
        optional = tuple(
            f"{r.command} (optional): {str(c.verdict).replace('_', ' ')}"
            for r in self.runs
            if not r.required
            for c in r.green[:1]
            if c.verdict is not Verdict.PASS
        )
        return Judgement(
            verification=verification,
            verdict=verdict,
            base_tree=self.facts.base_tree,
            tree=self.facts.tree,
            message=one_line(message),
            origin=origin,
            red=_sorted(red),
            failing=_sorted(t for f in every for t in f.failing),
            regressions=_sorted(t for f in every for t in f.regressions),
            preexisting=_sorted(t for f in every for t in f.preexisting),
            unstable=_sorted(t for f in every for t in f.unstable),
            tampered=self.facts.tampered,
            reasons=tuple(one_line(r, 2 * LINE) for r in reasons),
            warnings=(
                *self.facts.warnings,
                *(one_line(w, 2 * LINE) for f in every for w in f.warnings),
                *optional,
            ),
            checks=tuple(c.record for r in self.runs for c in r.cells),
            blocked=blocked,
        )


def _sorted(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(tests)))


def _several(names: Sequence[str]) -> str:
    first = one_line(sorted(names)[0], 120)
    return first if len(names) == 1 else f"{first} (+{len(names) - 1} more)"


def _first(bad: Mapping[str, str], before: str = "") -> str:
    """The first of several failures, with its reason cut so that the count stays in the line."""
    name = sorted(bad)[0]
    why = bad[name]
    more = f" (+{len(bad) - 1} more)" if len(bad) > 1 else ""
    verb = why if why.startswith(("is ", "was ")) else f"fails: {why}" if why else "fails"
    return one_line(f"{one_line(name, 110)} {before}{verb}", LINE - len(more) - len(CLAIMED)) + more
