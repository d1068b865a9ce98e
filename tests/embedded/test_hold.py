"""A model call whose worst case does not fit a budget is not made."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_adapters.embedded.conversation import Conversation
from host_adapters.embedded.host import Host
from host_adapters.embedded.models import ANSWER_TOKENS, PACKET_TOKENS, ModelError
from host_adapters.embedded.script import ScriptModel
from host_adapters.embedded.tools import SCHEMAS
from rage_plugin import Continue, Hold, ModelRequest, Session, Stop, Turn, Usage, hookimpl
from rage_plugin.tokens import counter
from tests.fake_openai import FakeOpenAI

from .conftest import Recorder
from .test_provider import environment
from .test_turns import Requests

MakeHost = Callable[..., Host]
READ = {"name": "read_file", "args": {"path": "a.txt"}}


class Budget:
    """Holds a call that could go over `budget` tokens, and keeps what it was told."""

    def __init__(self, budget: int, continues: int = 0) -> None:
        self.budget = budget
        self.continues = continues
        self.spent = 0
        self.told: list[int] = []
        self.turns: list[Turn] = []

    @hookimpl
    def rage_before_model_call(self, session: Session, request: ModelRequest) -> str | Hold:
        self.told.append(request.tokens)
        if self.spent + request.tokens > self.budget:
            return Hold(f"{self.spent} of {self.budget} tokens are used")
        return "[packet]"

    @hookimpl
    def rage_after_model_call(self, session: Session, usage: Usage) -> None:
        self.spent += usage.input + usage.output

    @hookimpl
    def rage_turn_end(self, session: Session, turn: Turn) -> Continue | Stop:
        self.turns.append(turn)
        return Continue("the next item") if len(self.turns) <= self.continues else Stop("paused")


def spends(total: int, *tools: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"text": text, "tools": list(tools), "usage": {"input": total - 1, "output": 1}}


def test_a_call_that_does_not_fit_is_not_made(make_host: MakeHost, ui: Any):
    """F043: the person sees why, the turn ends with `limit`, the budget is not gone over."""
    budget = Budget(250)
    host = make_host([spends(100, READ, text="Looking.")], budget)
    host.send("work")
    assert (host.agent.calls, budget.spent) == (2, 200)
    assert budget.told == [100, 100, 100]
    assert ui.of("note") == ["200 of 250 tokens are used"]
    assert budget.turns == [Turn("Looking.\nLooking.", "limit")]
    assert ui.of("say") == ["paused"]
    # The history is one that can be gone on with: every call has its result.
    assert [m["role"] for m in host.conversation.messages[-2:]] == ["assistant", "tool"]
    budget.budget = 300
    host.send("go on")
    assert (host.agent.calls, budget.spent) == (3, 300)


def test_a_budget_that_the_next_call_just_fits_is_used_up(make_host: MakeHost):
    """The worst case of a script is what it will report, no token more."""
    budget = Budget(300)
    host = make_host([spends(100, READ)], budget)
    host.send("work")
    assert (host.agent.calls, budget.spent) == (3, 300)


def test_a_message_that_was_never_sent_goes_out_with_the_next_one(make_host: MakeHost, ui: Any):
    """Strict providers refuse two user messages in a row."""
    budget = Budget(0, continues=1)
    host = make_host([spends(100)], budget)
    requests = Requests(host)
    host.send("the brief")
    assert (host.agent.calls, len(budget.turns)) == (0, 2)
    budget.budget = 100
    host.send("resumed")
    (sent,) = requests.lists
    assert [m["role"] for m in sent] == ["system", "user"]
    assert sent[1]["content"] == "the brief\n\nthe next item\n\nresumed\n\n[packet]"
    assert "[packet]" not in json.dumps(list(host.conversation.messages))


def test_a_message_that_a_failed_call_sent_stays_as_it_was():
    """F148: an earlier request without its packet is a prefix of the next one."""
    conversation = Conversation()
    conversation.user("one")
    sent = conversation.request(None)
    conversation.user("two")
    assert conversation.request(None)[: len(sent)] == sent


def test_the_worst_case_is_computed_only_where_somebody_listens(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
):
    """Law 1: a chat without a run pays nothing for it."""
    asked: list[int] = []
    worst_case = ScriptModel.worst_case

    def counted(self: ScriptModel, messages: Any, tools: Any) -> int:
        asked.append(worst_case(self, messages, tools))
        return asked[-1]

    monkeypatch.setattr(ScriptModel, "worst_case", counted)
    host = make_host([spends(7)])
    host.send("hello")
    assert (host.agent.calls, asked) == (1, [])
    host.hooks.manager.register(Budget(100))
    host.send("hello")
    assert asked == [7]


def test_the_hosts_own_limit_is_told_apart(make_host: MakeHost, ui: Any):
    host = make_host([spends(1, READ)], Budget(1000), max_model_calls=2)
    host.send("loop")
    assert ui.of("note") == ["the turn was ended at the host's limit of model calls"]


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"text": st.text(max_size=20)},
        optional={
            "tools": st.lists(st.just(READ), max_size=2),
            "usage": st.fixed_dictionaries({"input": st.integers(0, 9999)}),
            "error": st.sampled_from(["", "429"]),
        },
    ),
    min_size=1,
    max_size=4,
)


@given(entries=ENTRIES, packets=st.lists(st.text(max_size=300), min_size=6, max_size=6))
def test_a_script_says_what_it_will_report(entries: list[dict[str, Any]], packets: list[str]):
    """Exact where `usage` is written; else more than the reply reports by the packet's room."""
    model = ScriptModel("script:test", entries)
    conversation = Conversation()
    for packet in packets:
        conversation.user("go on")
        told = model.worst_case(conversation.messages, SCHEMAS)
        try:
            reply = model.complete(conversation.request(packet), SCHEMAS, lambda piece: None)
        except ModelError:
            assert told == 0
            continue
        conversation.assistant(reply)
        spent = reply.input_tokens + reply.output_tokens
        assert spent <= told <= spent + PACKET_TOKENS


