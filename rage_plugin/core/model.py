"""The nouns: run, item, slice, gate, evidence, judgement. Frozen, typed, without behaviour.

Every row type here has the columns of the table of the same name (see `store/schema`), so that
state is the same thing in memory, in SQLite and in an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class RunStatus(StrEnum):
    """Where a run stands. Only `ACTIVE` injects anything or lets an agent continue."""

    ACTIVE = "active"
    PAUSED = "paused"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


class Phase(StrEnum):
    """The phases of one slice; the edges between them are in `core/phases.py`."""

    REVIEW = "review"
    ANALYZE = "analyze"
    GENERATE = "generate"
    EXECUTE = "execute"
    DONE = "done"


class ItemState(StrEnum):
    """The six states of an item; its 11 edges are in `core/phases.py`."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


class Verification(StrEnum):
    """What the runner found about an item; separate from its state (F102)."""

    NONE = "none"
    PASS = "pass"
    FAIL = "fail"
    UNVERIFIED = "unverified"


class PauseReason(StrEnum):
    """Why a run waits for a person. The first four are F087's; the rest are RAGE's own."""

    SPEC_DEVIATION = "SPEC_DEVIATION"
    NEEDS_CLARIFICATION = "NEEDS_CLARIFICATION"
    CRITICAL_ISSUE = "CRITICAL_ISSUE"
    CIRCUIT_BREAKER = "CIRCUIT_BREAKER"
    USER = "USER"
    INTERRUPT = "INTERRUPT"
    NO_PROGRESS = "NO_PROGRESS"
    PROVIDER_ERRORS = "PROVIDER_ERRORS"
    LIMIT_ITERATIONS = "LIMIT_ITERATIONS"
    LIMIT_TOKENS = "LIMIT_TOKENS"
    LIMIT_TIME = "LIMIT_TIME"
    LIMIT_ITEMS = "LIMIT_ITEMS"
    ITEM_FAILED = "ITEM_FAILED"
    UNVERIFIED = "UNVERIFIED"
    SCOPE = "SCOPE"
    CHECK_COULD_NOT_RUN = "CHECK_COULD_NOT_RUN"
    COMMIT_FAILED = "COMMIT_FAILED"
    WORKSPACE_MOVED = "WORKSPACE_MOVED"
    SESSION_ENDED = "SESSION_ENDED"
    INTERNAL_FAULT = "INTERNAL_FAULT"


@dataclass(frozen=True, slots=True)
class ItemSpec:
    """One backlog item as its source tells it; text is untrusted and uncleaned."""

    id: str
    title: str
    body: str
    source: str
    """Where it was read, e.g. a path relative to the workspace."""
    criteria: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    """Targets for the profile's command templates, e.g. `tests/test_x.py::test_y`."""
    depends_on: tuple[str, ...] = ()
    parent: str | None = None
    priority: int = 0
    """Lower comes first."""
    labels: tuple[str, ...] = ()
    unseal: tuple[str, ...] = ()
    """Paths that a person's front matter lifts the seal from."""
    closed: bool = False
    children: tuple[str, ...] = ()
    """Ids that the item's own text lists as its parts; a `parent` elsewhere adds to them."""
    expected_tokens: int = 0
    """A person's estimate of the item; 0 is unknown."""
    expected_files: int = 0
    expected_lines: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `runs`."""

    id: str
    target: str
    title: str
    status: RunStatus
    phase: Phase
    host: str
    session: str
    workspace: str
    started_at: float
    """Seconds since the epoch."""
    current_item: str | None = None
    pause_reason: PauseReason | None = None
    pause_detail: str = ""
    branch: str = ""
    base_commit: str = ""
    base_tree: str = ""
    plan_version: int = 1
    iteration: int = 0
    """Turns of this run so far."""
    tokens: int = 0
    active_seconds: float = 0.0
    """Wall time spent active before `resumed_at`; pauses do not count."""
    resumed_at: float = 0.0
    noop_turns: int = 0
    provider_errors: int = 0
    items_limit: int | None = None
    limits: str = "{}"
    """JSON of the `Limits` in force for this run."""
    untracked: str = "[]"
    """JSON list of the files that git did not track before the run."""
    holder: str = ""
    """The process that drives the run (`holder.py`); tells a crash from a live holder."""
    fence: int = 1
    """Fencing token: moves on whenever another session takes the run, so that the old one sees."""
    alerted: int = 0
    """The token budget that the person was warned of already; 0 before any warning."""
    refused_call: str = ""
    """`REASON: detail` where the next model call would not have fitted its budget."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A row of `items`: an `ItemSpec` and what became of it in one run."""

    run: str
    id: str
    position: int
    """Order of work, 0 first."""
    title: str
    state: ItemState = ItemState.PENDING
    verification: Verification = Verification.NONE
    source: str = ""
    criteria: str = "[]"
    """JSON list of strings."""
    criteria_hash: str = ""
    gates: str = "[]"
    depends_on: str = "[]"
    unseal: str = "[]"
    parent: str | None = None
    base_commit: str = ""
    base_tree: str = ""
    tree: str = ""
    """The candidate tree that was judged last."""
    commit: str = ""
    origin: str = ""
    """An `Origin` once the item passed."""
    iteration: int = 0
    attempts: int = 0
    tokens: int = 0
    reasked: int = 0
    replanned: int = 0
    reason: str = ""
    next: str = ""
    expected_tokens: int = 0
    """What the item may be expected to cost, 0 where that is unknown; see `core/limits.py`."""
    expected_files: int = 0
    expected_lines: int = 0
    files: int = 0
    """Size of the change that was judged last: files, and lines added or removed."""
    lines: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """A row of `slices`: one bounded objective, its gates and its expected scope."""

    id: str
    run: str
    item: str
    objective: str
    scope: str
    """JSON list of paths or globs; `["**"]` is the workspace without what is protected."""
    origin: str
    """`agent` or `default`."""
    plan_version: int
    superseded: int = 0


