"""What a project decides, as frozen values; `profile.py` reads them from `rage.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CheckCommand:
    """One verification command: an argv, never a shell line."""

    name: str
    command: tuple[str, ...]
    """May hold `{targets}` (an element that is replaced by the targets, or by nothing) and
    `{junit}` (inside an element: a path outside the workspace)."""
    required: bool = True
    timeout_s: float = 600.0
    cwd: str = "."
    report: str = "none"
    """`pytest` (recognised by its argv), `junit` (the command writes `{junit}`) or `none`."""


@dataclass(frozen=True, slots=True)
class VerifyConfig:
    """How a candidate is checked."""

    commands: tuple[CheckCommand, ...] = ()
    prepare: tuple[str, ...] = ()
    """An argv that is run inside the view before a check, e.g. to build native sources."""
    tests: tuple[str, ...] = ()
    """Globs of test files; empty means the built-in ones (`verify/policy.py`)."""
    accept: str = "red_green"
    """`red_green`, `given` (an agent's own test is not enough) or `suite` (no red needed)."""
    unseal: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    env_allow: tuple[str, ...] = ()
    output_limit: int = 20_000
    """Characters of a check's output that are kept."""
    isolation: str = "auto"
    """`auto` tries overlay, swap, scratch in order; a name forces one (tests do)."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A limit as a person typed it: `300k`, `+50k` on top of what holds, or `none`."""

    value: float | None
    """None is unlimited, and only when written out."""
    more: bool = False

    def applied(self, to: float | None) -> float | None:
        """The limit that follows; on top of no limit there is still none."""
        if not self.more or self.value is None:
            return self.value
        return None if to is None else to + self.value


@dataclass(frozen=True, slots=True)
class Limits:
    """Finite by default (law 8); `None` is unlimited and only when written out as `none`."""

    max_iterations: int | None = 12
    """Turns an item."""
    run_iterations: int | None = 200
    item_tokens: int | None = 200_000
    run_tokens: int | None = 2_000_000
    wall_seconds: float | None = 8 * 3600
    max_fix_attempts: int = 2
    noop_turns: int = 2
    provider_errors: int = 3
    same_action: int = 2
    """Identical failing tool calls on unchanged evidence; the next one is refused (F013)."""
    alert_at: float = 0.8
    """Share of the run's tokens at which the person is told, once a budget (F044)."""
    token_multiple: float | None = 2.0
    """An item that costs so many times what was expected waits for a person (F068)."""
    scope_multiple: float | None = 2.0
    """The same for the files and lines that it changes (F069)."""
    on_failed_item: str = "next"
    """`next` (other independent items go on) or `pause`."""


@dataclass(frozen=True, slots=True)
class GitConfig:
    """Where RAGE may commit."""

    commit: bool = True
    protected: tuple[str, ...] = ("main", "master", "release/*")


@dataclass(frozen=True, slots=True)
class PacketConfig:
    """Caps in tokens (o200k)."""

    tokens: int = 200
    brief_tokens: int = 1_500


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """The whole profile, resolved."""

    id: str = "project"
    name: str = ""
    type: str = "generic"
    sources: tuple[str, ...] = ()
    """Backlog files or folders; empty means the first built-in place that exists."""
    verification: VerifyConfig = field(default_factory=VerifyConfig)
    limits: Limits = field(default_factory=Limits)
    git: GitConfig = field(default_factory=GitConfig)
    packet: PacketConfig = field(default_factory=PacketConfig)
    scan_code_fences: bool = True
    """Whether markers inside code fences count (F064)."""
    activation_auto: bool = False
    path: str = ""
    """The profile's path relative to the workspace; empty when it was detected."""
    hash: str = ""
