"""A run of many turns: what the model sees stays small, at the tail, and does not grow."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from host_adapters.embedded import Host
from host_adapters.embedded.script import ScriptModel
from rage_plugin.tokens import counter

from .project import ITEM, Project, reply, write

TAG = re.compile(r"^\[RAGE run .* turn \d+", re.MULTILINE)


class Recorded(ScriptModel):
    """A scripted model that keeps every request as it was sent."""

    requests: list[list[dict[str, Any]]]

    def complete(self, messages: Sequence[Any], tools: Sequence[Any], on_text: Callable[..., Any]):  # type: ignore[no-untyped-def]
        self.requests = [*getattr(self, "requests", []), json.loads(json.dumps(list(messages)))]
        return super().complete(messages, tools, on_text)


@pytest.fixture
def host(project: Project, monkeypatch: pytest.MonkeyPatch) -> Host:
    # The gate is a command of milliseconds: what is looked at here is the packet.
    profile = """
limits: {max_iterations: 60, max_fix_attempts: 60}
verification: {commands: [{name: there, command: [test, -e, "{targets}"]}]}
"""
    item = ITEM.replace("tests/test_add.py::test_add", "calc/done.txt")
    second = item.replace("id: 5", "id: 6")
    project.write({"rage.yaml": profile, "backlog/5-sums.md": item, "backlog/6-next.md": second})
    project.commit("long")
    for name, value in {
        "XDG_STATE_HOME": str(project.home / "state"),
        "HOME": str(project.home),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }.items():
        monkeypatch.setitem(os.environ, name, value)
    replies: list[object] = []
    for number in range(30):
        replies += [reply("", write("calc/notes.py", f"N = {number}\n")), reply("Done.")]
    model = Recorded("script:test", [*replies, reply("Nothing more.")])
    return Host(str(project.root), model)


def packets(requests: list[list[dict[str, Any]]]) -> list[str]:
    """The packet of each request: the last thing in its last message."""
    found = []
    for messages in requests:
        last = str(messages[-1]["content"])
        starts = [m.start() for m in TAG.finditer(last)]
        if starts:
            found.append(last[starts[-1] :])
    return found


def test_packets_are_small_at_the_tail_and_do_not_grow(host: Host) -> None:
    """F003, F027, F148, law 2: one packet a call, at the tail, ≤ 200 tokens, iteration 28 as 5."""
    host.send("/rage start backlog")
    requests = host.agent._model.requests  # type: ignore[attr-defined]
    host.close()
    all_packets = packets(requests)
    assert len(all_packets) == len(requests) > 56
    count = counter()
    assert count.exact
    assert max(count.count(p) for p in all_packets) <= 200
    for messages in requests:
        texts = [str(m["content"]) for m in messages]
        assert all(not TAG.search(t) for t in texts[:-1]), "a packet stayed in the history"
    by_turn = {p.split("turn ")[1].split("/")[0]: p for p in all_packets}
    plain = {turn: re.sub(r"\d+", "0", p) for turn, p in by_turn.items()}
    assert len(plain["28"]) == len(plain["5"])
    for earlier, later in pairwise(requests):
        assert later[: len(bare(earlier))] == bare(earlier), "the provider's cache would be lost"


def bare(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A request without its packet."""
    last = str(messages[-1]["content"])
    text = last[: [m.start() for m in TAG.finditer(last)][-1]].rstrip("\n")
    return [*messages[:-1], {**messages[-1], "content": text}] if text else messages[:-1]
