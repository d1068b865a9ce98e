"""Every hook: what a host calls (RAGE implements) and what RAGE calls (extensions implement).

Only the standard library and pluggy are imported here, because a host imports this module even
when no run is active.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pluggy

if TYPE_CHECKING:
    from .core.model import ItemSpec

PROJECT = "rage"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class Session:
    """One chat of one host in one workspace: the owner of a run (law 10)."""

    host: str
    id: str
    workspace: str
    """Absolute path of any folder inside the workspace."""
    flags: frozenset[str] = frozenset()
    """What the host cannot do; see `docs/host-adapter.md`."""
    one_run: bool = field(default=False, compare=False)
    """Whether the host's process exists for one run alone, so that `rage kill` may end it too."""
    calls: Callable[[], int] | None = field(default=None, compare=False, repr=False)
    """How many model calls this chat has made, where the host counts them (for the ledger)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a `/rage` line. It costs no model call; `then` begins a turn of the agent."""

    text: str
    then: str | None = None
    error: bool = False
    """True when the command was refused; scripts read it as exit code 1."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a host is about to send: only what the packet depends on."""

    purpose: Literal["main", "worker", "side"] = "main"
    depth: int = 0
    tokens: int = 0
    """The most that the call may cost, input and answer; 0 where the host cannot tell."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The model call must not be made: it does not fit its budget. The host ends the turn with
    reason `limit`; one that cannot makes the call without a packet.
    """

    message: str
    """For the person."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call as the provider counted them."""

    input: int = 0
    output: int = 0
    purpose: Literal["main", "worker", "side"] = "main"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call that the model asked for."""

    name: str
    args: Mapping[str, object] = field(default_factory=dict)
    id: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool call came to."""

    status: Literal["ok", "error", "unknown"] = "unknown"
    text: str = ""
    exception: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Allow:
    """The tool call may run."""


@dataclass(frozen=True, slots=True)
class Block:
    """The tool call must not run; `message` is what the model is told instead of a result."""

    message: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A finished turn: the agent rests."""

    text: str = ""
    """What the agent said in the turn, all of it where the host can tell, else its last message."""
    reason: Literal["done", "limit", "interrupt", "error"] = "done"
    error: str = ""


@dataclass(frozen=True, slots=True)
class Continue:
    """The host sends `text` to the agent as the next message."""

    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The agent rests; `report` is shown to the person and not to the model."""

    report: str = ""


class HostSpec:
    """Host lifecycle. The host calls; RAGE implements. Every result may be None: do nothing."""

    @hookspec(firstresult=True)
    def rage_user_message(self, session: Session, text: str) -> Reply | None:
        """Before a person's message reaches the model; a `Reply` answers it instead."""

    @hookspec(firstresult=True)
    def rage_before_model_call(self, session: Session, request: ModelRequest) -> str | Hold | None:
        """Before each model call of an active run; the packet to put at the request's tail.

        `Hold` where the call could go over a budget: its worst case is reserved first (F043).
        """

    @hookspec
    def rage_after_model_call(self, session: Session, usage: Usage) -> None:
        """After each model call, with its usage."""

    @hookspec(firstresult=True)
    def rage_before_tool_call(self, session: Session, call: ToolCall) -> Allow | Block | None:
        """Before a tool runs; `Block` refuses it."""

    @hookspec
    def rage_after_tool_call(self, session: Session, call: ToolCall, outcome: ToolOutcome) -> None:
        """After a tool ran; an observation only."""

    @hookspec(firstresult=True)
    def rage_turn_end(self, session: Session, turn: Turn) -> Continue | Stop | None:
        """When the agent rests; `Continue` starts its next turn."""

    @hookspec
    def rage_session_start(self, session: Session) -> None:
        """When a chat begins or is resumed; a run that this session owns binds again."""

    @hookspec
    def rage_session_end(self, session: Session) -> None:
        """When a chat ends; a run of it pauses and its lease is released."""


class BacklogSource:
    """What `rage_backlog_source` returns: one place that items can be read from."""

    name: str

    def claims(self, target: str) -> bool:
        """Whether this source can resolve the target; no network, no model."""
        raise NotImplementedError

    def read(self, target: str) -> Sequence[ItemSpec]:
        """Every item of the place the target lies in; `Refused` when it is unreadable."""
        raise NotImplementedError


class ExtensionSpec:
    """Extensions. RAGE calls; distributions with an entry point in the group `rage` implement."""

    @hookspec
    def rage_backlog_source(self, workspace: str, sources: Sequence[str]) -> BacklogSource | None:
        """Whenever a target is resolved: a backlog source for this workspace.

        Sources are asked in registration order. `sources` is the profile's list of that name; an
        implementation may leave it out.
        """

    @hookspec(firstresult=True)
    def rage_parse_report(self, kind: str, path: str) -> Mapping[str, str] | None:
        """After a check with a report: outcomes by test id, each pass, fail, error or skip."""

    @hookspec
    def rage_sink(self, run: Mapping[str, object], event: str) -> None:
        """After something was recorded; a sink never changes state and its failure stops nothing.

        `event` is `item_done`, `item_unverified`, `item_failed`, `run_paused`, `run_stopped` or
        `run_done`.
        """
