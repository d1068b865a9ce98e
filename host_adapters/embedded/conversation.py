"""The history of a chat, and the request that is made of it.

The history never holds a packet: it is put on a copy at the tail of one request, so that a request
without its packet is a prefix of the next and the provider's cache survives.
"""

from __future__ import annotations

from collections.abc import Sequence

from .models import Message, ModelReply

SYSTEM = (
    "You are a coding agent. You work in one folder, the workspace, through the tools you are "
    "given. Paths are relative to the workspace. Read before you change, keep changes small, run "
    "the project's tests, and say in a few words what you did."
)


class Conversation:
    """Messages in the Chat Completions shape, only ever appended to."""

    def __init__(self) -> None:
        self._messages: list[Message] = [{"role": "system", "content": SYSTEM}]
        self._sent = 0
        """How many of them were part of a request."""

    def request(self, packet: str | None) -> list[Message]:
        """What is sent: the history, with the packet at the tail of a copy."""
        messages = list(self._messages)
        self._sent = len(messages)
        if packet is None:
            return messages
        last = messages[-1]
        if last["role"] == "user":
            # Two user messages in a row are refused by strict providers.
            messages[-1] = {**last, "content": f"{last['content']}\n\n{packet}"}
        else:
            messages.append({"role": "user", "content": packet})
        return messages

    def user(self, text: str) -> None:
        """A message of the person or of the loop, behind one that no request held yet."""
        last = self._messages[-1]
        if last["role"] == "user" and len(self._messages) > self._sent:
            self._messages[-1] = {**last, "content": f"{last['content']}\n\n{text}"}
        else:
            self._messages.append({"role": "user", "content": text})

    def assistant(self, reply: ModelReply) -> None:
        """The model's reply."""
        self._messages.append(reply.message())

    def tool(self, call_id: str, text: str) -> None:
        """The result of a tool call."""
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def close(self, reply: ModelReply, why: str) -> None:
        """Answer every call of the last reply that has no result: a provider wants one for each."""
        answered = set()
        for message in reversed(self._messages):
            if message["role"] != "tool":
                break
            answered.add(message["tool_call_id"])
        for call in reply.tools:
            if call.id not in answered:
                self.tool(call.id, why)

    @property
    def messages(self) -> Sequence[Message]:
        """The history as it is."""
        return tuple(self._messages)
