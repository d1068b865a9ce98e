"""A chat of a host on a real repository: the real plugin in a real plugin manager."""

from __future__ import annotations

import pluggy

from rage_plugin.hookspecs import (
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
from rage_plugin.plugin import RagePlugin


class Chat:
    """One chat; each method is what a host calls."""

    def __init__(self, folder: str, name: str) -> None:
        self.told: list[str] = []
        """What the person sees beside answers."""
        self.manager = pluggy.PluginManager("rage")
        self.manager.add_hookspecs(HostSpec)
        self.plugin = RagePlugin(self.manager, self.told.append)
        self.manager.register(self.plugin)
        self.session = Session("here", name, folder)

    def says(self, text: str) -> Reply | None:
        said: Reply | None = self.manager.hook.rage_user_message(session=self.session, text=text)
        return said

    def answer(self, text: str) -> str:
        """What a command is answered with."""
        said = self.says(text)
        assert said is not None
        return said.text

    def asks(self, request: ModelRequest | None = None) -> str | Hold | None:
        hook = self.manager.hook.rage_before_model_call
        told: str | Hold | None = hook(session=self.session, request=request or ModelRequest())
        return told

    def calls(self, call: ToolCall, outcome: ToolOutcome | None = None) -> object:
        """What the guard said to a tool call; where it ran, its outcome is told."""
        hook = self.manager.hook
        said = hook.rage_before_tool_call(session=self.session, call=call)
        if said is None and outcome is not None:
            hook.rage_after_tool_call(session=self.session, call=call, outcome=outcome)
        return said

    def rests(self, text: str = "") -> Continue | Stop | None:
        hook = self.manager.hook.rage_turn_end
        told: Continue | Stop | None = hook(session=self.session, turn=Turn(text))
        return told

    def everything(self) -> list[object]:
        """What every hook says, those that are heard in silence apart."""
        hook, session = self.manager.hook, self.session
        hook.rage_session_start(session=session)
        said: list[object] = [self.says("thanks, and now write a poem"), self.asks()]
        hook.rage_after_model_call(session=session, usage=Usage(10, 10))
        said += [self.calls(ToolCall("read_file", {"path": "x"}), ToolOutcome("error", "no"))]
        said += [self.rests("All done."), self.asks(ModelRequest("side"))]
        return [one for one in said if one is not None]
