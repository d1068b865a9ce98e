"""What is over stays over: cancel, stop and interrupt against whatever comes after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rage_plugin import control, loop, resume
from rage_plugin.commands import parse
from rage_plugin.core.errors import RageError
from rage_plugin.core.model import RunStatus
from rage_plugin.hookspecs import Block, Continue, Stop, ToolCall, ToolOutcome, Turn

from ..core.simulated import Simulation, TurnScript
from ..core.test_decide import GATED, OPEN, SLICE, V, always
from ..e2e.project import Project
from ..machine.processes import Process, Table, session
from ..machine.world import code_of
from .chats import Chat
from .runs import LINE, now

ENDS = ["stop", "kill"]


def test_cancel_between_what_a_hook_reads_and_what_it_writes(table: Table, chat: Process) -> None:
    """The hook wrote its state again from memory and the loop was back.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/2220
    """
    for number, place in enumerate(("judge", "commit:before", "commit:after", "write:before")):
        if number:
            chat.says("/rage start #9 --snapshot")
        other = Process(table, session("chat", "other"))
        chat.asks(0)
        table.world.files[code_of(now(table).run.current_item or "")] = f"green {number}"
        table.world.meanwhile[place] = lambda chat=other: chat.says("/rage stop")  # type: ignore[misc]
        assert not isinstance(chat.rests(Turn(LINE)), Continue), place
        stopped = now(table)
        assert stopped.run.status == "stopped", place
        assert not chat.bound
        assert chat.rests(Turn(LINE)) is None
        assert now(table) == stopped
        table.world.tidy()


def test_cancel_wins_whatever_is_written_after_it(table: Table, chat: Process) -> None:
    """F142: each thing that may be written to a run, by every path, after its end: refused.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/2220
    """
    before = now(table)
    chat.says("/rage stop")
    over = now(table)
    parts = table.open("").parts
    lease = loop.Lease.of(before.run)
    assert loop.tick(parts, over.run.id, lease, None, lambda line: None).text is None
    ended = loop.Ended(Turn(LINE))
    assert loop.tick(parts, over.run.id, lease, ended, lambda line: None).text is None
    for words in ("resume", "pause", "correct go on", f"adopt {over.run.id}", "accept 1"):
        said = chat.says(f"/rage {words}")
        assert said is not None
        assert said.error, words
    assert resume.rebind(parts, chat.session) is None
    with pytest.raises(RageError):
        resume.resume(parts, chat.session, parse("/rage resume"), lambda line: None)
    with pytest.raises(RageError):
        control.stop(parts)
    assert now(table) == over


def test_cancel_costs_no_turn_of_the_model(table: Table, chat: Process) -> None:
    """The model carried out the cancel in several calls, and was called back between them.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/921
    """
    chat.asks(0)
    said = chat.says("/rage stop")
    assert said is not None
    assert (said.then, said.error) == (None, False)
    assert now(table).run.status == "stopped"
    assert chat.asks(0) is None, "no packet is put into the call that is under way"
    assert not isinstance(chat.rests(Turn("I shall now clean up the state.")), Continue)


@pytest.mark.parametrize("end", ENDS)
def test_later_turns_after_a_cancel_are_told_nothing(
    end: str, project: Project, real_chat: Callable[..., Chat]
) -> None:
    """Turns about something else were still told that work is not done.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/2896
    """
    mine, beside = real_chat("mine"), real_chat("beside")
    mine.answer("/rage start #5")
    mine.asks()
    mine.answer(f"/rage {end}")
    for chat in (mine, beside, real_chat("mine"), real_chat("new")):
        chat.told.clear()
        assert chat.everything() == []
        assert chat.told == []
    assert "is stopped" in mine.answer("/rage status")


def test_later_turns_after_the_work_is_done_are_told_nothing(table: Table) -> None:
    """The same where nobody cancelled: a run that is done leaves no word behind."""
    chat = Process(table, session("chat", "s1"))
    chat.says("/rage start #2")
    chat.asks(0)
    table.world.files[code_of("2")] = "green"
    assert isinstance(chat.rests(Turn(LINE)), Stop)
    assert now(table).run.status == "done"
    chat.begins()
    for _ in range(3):
        assert chat.says("write a poem") is None
        assert (chat.asks(0), chat.rests(Turn("Roses."))) == (None, None)
        assert chat.tool({"path": "x"}, ToolOutcome("error", "no")) is None


@pytest.mark.parametrize("word", ["stop", "pause"])
def test_stop_while_a_tool_runs_holds_before_the_next_one(
    word: str, table: Table, chat: Process
) -> None:
    """Stopped, it was said, and the agent worked on in its turn.

    https://github.com/code-yeongyu/oh-my-openagent/issues/1919
    """
    chat.asks(0)
    call, hook = ToolCall("run_command", {"command": "make"}), chat.manager.hook
    assert chat.call(lambda: hook.rage_before_tool_call(session=chat.session, call=call)) is None
    Process(table, session("shell", "s9")).says(f"/rage {word}")
    held = now(table)
    outcome = ToolOutcome("error", "made nothing")
    chat.call(lambda: hook.rage_after_tool_call(session=chat.session, call=call, outcome=outcome))
    blocked = chat.call(lambda: hook.rage_before_tool_call(session=chat.session, call=call))
    assert isinstance(blocked, Block)
    assert chat.asks(0) is None
    assert not isinstance(chat.rests(Turn(LINE)), Continue)
    assert now(table) == held


@pytest.mark.parametrize("way", ["interrupt", "pause", "end"])
def test_after_an_interrupt_nothing_is_injected_until_a_person_says_so(
    way: str, table: Table, chat: Process
) -> None:
    """Esc only started the agent anew; the whole program had to be killed.

    https://github.com/code-yeongyu/oh-my-openagent/issues/577
    """
    chat.asks(0)
    if way == "interrupt":
        assert isinstance(chat.rests(Turn("", "interrupt")), Stop)
    elif way == "pause":
        chat.says("/rage pause")
    else:
        chat.ends()
    held = now(table)
    assert held.run.status == "paused"
    same = Process(table, session("chat", "s1"))
    for process in (chat, same, Process(table, session("chat", "s2"))):
        process.begins()
        assert process.says("what is the time?") is None
        assert (process.asks(0), process.rests(Turn("Noon."))) == (None, None)
        assert process.tool({"path": "x"}, ToolOutcome("ok")) is None
    assert now(table) == held
    said = same.says("/rage resume")
    assert said is not None
    assert said.then is not None
    assert same.asks(0) is not None


@pytest.mark.parametrize("word", ["stop", "pause"])
def test_one_word_covers_every_way_to_go_on(word: str) -> None:
    """One of several mechanisms went on injecting: here there is one, the tick.

    https://github.com/code-yeongyu/oh-my-openagent/issues/1919
    """
    for where in ("during", "judging", "acting"):
        sim = Simulation(always(V.PASS), [GATED, OPEN])
        say = lambda s: s.says(word)  # noqa: E731
        sim.turn(replace(TurnScript("t1", SLICE), **{where: say}))  # type: ignore[arg-type]
        assert sim.state.run.status in (RunStatus.STOPPED, RunStatus.PAUSED), where
        before = sim.state.run.status
        for script in (TurnScript("t2", SLICE), TurnScript(), TurnScript(reason="error")):
            assert sim.turn(script).run.status is before
        assert len(sim.commits) <= 1