@dataclass(frozen=True, slots=True)
class Gate:
    """A row of `gates`: one target that must be red before and green after."""

    id: str
    run: str
    item: str
    slice: str
    target: str
    """Empty: the profile's whole commands."""
    origin: str
    verdict: str = ""
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A row of `evidence`: something that RAGE observed itself."""

    id: str
    run: str
    item: str
    kind: str
    """e.g. `review`, `proposal`, `change`, `judgement`, `commit`, `person`."""
    tree: str
    data: str
    """JSON, capped by the writer."""
    at: float


@dataclass(frozen=True, slots=True)
class Approach:
    """A row of `approaches`: one way to do an item, open or retired after a repeated error."""

    id: str
    run: str
    item: str
    key: str
    """Identity of (item, normalised objective, gate targets); see `core/recovery.py`."""
    objective: str
    status: str = "open"
    """`open` or `retired`."""
    retired_at: float | None = None
    retired_by: str | None = None
    """The evidence of the repeated error."""
    readmitted_by: str | None = None
    """The newer evidence that opened it again."""
    plan_version: int = 0
    """The plan version in which it was retired: a later correction is newer evidence."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A row of `failures`: one failed attempt, with the identity of its error (F015)."""

    id: str
    run: str
    item: str
    signature: str
    message: str
    count: int = 1
    """How often the item failed with this signature, this time included."""
    tree: str = ""
    at: float = 0.0
    approach: str = ""
    """Key of the approach that was tried."""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Correction:
    """A row of `corrections`: what a person said, and the later word that superseded it."""

    id: str
    run: str
    item: str
    plan_version: int
    """The plan version that it began."""
    text: str
    at: float
    superseded_by: str | None = None
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A row of `blockers`: what only a person can decide, and what they decided."""

    id: str
    run: str
    item: str
    reason: str
    """A `PauseReason`."""
    detail: str
    at: float
    resolved_at: float | None = None
    resolved_by: str = ""
    """The person's word: `spec`, `code`, `confirmed`, or an answer."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between two trees."""

    status: str
    """`A`, `M`, `D` or `T` as `git diff --raw` says it (no renames)."""
    path: str


@dataclass(frozen=True, slots=True)
class Base:
    """What the workspace was when a run or an item began; everything a check needs of it."""

    tree: str
    commit: str
    """Empty on an unborn branch."""
    untracked: tuple[str, ...] = ()
    """Files that git did not track before the run: outside every tree and hidden in checks."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The agent's `RAGE {…}` line after validation: a proposal, never more."""

    objective: str = ""
    gates: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    no_change: str = ""


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything a decision may look at: bounded, so that a tick costs the same forever."""

    run: Run
    items: Mapping[str, Item]
    slice: Slice | None = None
    gates: tuple[Gate, ...] = ()
    judged_trees: frozenset[str] = frozenset()
    """Trees of the current item that a judgement has already been given for."""
    failures: tuple[Failure, ...] = ()
    """The current item's failed attempts, newest last."""
    approaches: tuple[Approach, ...] = ()
    """What was tried for the current item, newest last."""
    corrections: tuple[Correction, ...] = ()
    """Corrections that still hold, newest last."""
    blockers: tuple[Blocker, ...] = ()
    """What a person had or has to decide for the current item, newest last."""

    @property
    def last_failure(self) -> str:
        """The last failure's message for the current item, for the packet."""
        return self.failures[-1].message if self.failures else ""

    @property
    def directives(self) -> tuple[str, ...]:
        """The words of the corrections that still hold, newest last."""
        return tuple(c.text for c in self.corrections)

    @property
    def avoid(self) -> tuple[str, ...]:
        """Retired approaches of the current item, the one retired last at the end."""
        retired = [a for a in self.approaches if a.status == "retired"]
        return tuple(a.objective for a in sorted(retired, key=lambda a: a.retired_at or 0.0))

    @property
    def item(self) -> Item | None:
        """The item being worked on."""
        current = self.run.current_item
        return self.items.get(current) if current is not None else None

    @property
    def working(self) -> Item:
        """The item being worked on, where there must be one."""
        item = self.item
        if item is None:
            raise ValueError("no item is being worked on")
        return item
