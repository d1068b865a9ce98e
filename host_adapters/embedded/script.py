"""`--model script:FILE`: replies played in order, for tests, the demo and rehearsals.

Only the replies are scripted; tools, git, checks and the loop are the real ones. The file is a
JSON list, one entry a model call, the last repeated:
`{"text": str, "tools": [{"name", "args"}], "usage"?: {"input", "output"}, "error"?, "delay_s"?}`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .models import (
    PACKET_TOKENS,
    Message,
    ModelError,
    ModelReply,
    ModelSetupError,
    OnText,
    ToolRequest,
    estimate_tokens,
)

_KEYS = ("text", "tools", "usage", "error", "delay_s")
_ERRORS = {
    "429": "429 rate limited",
    "timeout": "the provider did not answer in time",
}


@dataclass(frozen=True, slots=True)
class _Entry:
    text: str
    tools: tuple[tuple[str, str], ...]
    usage: tuple[int, int] | None
    error: str
    delay_s: float

    def answer_tokens(self) -> int:
        """The estimate of the answer, where no `usage` says it."""
        calls = sum(estimate_tokens(name + args) for name, args in self.tools)
        return estimate_tokens(self.text) + calls


class ScriptModel:
    """Plays the entries of a script file."""

    def __init__(
        self,
        name: str,
        entries: Sequence[object],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not entries:
            raise ModelSetupError(f"{name}: the script is an empty list; it needs one reply")
        self._name = name
        self._entries = [_entry(name, i, entry) for i, entry in enumerate(entries)]
        self._sleep = sleep
        self._calls = 0

    @classmethod
    def read(cls, path: str) -> ScriptModel:
        """The script in a file; `ModelSetupError` names the file, the entry and the key."""
        try:
            entries = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ModelSetupError(f"script:{path}: {error.strerror or error}") from None
        except ValueError as error:
            raise ModelSetupError(f"script:{path}: not JSON: {error}") from None
        if not isinstance(entries, list):
            raise ModelSetupError(f"script:{path}: the top level is not a list of replies")
        return cls(f"script:{path}", entries)

    @property
    def name(self) -> str:
        """`script:` and the file."""
        return self._name

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Message], on_text: OnText
    ) -> ModelReply:
        """The next entry; the last one repeats for ever."""
        number, entry = self._calls, self._next()
        self._calls += 1
        if entry.delay_s:
            self._sleep(entry.delay_s)
        if entry.error:
            raise ModelError(_ERRORS.get(entry.error, f"the provider failed: {entry.error}"))
        if entry.text:
            on_text(entry.text)
        calls = tuple(
            ToolRequest(f"call_{number}_{i}", name, args)
            for i, (name, args) in enumerate(entry.tools)
        )
        if entry.usage is not None:
            return ModelReply(entry.text, calls, *entry.usage)
        spent_in = estimate_tokens([list(messages), list(tools)])
        return ModelReply(entry.text, calls, spent_in, entry.answer_tokens())

    def worst_case(self, messages: Sequence[Message], tools: Sequence[Message]) -> int:
        """What the next reply will report: exact with a `usage`, else with room for a packet."""
        entry = self._next()
        if entry.error:
            return 0
        if entry.usage is not None:
            return sum(entry.usage)
        spent_in = estimate_tokens([list(messages), list(tools)])
        return spent_in + PACKET_TOKENS + entry.answer_tokens()

    def _next(self) -> _Entry:
        return self._entries[min(self._calls, len(self._entries) - 1)]


def _entry(name: str, number: int, raw: object) -> _Entry:
    where = f"{name}: reply {number + 1}"
    if not isinstance(raw, dict):
        raise ModelSetupError(f"{where} is not an object")
    unknown = sorted(set(raw) - set(_KEYS))
    if unknown:
        raise ModelSetupError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(_KEYS)}")
    text = raw.get("text", "")
    if not isinstance(text, str):
        raise ModelSetupError(f"{where}: `text` is not a string")
    error = raw.get("error", "")
    if isinstance(error, int) and not isinstance(error, bool):
        error = str(error)
    if error is None:
        error = ""
    if not isinstance(error, str):
        raise ModelSetupError(f"{where}: `error` is neither a string nor a status code")
    delay = raw.get("delay_s", 0)
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay <= 3600:
        raise ModelSetupError(f"{where}: `delay_s` is not a number of seconds from 0 to 3600")
    return _Entry(
        text, _tools(where, raw.get("tools")), _usage(where, raw.get("usage")), error, delay
    )


def _tools(where: str, raw: object) -> tuple[tuple[str, str], ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise ModelSetupError(f"{where}: `tools` is not a list")
    calls = []
    for tool in raw:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise ModelSetupError(f"{where}: a tool is not an object with `name` and `args`")
        args = tool.get("args", {})
        if not isinstance(args, dict) or set(tool) - {"name", "args"}:
            raise ModelSetupError(
                f"{where}: tool {tool['name']!r} wants `name` and an `args` object"
            )
        calls.append((tool["name"], json.dumps(args, ensure_ascii=False)))
    return tuple(calls)


def _usage(where: str, raw: object) -> tuple[int, int] | None:
    if raw is None:
        return None
    if not isinstance(raw, dict) or set(raw) - {"input", "output"}:
        raise ModelSetupError(f"{where}: `usage` is not an object with `input` and `output`")
    spent = (raw.get("input", 0), raw.get("output", 0))
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in spent):
        raise ModelSetupError(f"{where}: `usage` holds whole numbers of tokens")
    return spent
