"""What a model is to the host: one call in, one reply out, or one short error.

Separate from the providers (`provider.py`, `script.py`) so that the host's loop knows neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rage_plugin import RageError

Message = dict[str, object]
"""One message in the Chat Completions shape."""

ANSWER_TOKENS = 4_096
"""What is reserved for an answer that nobody can know the length of before it is there."""

PACKET_TOKENS = 600
"""What is reserved for the packet, which is put on the request after its cost was told."""

OnText = Callable[[str], None]
"""Told each piece of text as it arrives."""


class ModelError(Exception):
    """A model call that failed; its text is one short line for a person."""


class ModelSetupError(RageError):
    """The model cannot be used at all: a bad `--model`, a bad script file."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One tool call as the model wrote it."""

    id: str
    name: str
    arguments: str
    """JSON text, byte for byte as it came, so that the history repeats it exactly."""

    def repeatable(self) -> str:
        """The arguments as the history may hold them: providers refuse a request that holds text
        which is no JSON object, and then every later one.
        """
        try:
            self.parsed()
        except (ValueError, TypeError):
            return "{}"
        return self.arguments

    def parsed(self) -> Mapping[str, object]:
        """The arguments as an object; `ValueError` when they are not one."""
        value = json.loads(self.arguments or "{}")
        if not isinstance(value, dict):
            raise TypeError("the arguments are not a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What one model call came to."""

    text: str = ""
    tools: tuple[ToolRequest, ...] = field(default_factory=tuple)
    input_tokens: int = 0
    output_tokens: int = 0

    def message(self) -> Message:
        """The reply as the assistant message that the history keeps."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.tools:
            message["tool_calls"] = [
                {
                    "id": tool.id,
                    "type": "function",
                    "function": {"name": tool.name, "arguments": tool.repeatable()},
                }
                for tool in self.tools
            ]
        return message


class Model(Protocol):
    """Anything that answers a conversation."""

    @property
    def name(self) -> str:
        """What a person typed to get it."""
        ...

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Message], on_text: OnText
    ) -> ModelReply:
        """One call; `ModelError` when it failed. The same conversation gives the same request."""
        ...

    def worst_case(self, messages: Sequence[Message], tools: Sequence[Message]) -> int:
        """The most tokens, input and answer, that the next call with this history may cost.

        The packet is not among the messages: room for it is in the figure.
        """
        ...


def load_model(name: str) -> Model:
    """The model that `--model NAME` means; `ModelSetupError` says what is wrong with the name."""
    if not name.strip():
        raise ModelSetupError("No model was named", next="--model NAME, or --model script:FILE")
    if name.startswith("script:"):
        from .script import ScriptModel  # noqa: PLC0415

        return ScriptModel.read(name.removeprefix("script:"))
    from .provider import ProviderModel  # noqa: PLC0415

    return ProviderModel(name)


def estimate_tokens(value: object) -> int:
    """Tokens of a text or a JSON value at four UTF-8 bytes each, where no provider counted."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (len(text.encode("utf-8", "replace")) + 3) // 4
