"""The host's side of the plugin hooks: pluggy calls whose faults never reach the chat.

Any plugin manager host would have these thirty lines; what is registered is not its business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pluggy

from rage_plugin import (
    Allow,
    Block,
    Continue,
    Hold,
    HostSpec,
    ModelRequest,
    Reply,
    Session,
    Stop,
    ToolCall,
    ToolOutcome,
    Turn,
    Usage,
)

T = TypeVar("T")


class Hooks:
    """Every lifecycle hook as a method; a hook that raises costs one line and counts as None."""

    def __init__(self, session: Session, warn: Callable[[str], None]) -> None:
        self.manager = pluggy.PluginManager("rage")
        self.manager.add_hookspecs(HostSpec)
        self.session = session
        self._warn = warn

    def session_start(self) -> None:
        """The chat begins."""
        self._call("rage_session_start")

    def session_end(self) -> None:
        """The chat ends."""
        self._call("rage_session_end")

    def user_message(self, text: str) -> Reply | None:
        """A person typed a line."""
        return _one_of(self._call("rage_user_message", text=text), Reply)

    def before_model_call(self, worst_case: Callable[[], int]) -> str | Hold | None:
        """The packet for the next call, or that it must not be made.

        `worst_case` says what the call may cost; it is asked only where somebody listens.
        """
        listened = self.manager.hook.rage_before_model_call.get_hookimpls()
        request = ModelRequest("main", 0, worst_case() if listened else 0)
        answer = self._call("rage_before_model_call", request=request)
        return answer if isinstance(answer, Hold) else _one_of(answer, str) or None

    def after_model_call(self, usage: Usage) -> None:
        """A call was answered."""
        self._call("rage_after_model_call", usage=usage)

    def before_tool_call(self, call: ToolCall) -> Block | None:
        """A refusal, if there is one."""
        answer = self._call("rage_before_tool_call", call=call)
        return None if isinstance(answer, Allow) else _one_of(answer, Block)

    def after_tool_call(self, call: ToolCall, outcome: ToolOutcome) -> None:
        """A tool call is over, run or refused by the tool itself."""
        self._call("rage_after_tool_call", call=call, outcome=outcome)

    def turn_end(self, turn: Turn) -> Continue | Stop | None:
        """The agent rests; whether it shall go on."""
        answer = self._call("rage_turn_end", turn=turn)
        return answer if isinstance(answer, Continue | Stop) else None

    def _call(self, name: str, **arguments: object) -> object:
        try:
            return getattr(self.manager.hook, name)(session=self.session, **arguments)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - never the chat's fault
            self._warn(
                f"a plugin failed in {name}: {type(error).__name__}: {error}; the chat goes on"
            )
            return None


def _one_of(answer: object, kind: type[T]) -> T | None:
    return answer if isinstance(answer, kind) else None
