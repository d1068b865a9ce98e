"""The outer loop and one turn, with stand-in plugins that implement the real hook specifications."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from host_adapters.embedded.host import Host
from rage_plugin import (
    Block,
    Continue,
    ModelRequest,
    Reply,
    Session,
    Stop,
    ToolCall,
    ToolOutcome,
    Turn,
    Usage,
    hookimpl,
)

MakeHost = Callable[..., Host]


class Loop:
    """Answers `/go`, gives a packet, continues a few times and then stops; keeps what it saw."""

    def __init__(self, continues: int = 0) -> None:
        self.continues = continues
        self.turns: list[Turn] = []
        self.usages: list[Usage] = []
        self.outcomes: list[tuple[ToolCall, ToolOutcome]] = []
        self.packets = 0

    @hookimpl
    def rage_user_message(self, session: Session, text: str) -> Reply | None:
        if text == "/go":
            return Reply("started", then="the brief")
        return Reply("answered") if text.startswith("/") else None

    @hookimpl
    def rage_before_model_call(self, session: Session, request: ModelRequest) -> str:
        assert (request.purpose, request.depth) == ("main", 0)
        self.packets += 1
        return f"[packet {self.packets}]"

    @hookimpl
    def rage_after_model_call(self, session: Session, usage: Usage) -> None:
        self.usages.append(usage)

    @hookimpl
    def rage_before_tool_call(self, session: Session, call: ToolCall) -> Block | None:
        return Block("no writing here") if call.name == "write_file" else None

    @hookimpl
    def rage_after_tool_call(self, session: Session, call: ToolCall, outcome: ToolOutcome) -> None:
        self.outcomes.append((call, outcome))

    @hookimpl
    def rage_turn_end(self, session: Session, turn: Turn) -> Continue | Stop:
        self.turns.append(turn)
        if len(self.turns) <= self.continues:
            return Continue(f"go on {len(self.turns)}")
        return Stop("the report")


class Requests:
    """Wraps a host's model to keep the message list of every request."""

    def __init__(self, host: Host) -> None:
        self.lists: list[list[dict[str, Any]]] = []
        complete = host.agent._model.complete

        def keep(messages: Any, tools: Any, on_text: Any) -> Any:
            self.lists.append(json.loads(json.dumps(messages)))
            return complete(messages, tools, on_text)

        host.agent._model.complete = keep  # type: ignore[method-assign]


def test_a_plain_line_goes_to_the_model_and_its_answer_to_the_person(make_host: MakeHost, ui: Any):
    host = make_host([{"text": "hello"}])
    assert host.send("hi") is None
    assert ui.of("text") == ["hello"]
    assert [m["role"] for m in host.conversation.messages] == ["system", "user", "assistant"]


def test_a_reply_costs_no_model_call_and_leaves_nothing_in_the_history(
    make_host: MakeHost, ui: Any
):
    """Law 2, F001: a `/rage` line that is answered is not part of the conversation."""
    host = make_host([{"text": "never"}], Loop())
    before = host.conversation.messages
    assert host.send("/status") == Reply("answered")
    assert (host.agent.calls, host.conversation.messages) == (0, before)
    assert ui.of("say") == ["answered"]


def test_then_begins_a_turn_with_the_brief(make_host: MakeHost):
    host = make_host([{"text": "ok"}], Loop())
    host.send("/go")
    assert host.conversation.messages[1] == {"role": "user", "content": "the brief"}


