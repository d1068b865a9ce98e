"""One turn: model calls and tool calls until the agent rests. Reads top to bottom."""

from __future__ import annotations

from typing import Literal, TypeAlias

from rage_plugin import Hold, ToolCall, ToolOutcome, Turn, Usage

from .conversation import Conversation
from .hooks import Hooks
from .models import Model, ModelError, ModelReply, ToolRequest
from .tools import SCHEMAS, ToolError, Tools
from .ui import Ui

Reason: TypeAlias = Literal["done", "limit", "interrupt", "error"]
MAX_MODEL_CALLS = 60
"""The host's own limit on the model calls of one turn."""
_INTERRUPTED = "interrupted by the person before it had a result"


class Agent:
    """The host's agent: a conversation, a model and tools, with RAGE's hooks at each boundary."""

    def __init__(
        self,
        conversation: Conversation,
        model: Model,
        tools: Tools,
        hooks: Hooks,
        ui: Ui,
        max_model_calls: int = MAX_MODEL_CALLS,
    ) -> None:
        self.calls = 0
        """Model calls that were sent, answered or not."""
        self.calls_with_packet = 0
        self._conversation = conversation
        self._model = model
        self._tools = tools
        self._hooks = hooks
        self._ui = ui
        self._max_model_calls = max_model_calls

    def turn(self, text: str) -> Turn:
        """Send `text` and work until the model asks for no more tools; never raises for a model."""
        self._conversation.user(text)
        reply = ModelReply()
        said: list[str] = []
        try:
            for _ in range(self._max_model_calls):
                answer = self._ask()
                if isinstance(answer, Hold):
                    self._ui.note(answer.message)
                    return _turn(said, "limit")
                reply = answer
                said.append(reply.text)
                if not reply.tools:
                    return _turn(said, "done")
                for request in reply.tools:
                    self._conversation.tool(request.id, self._use(request))
        except ModelError as error:
            self._ui.end_text()
            return _turn(said, "error", str(error))
        except KeyboardInterrupt:
            self._ui.end_text()
            self._conversation.close(reply, _INTERRUPTED)
            return _turn(said, "interrupt")
        self._ui.note("the turn was ended at the host's limit of model calls")
        return _turn(said, "limit")

    def _ask(self) -> ModelReply | Hold:
        """The model's reply, or why it was not asked."""
        packet = self._hooks.before_model_call(self._worst_case)
        if isinstance(packet, Hold):
            return packet
        request = self._conversation.request(packet)
        self.calls += 1
        self.calls_with_packet += packet is not None
        with self._ui.waiting():
            reply = self._model.complete(request, SCHEMAS, self._ui.text)
        self._ui.end_text()
        self._conversation.assistant(reply)
        self._hooks.after_model_call(Usage(reply.input_tokens, reply.output_tokens))
        return reply

    def _worst_case(self) -> int:
        return self._model.worst_case(self._conversation.messages, SCHEMAS)

    def _use(self, request: ToolRequest) -> str:
        """Run one tool call behind the hooks; the text is the model's tool result."""
        try:
            args = request.parsed()
        except (ValueError, TypeError) as error:
            call = ToolCall(request.name, {}, request.id)
            return self._done(call, ToolOutcome("error", f"unreadable arguments: {error}", error))
        call = ToolCall(request.name, args, request.id)
        self._ui.tool(call.name, call.args)
        refused = self._hooks.before_tool_call(call)
        if refused is not None:
            self._ui.result("blocked", refused.message)
            return refused.message
        return self._done(call, self._outcome(call))

    def _outcome(self, call: ToolCall) -> ToolOutcome:
        try:
            return ToolOutcome("ok", self._tools.call(call.name, call.args))
        except ToolError as error:
            return ToolOutcome("error", str(error), error)
        except Exception as error:  # noqa: BLE001 - a tool's fault is a tool result
            return ToolOutcome("unknown", f"{type(error).__name__}: {error}", error)

    def _done(self, call: ToolCall, outcome: ToolOutcome) -> str:
        self._ui.result(outcome.status, outcome.text)
        self._hooks.after_tool_call(call, outcome)
        return outcome.text if outcome.status == "ok" else f"error: {outcome.text}"


def _turn(said: list[str], reason: Reason, error: str = "") -> Turn:
    """All that the agent said in the turn: a RAGE line may stand before a tool call."""
    return Turn("\n".join(text for text in said if text), reason, error)
