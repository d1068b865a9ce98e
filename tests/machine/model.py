"""The plain model: what a person with paper and pencil would expect of the runs of one workspace.

Written from the promises (DESIGN, the issue, the reference of commands) and not from the code: it
knows no phase, no slice and no event, only who drives, what was said, what was spent and what
became of each item.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rage_plugin.core.config import Limits

from .world import LIMITS

MORE = ("LIMIT_TOKENS", "LIMIT_ITERATIONS", "LIMIT_TIME")
"""Reasons that a bare resume does not lift while the limit is as it was."""
UNCOUNTED = frozenset(
    [
        "SCOPE",
        "CIRCUIT_BREAKER",
        "CHECK_COULD_NOT_RUN",
        "COMMIT_FAILED",
        "WORKSPACE_MOVED",
        "SPEC_DEVIATION",
        "NEEDS_CLARIFICATION",
        "CRITICAL_ISSUE",
        "USER",
    ]
)
"""A turn that ends in one of these may be counted with the next one."""
ENDS = {"pause": "USER", "stop": ""}
"""Words that end or hold up a run, and the reason that stands then."""
OVER = frozenset({"stopped", "done", "failed"})


@dataclass
class Paper:
    """One run."""

    id: str
    target: str
    owner: str
    """Key of the session that drives it."""
    driver: str
    """Name of the process that drives it."""
    items: dict[str, str]
    """waiting, open, done, unverified or failed."""
    status: str = "active"
    reason: str = ""
    fence: int = 1
    plan: int = 1
    words: list[str] = field(default_factory=list)
    """Corrections that hold."""
    attempts: dict[str, int] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    limits: Limits = LIMITS
    spent: int = 0
    quiet: int = 0
    """Counted turns in a row that brought nothing at all."""
    errors: int = 0
    """Turns in a row that the provider failed."""
    began: float = 0.0
    """When it began, by a clock that cannot jump."""

    @property
    def over(self) -> bool:
        return self.status in OVER

    @property
    def all_done(self) -> bool:
        return all(s == "done" for s in self.items.values())

    def taken(self, owner: str, driver: str) -> None:
        """A session goes on with it: whoever drove it before is out."""
        self.owner, self.driver = owner, driver
        self.status, self.reason, self.fence = "active", "", self.fence + 1
        self.quiet = self.errors = 0

    def told(self, text: str, instead: bool = False) -> None:
        """A correction: the plan moves on."""
        self.plan += 1
        self.quiet = 0
        self.words = [text] if instead else [*self.words, text]

    def attempt(self, item: str) -> None:
        self.attempts[item] = self.attempts.get(item, 0) + 1

    def may_pause(self, reason: str, turns: int, item_turns: int, passed: float) -> bool:
        """Whether a run that nobody paused has this reason to wait."""
        limits, states = self.limits, set(self.items.values())
        match reason:
            case "NO_PROGRESS":
                return self.quiet >= limits.noop_turns
            case "PROVIDER_ERRORS":
                return self.errors >= limits.provider_errors
            case "LIMIT_ITERATIONS":
                return turns >= (limits.run_iterations or 0) or item_turns >= (
                    limits.max_iterations or 0
                )
            case "LIMIT_TIME":
                return passed - self.began >= (limits.wall_seconds or 0)
            case "ITEM_FAILED":
                return "failed" in states
            case "UNVERIFIED":
                return "unverified" in states
        return True