def test_one_packet_at_the_tail_and_never_in_the_history(make_host: MakeHost):
    """F148: an earlier request without its packet is a prefix of the next one's message list."""
    loop = Loop(continues=2)
    tool = {"tools": [{"name": "read_file", "args": {"path": "a.txt"}}]}
    host = make_host([tool, {"text": "a"}, tool, {"text": "b"}, {"text": "c"}], loop)
    requests = Requests(host)
    host.send("/go")
    assert len(requests.lists) == loop.packets == 5
    stripped = []
    for number, messages in enumerate(requests.lists, 1):
        packet = f"[packet {number}]"
        assert json.dumps(messages).count("[packet ") == 1
        last = messages[-1]
        assert last["role"] == "user" and last["content"].endswith(packet)
        rest = last["content"].removesuffix(packet).removesuffix("\n\n")
        stripped.append(messages[:-1] + ([{**last, "content": rest}] if rest else []))
    history = list(host.conversation.messages)
    for earlier, later in zip(stripped, [*stripped[1:], history], strict=True):
        assert later[: len(earlier)] == earlier
    assert "[packet" not in json.dumps(history)


def test_no_two_user_messages_in_a_row(make_host: MakeHost):
    """Strict providers refuse them, so the packet is folded into the last one."""
    loop = Loop(continues=1)
    tool = {"tools": [{"name": "read_file", "args": {"path": "a.txt"}}]}
    host = make_host([tool, {"text": "a"}], loop)
    requests = Requests(host)
    host.send("/go")
    for messages in requests.lists:
        roles = [m["role"] for m in messages]
        assert ("user", "user") not in pairwise(roles)


def test_continue_is_a_message_and_stop_a_report_for_the_person(make_host: MakeHost, ui: Any):
    loop = Loop(continues=2)
    host = make_host([{"text": "working"}], loop)
    host.send("/go")
    users = [m["content"] for m in host.conversation.messages if m["role"] == "user"]
    assert users == ["the brief", "go on 1", "go on 2"]
    assert ui.of("say") == ["started", "the report"]
    assert "the report" not in json.dumps(list(host.conversation.messages))
    assert [t.reason for t in loop.turns] == ["done"] * 3
    assert loop.turns[0].text == "working"


def test_a_block_is_the_tool_result_and_the_tool_does_not_run(
    make_host: MakeHost, workspace: Any, ui: Any
):
    loop = Loop()
    write = {"name": "write_file", "args": {"path": "new.txt", "content": "x"}}
    host = make_host([{"tools": [write]}, {"text": "ok"}], loop)
    host.send("write")
    assert not (workspace / "new.txt").exists()
    assert host.conversation.messages[3]["content"] == "no writing here"
    assert loop.outcomes == []
    assert ui.of("blocked") == ["no writing here"]


def test_tools_are_observed_with_what_they_came_to(make_host: MakeHost):
    loop = Loop()
    host = make_host(
        [
            {
                "tools": [
                    {"name": "read_file", "args": {"path": "a.txt"}},
                    {"name": "read_file", "args": {"path": "none.txt"}},
                    {"name": "invent", "args": {}},
                ]
            },
            {"text": "ok"},
        ],
        loop,
    )
    host.send("read")
    assert [outcome.status for _, outcome in loop.outcomes] == ["ok", "error", "error"]
    assert loop.outcomes[0][1].text == "one\ntwo\n"
    assert loop.outcomes[1][1].exception is not None
    results = [m for m in host.conversation.messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in results] == ["call_0_0", "call_0_1", "call_0_2"]


def test_usage_reaches_the_plugin(make_host: MakeHost):
    loop = Loop()
    host = make_host([{"text": "x", "usage": {"input": 7, "output": 3}}], loop)
    host.send("hi")
    assert loop.usages == [Usage(7, 3)]


def test_the_hosts_own_limit_ends_a_turn(make_host: MakeHost, ui: Any):
    """Law 8: a model that asks for tools for ever is ended."""
    loop = Loop()
    tool = {"tools": [{"name": "read_file", "args": {"path": "a.txt"}}]}
    host = make_host([tool], loop, max_model_calls=4)
    host.send("loop")
    assert (host.agent.calls, loop.turns[0].reason) == (4, "limit")
    assert any("limit" in line for line in ui.of("note"))


