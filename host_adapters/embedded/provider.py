"""`--model NAME` through litellm: one streamed call, every failure one short line.

litellm takes seconds to import, so it is imported at the first call. The request depends on the
conversation alone: the same conversation gives the same bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .models import (
    ANSWER_TOKENS,
    PACKET_TOKENS,
    Message,
    ModelError,
    ModelReply,
    OnText,
    ToolRequest,
    estimate_tokens,
)

TIMEOUT_S = 180.0
"""How long a provider may be silent."""
DENSE = 2
"""What an estimate is multiplied by to be on the high side: two bytes a token instead of four.

Prose and code have three to five; what is denser still is random text, such as base64.
"""


class ProviderModel:
    """A model that litellm knows, or any name at the server of `OPENAI_BASE_URL`."""

    def __init__(self, name: str, timeout_s: float = TIMEOUT_S) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._last_tokens = 0
        self._last_messages: Sequence[Message] = ()
        """What the last call that was answered cost as input, and what it sent."""

    @property
    def name(self) -> str:
        """What a person typed."""
        return self._name

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Message], on_text: OnText
    ) -> ModelReply:
        """One streamed call; nothing is repeated here, a retry is the loop's decision."""
        litellm = _litellm()
        answer = _Answer()
        try:
            stream = litellm.completion(
                messages=list(messages),
                tools=list(tools),
                stream=True,
                stream_options={"include_usage": True},
                timeout=self._timeout_s,
                num_retries=0,
                max_retries=0,
                **_route(litellm, self._name),
            )
            for chunk in stream:
                answer.add(chunk, on_text)
        except Exception as error:
            raise ModelError(_line(error)) from error
        reply = answer.reply(messages, tools)
        self._last_tokens, self._last_messages = reply.input_tokens, messages
        return reply

    def worst_case(self, messages: Sequence[Message], tools: Sequence[Message]) -> int:
        """The request as the provider counted the last one, what it grew by since, and reserves.

        An answer longer than `ANSWER_TOKENS` is what can still go over; so can what was added
        since, if it is denser than two bytes a token.
        """
        whole = estimate_tokens([list(messages), list(tools)])
        if not self._last_tokens:
            return DENSE * whole + PACKET_TOKENS + ANSWER_TOKENS
        sent = estimate_tokens([list(self._last_messages), list(tools)])
        grown = self._last_tokens + DENSE * max(0, whole - sent)
        return max(whole, grown) + PACKET_TOKENS + ANSWER_TOKENS


class _Answer:
    """What the chunks of one stream add up to."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._tools: dict[int, dict[str, str]] = {}
        self._usage: tuple[int, int] | None = None
        self._finished = ""

    def add(self, chunk: Any, on_text: OnText) -> None:
        """Take one chunk in; text is passed on at once."""
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            self._usage = (usage.prompt_tokens or 0, usage.completion_tokens or 0)
        for choice in chunk.choices[:1]:
            if choice.delta.content:
                self._text.append(choice.delta.content)
                on_text(choice.delta.content)
            for part in choice.delta.tool_calls or ():
                tool = self._tools.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                tool["id"] = tool["id"] or part.id or ""
                tool["name"] += part.function.name or ""
                tool["arguments"] += part.function.arguments or ""
            self._finished = choice.finish_reason or self._finished

    def reply(self, messages: Sequence[Message], tools: Sequence[Message]) -> ModelReply:
        """The whole answer; a stream that ended before its end is an error, not an answer."""
        if not self._finished:
            raise ModelError("the provider's stream ended before the answer was complete")
        text = "".join(self._text)
        calls = tuple(
            ToolRequest(tool["id"] or f"call_{index}", tool["name"], tool["arguments"] or "{}")
            for index, tool in sorted(self._tools.items())
        )
        if self._usage is not None:
            return ModelReply(text, calls, *self._usage)
        spent_out = estimate_tokens(text + "".join(c.name + c.arguments for c in calls))
        return ModelReply(text, calls, estimate_tokens([list(messages), list(tools)]), spent_out)


def _litellm() -> ModuleType:
    """litellm without network, telemetry or chatter of its own."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm  # noqa: PLC0415 - seconds, and only a real model needs it
    except ImportError as error:
        raise ModelError(f"litellm cannot be imported: {error}") from error
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


def _route(litellm: ModuleType, name: str) -> dict[str, str]:
    """How litellm is told of the model; a name it does not know belongs to the custom server."""
    base = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    try:
        _, provider, _, _ = litellm.get_llm_provider(name)
    except Exception:  # noqa: BLE001 - litellm's own "provider not provided"
        provider = ""
    if not provider:
        if not base:
            raise ModelError(
                f"{name}: not a model that litellm knows; name it PROVIDER/MODEL or set "
                "OPENAI_BASE_URL"
            )
        name = f"openai/{name}"
        provider = "openai"
    if provider == "openai" and base:
        # Servers that want no key still get a header; the client refuses to start without one.
        key = os.environ.get("OPENAI_API_KEY") or "none"
        return {"model": name, "api_base": base, "api_key": key}
    return {"model": name}


def _line(error: Exception) -> str:
    """A provider's error in one short line, without its stack or the request."""
    if isinstance(error, ModelError):
        return str(error)
    status = getattr(error, "status_code", None)
    kind = type(error).__name__
    known = {
        "Timeout": "the provider did not answer in time",
        "APITimeoutError": "the provider did not answer in time",
        "RateLimitError": "429 rate limited",
        "AuthenticationError": "the provider refused the key, or none is set",
        "NotFoundError": "the provider does not know this model",
        "ContextWindowExceededError": "the conversation no longer fits the model",
        "MidStreamFallbackError": "the provider's answer broke off",
        "APIConnectionError": "the provider cannot be reached",
    }
    if kind in known:
        return known[kind]
    said = " ".join(
        re.sub(r"(?:\b\w+\.)?\w+(?:Error|Exception): |\w+Exception - ", "", str(error)).split()
    )
    said = said if len(said) <= 160 else said[:159] + "…"
    return f"the provider failed: {status} {said}" if status else f"{kind}: {said}"
