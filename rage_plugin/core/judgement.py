"""The nouns of checking: what a test did, what one run showed, what the four runs prove.

Separate from `model.py`, whose rows are state; these are what the verify room hands to a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .model import Base, Verification


class Verdict(StrEnum):
    """The result of one check. Only `PASS` is a pass (law 5)."""

    PASS = "pass"
    FAIL = "fail"
    TIMEOUT = "timeout"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    NOTHING_COLLECTED = "nothing_collected"
    COULD_NOT_RUN = "could_not_run"
    TAMPERED = "tampered"


class Outcome(StrEnum):
    """What one test id did in one cell. `SKIP` covers skipped and xfailed."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    SKIP = "skip"


class Origin(StrEnum):
    """Who wrote the check that was red before and green after."""

    GIVEN = "given"
    AGENT = "agent"
    PERSON = "person"
    SUITE = "suite"


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """One run of one command on one tree, as it goes into `checks`."""

    cell: str
    """`base`, `red`, `regression`, `green`, or the target run `target`."""
    command: str
    tree: str
    command_hash: str
    environment_hash: str
    verdict: Verdict
    passed: int
    failed: int
    skipped: int
    seconds: float
    cached: bool
    isolation: str
    artifact: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one run of one command on one tree showed, test by test where it can tell."""

    record: CheckRecord
    per_test: bool
    """False for a command with an exit code only; then `outcomes` is empty."""
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """By exact test id, e.g. `tests/test_x.py::test_y[1-a]`."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Files that could not be collected, with the first line of the error."""
    duplicates: tuple[str, ...] = ()
    """Ids that were reported more than once: no evidence."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """One short line for each id that did not pass."""
    exit_code: int | None = None
    note: str = ""
    """Why the verdict is what it is where the verdict alone does not say it."""

    @property
    def verdict(self) -> Verdict:
        """The cell's verdict: `PASS` needs a whole, untampered run in which nothing failed."""
        return self.record.verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the four runs say about one candidate tree, with everything a report must name."""

    verification: Verification
    verdict: Verdict
    base_tree: str
    tree: str
    message: str
    """One line, ≤ 200 characters, for the packet and the report."""
    origin: Origin | None = None
    red: tuple[str, ...] = ()
    """Ids that failed on the base and pass on the candidate."""
    failing: tuple[str, ...] = ()
    """Ids that a gate needs and that do not pass on the candidate."""
    regressions: tuple[str, ...] = ()
    """Ids that passed before and now fail, vanished or are skipped."""
    preexisting: tuple[str, ...] = ()
    """Ids that failed before and still fail: named, not required."""
    unstable: tuple[str, ...] = ()
    tampered: tuple[str, ...] = ()
    """Sealed paths that the candidate changed."""
    reasons: tuple[str, ...] = ()
    """Why the item is not `pass`, each a plain sentence."""
    warnings: tuple[str, ...] = ()
    checks: tuple[CheckRecord, ...] = ()
    blocked: bool = False
    """True where the base itself could not be checked, so that no attempt can help."""


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What to judge: a candidate tree against the tree its item started from."""

    run: str
    item: str
    base: Base
    tree: str
    given: tuple[str, ...]
    """Gate targets written by a person in the item."""
    proposed: tuple[str, ...] = ()
    """Gate targets proposed by the agent."""
    unseal: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    """Paths that this item seals beside the usual ones: its own source."""
    claim_no_change: bool = False
