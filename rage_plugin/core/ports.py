"""What the loop needs of the outside, as protocols; the rooms implement them, `bootstrap` wires.

The loop imports this module and never a room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .config import CheckCommand
from .events import Event, Scalar
from .judgement import Judgement, JudgeRequest
from .model import Base, Change, Evidence, Item, ItemSpec, Run, RunState

Progress = Callable[[str], None]
"""Told one short line whenever something over a second begins or ends."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What an item may be expected to come to; 0 is unknown."""

    tokens: int = 0
    files: int = 0
    lines: int = 0


class LoggedEvent(Protocol):
    """A row of the log, as far as a reader of decisions needs it."""

    @property
    def seq(self) -> int: ...

    @property
    def version(self) -> int: ...

    @property
    def at(self) -> float: ...

    @property
    def event(self) -> Event: ...


class Clock(Protocol):
    """Wall time; passed in so that decisions stay pure."""

    def now(self) -> float:
        """Seconds since the epoch, for people and for the order of rows; it may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever pass; what a limit is measured with."""
        ...


class Store(Protocol):
    """State in SQLite: one write path, and reads of bounded size."""

    def append(self, run: str, expected_version: int, events: Sequence[Event], at: float) -> int:
        """Record the events and apply their rows in one durable transaction (one sync).

        Compare-and-set on `runs.version`: raises `StaleWrite` (a `RageError`) and writes nothing
        when another process wrote first. Returns the new version.
        """
        ...

    def load(self, run: str) -> RunState: ...

    def active_run(self, workspace: str) -> Run | None:
        """The workspace's run that is active or paused, newest first."""
        ...

    def last_run(self, workspace: str) -> Run | None: ...

    def runs(self, workspace: str) -> Sequence[Run]:
        """Every run of the workspace, newest first."""
        ...

    def evidence(self, run: str, item: str | None = None) -> Sequence[Evidence]: ...

    def rows(self, table: str, run: str) -> Sequence[Mapping[str, Scalar]]:
        """Rows of one table of state that belong to the run, in the order of writing."""
        ...

    def finished(self, workspace: str) -> Sequence[Item]:
        """Items that any run of the workspace brought to DONE with a commit, newest run first."""
        ...

    def estimate(self, workspace: str) -> str:
        """What an item cost so far in this workspace, or that it is unknown."""
        ...

    def expected(self, workspace: str) -> Expected:
        """The most that a finished item cost here; unknown before enough were finished."""
        ...

    def failed_calls(self, run: str, item: str, action: str) -> Sequence[Mapping[str, object]]:
        """What was observed of an action's failed calls for an item, oldest first."""
        ...

    def events(self, run: str) -> Sequence[LoggedEvent]:
        """The run's whole log in order."""
        ...

    def head(self, run: str) -> str:
        """Hash of the run's last event (64 hexadecimal digits)."""
        ...

    def observe(self, run: str, item: str, kind: str, data: dict[str, object], at: float) -> None:
        """Record an observation (a tool call, a model call) without a sync: never state."""
        ...


class Backlog(Protocol):
    """Reads items; verified readable before any model call (F032)."""

    def resolve(self, target: str) -> Sequence[ItemSpec]:
        """The items that a target stands for, in order of work, dependencies included.

        Raises `Refused` with the list of unreadable sources, the path of a cycle, the missing id
        or the self-edge. Closed items are left out and a dependency on one is met; empty means
        that nothing is left to do.
        """
        ...

    def title(self, target: str) -> str: ...


class Verifier(Protocol):
    """Owns trees and checks; the only writer of verdicts."""

    def preflight(self) -> None:
        """Raise `Refused` unless there is a command to check with, saying what to write."""
        ...

    def commands(self) -> Sequence[CheckCommand]:
        """The check commands in force: the profile's, else the detected ones."""
        ...

    def check_targets(self, targets: Sequence[str]) -> None:
        """Raise `Refused` for a gate target that is not a path or test id inside the workspace."""
        ...

    def open(self, run: str) -> Base:
        """Record the starting tree, the untracked files and the environment of a run."""
        ...

    def snapshot(self, base: Base) -> str:
        """Hash of the workspace's tree now, without what was untracked at the base."""
        ...

    def changes(self, tree: str, other: str) -> Sequence[Change]: ...

    def added(self, tree: str, other: str) -> str:
        """The lines that `other` adds to `tree`, text files only, for the markers in it (F063)."""
        ...

    def size(self, tree: str, other: str) -> tuple[int, int]:
        """Files that differ between two trees, and lines added or removed in them."""
        ...

    def judge(self, request: JudgeRequest, progress: Progress) -> Judgement:
        """Run what is needed of the four cells and say what they prove."""
        ...

    def cosmetic(self, tree: str, other: str) -> bool:
        """Whether two trees differ in comments and white space alone: no new attempt."""
        ...

    def restore(self, base: Base, tree: str) -> Sequence[str]:
        """Take the workspace from `tree` back to `base.tree`, only paths that differ.

        A file that no longer holds what `tree` says is left alone and named in the result.
        """
        ...


class Deliver(Protocol):
    """Git effects of a run; each is looked up by its trailer before it is repeated."""

    def branch(self) -> str:
        """The branch HEAD is on; empty when detached."""
        ...

    def snapshot(self, run: str) -> str:
        """Commit modified tracked files as their own commit, after `begin`; a line about it."""
        ...

    def preflight(self, snapshot: bool) -> str:
        """Check that commits are possible; with `snapshot` commit modified files first.

        Returns a line for the person or an empty string; raises `Refused` with the list of
        modified tracked files, or with what to do (no git, no identity, a merge in progress).
        """
        ...

    def begin(self, run: str, target: str, title: str) -> str:
        """Switch to the run's own branch where the current one is protected; its name."""
        ...

    def head(self) -> str:
        """The commit HEAD stands at; empty on an unborn branch."""
        ...

    def pin(self, run: str, base: Base) -> None:
        """Keep the base alive under `refs/rage/<run>/base`."""
        ...

    def holds(self, run: str, item: str, commit: str) -> bool:
        """Whether what a run committed for an item is part of HEAD's history."""
        ...

    def commit(
        self,
        run: str,
        item: Item,
        base: Base,
        tree: str,
        evidence: str,
        status: str,
    ) -> str:
        """Commit exactly `tree` on HEAD with trailers; the commit's id. Idempotent by trailer."""
        ...

    def keep(self, run: str, item: str, tree: str) -> str:
        """Keep a failed candidate as a commit under `refs/rage/<run>/<item>`; the ref."""
        ...

    def revert(self, run: str, item: str, commit: str) -> str:
        """A new commit that takes an item's commit back; its id."""
        ...

    def made(self, commit: str) -> tuple[str, str]:
        """The first parent of a commit, empty for a root commit, and its tree."""
        ...


class Packets(Protocol):
    """Renders what the model sees while a run is active."""

    def packet(self, state: RunState, instruction: str) -> str:
        """At most `packet.tokens` tokens, whatever the state."""
        ...

    def brief(self, state: RunState, spec: ItemSpec, pointers: Sequence[str]) -> str:
        """At most `packet.brief_tokens` tokens; untrusted text cleaned and fenced."""
        ...


class Survey(Protocol):
    """Looks at the workspace for the review of an item; reads only (F009)."""

    def review(self, item: str, gates: Sequence[str]) -> dict[str, object]:
        """Head, dirty paths, instruction files, branches that name the item."""
        ...

    def pointers(self) -> Sequence[str]:
        """Instruction files that the brief points to, e.g. AGENTS.md."""
        ...