DRIVER = """
import json, os, sys
from host_adapters.embedded.conversation import Conversation
from host_adapters.embedded.provider import ProviderModel
from host_adapters.embedded.tools import SCHEMAS

os.environ["OPENAI_BASE_URL"] = sys.argv[1]
told = []
for texts in json.loads(sys.argv[2]):
    model, conversation = ProviderModel("tiny-local"), Conversation()
    for text, times in texts:
        conversation.user(text * times)
        worst = model.worst_case(conversation.messages, SCHEMAS)
        request = conversation.request("packet " * 190)
        reply = model.complete(request, SCHEMAS, lambda piece: None)
        conversation.assistant(reply)
        told.append([worst, reply.input_tokens])
print(json.dumps(told))
"""


def test_a_provider_model_reserves_what_it_was_charged_and_what_came_since():
    """F043: above the real tokens of the request, and of a provider that counts its own way."""
    prose = "The parser drops the last line when it does not end with a newline.\n"
    code = "def größe(werte: list[int]) -> int:\n        return sum(werte) // len(werte)\n"
    other = "解析器在最后一行没有换行符时会丢失它。"
    chats = [
        [("hi", 1), (prose, 60), (code, 60), (other, 60), ("thanks", 1)],
        [("hi", 1), ("more", 1), ("and more", 1)],
    ]
    # The second chat's provider counts five times as much as the request holds.
    replies = [{"text": "Yes.", "usage": {"input": 1, "output": 1}}] * 5
    replies += [{"text": "Yes.", "usage": {"input": n, "output": 1}} for n in (9000, 9100, 9200)]
    with FakeOpenAI(replies) as fake:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, fake.url, json.dumps(chats)],
            env=environment(fake.url),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        requests = fake.requests
    told = json.loads(done.stdout)
    count = counter()
    assert count.exact
    for (worst, _), request in zip(told, requests, strict=True):
        real = count.count(json.dumps([request["messages"], request["tools"]], ensure_ascii=False))
        assert worst >= real + ANSWER_TOKENS
    for (_, charged), (worst, _) in pairwise(told[5:]):
        assert charged + 100 + ANSWER_TOKENS <= worst < charged + 1_000 + ANSWER_TOKENS


@given(budget=st.integers(0, 2_000), costs=st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_no_budget_is_ever_gone_over(budget: int, costs: list[int]):
    """F043: whatever the calls cost, they stop at the last one that fits."""
    plugin = Budget(budget)
    model = ScriptModel("script:test", [spends(cost, READ) for cost in costs])
    host = Host(".", model, Recorder(), with_rage=False, max_model_calls=len(costs))
    host.hooks.manager.register(plugin)
    host.send("work")
    fitting = [total for total in accumulate(costs) if total <= budget]
    assert plugin.spent == (fitting[-1] if fitting else 0)
    assert host.agent.calls == len(fitting)