@pytest.mark.parametrize("error", ["429", "500", "timeout", "overloaded"])
def test_a_provider_error_is_one_short_line_and_an_error_turn(
    make_host: MakeHost, ui: Any, error: str
):
    loop = Loop()
    host = make_host([{"error": error}, {"text": "back"}], loop)
    host.send("hi")
    assert loop.turns[0].reason == "error"
    assert len(loop.turns[0].error) < 200 and "\n" not in loop.turns[0].error
    assert len(ui.of("note")) == 1
    host.send("again")
    assert ui.of("text") == ["back"]


def test_errors_back_off_twice_as_long_each_time_and_a_good_turn_resets(make_host: MakeHost):
    slept: list[float] = []
    loop = Loop(continues=12)
    host = make_host(
        [{"error": "500"}] * 9 + [{"text": "ok"}, {"error": "500"}, {"text": "ok"}],
        loop,
        sleep=slept.append,
    )
    host.send("/go")
    assert slept == [1, 2, 4, 8, 16, 32, 60, 60, 60, 1]


def test_an_interrupted_back_off_is_an_interrupt(make_host: MakeHost):
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    loop = Loop(continues=5)
    host = make_host([{"error": "500"}], loop, sleep=interrupted)
    host.send("/go")
    assert [t.reason for t in loop.turns] == ["error", "interrupt"]
    assert host.agent.calls == 1


class Faulty:
    """Raises in one hook."""

    def __init__(self, hook: str) -> None:
        def fault(session: Session) -> None:
            raise RuntimeError("broken inside")

        setattr(self, hook, hookimpl(fault))


HOOKS = [
    "rage_user_message",
    "rage_before_model_call",
    "rage_after_model_call",
    "rage_before_tool_call",
    "rage_after_tool_call",
    "rage_turn_end",
]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_raises_costs_one_line_and_the_chat_goes_on(
    make_host: MakeHost, ui: Any, hook: str
):
    """Law 9: a fault inside a plugin never blocks, breaks or hijacks the chat."""
    tool = {"tools": [{"name": "read_file", "args": {"path": "a.txt"}}]}
    host = make_host([tool, {"text": "answer"}], Faulty(hook))
    host.send("hi")
    assert ui.of("text") == ["answer"]
    assert ui.of("ok") == ["one\ntwo\n"]
    assert ui.of("note")
    assert all(hook in line and "broken inside" in line for line in ui.of("note"))


def test_a_hook_that_answers_nonsense_counts_as_silent(make_host: MakeHost, ui: Any):
    class Nonsense:
        @hookimpl
        def rage_user_message(self, session: Session) -> str:
            return "not a reply"

        @hookimpl
        def rage_before_model_call(self, session: Session) -> int:
            return 7

        @hookimpl
        def rage_turn_end(self, session: Session) -> str:
            return "more"

    host = make_host([{"text": "answer"}], Nonsense())
    requests = Requests(host)
    host.send("hi")
    assert ui.of("text") == ["answer"]
    assert requests.lists[0] == list(host.conversation.messages[:2])


def test_unreadable_arguments_are_told_to_the_model(make_host: MakeHost):
    loop = Loop()
    host = make_host([{"text": "ok"}], loop)
    from host_adapters.embedded.models import ToolRequest

    for arguments in ("{", "[1]", '"x"'):
        answer = host.agent._use(ToolRequest("id", "read_file", arguments))
        assert answer.startswith("error: unreadable arguments")
        # Strict providers would refuse every later request of the chat.
        assert ToolRequest("id", "read_file", arguments).repeatable() == "{}"


def test_model_calls_are_counted_through_the_session(make_host: MakeHost):
    """F136: a ledger can say 0 bytes over N calls, because the host counts them."""
    host = make_host([{"text": "a"}])
    assert host.session.calls is not None
    assert host.session.calls() == 0
    host.send("x")
    host.send("y")
    assert (host.session.calls(), host.agent.calls_with_packet) == (2, 0)


def test_a_command_that_nobody_answers_does_not_reach_the_agent(make_host: MakeHost):
    host = make_host([{"text": "never"}], Faulty("rage_user_message"))
    assert host.command("/rage start 5") is None
    assert host.agent.calls == 0
