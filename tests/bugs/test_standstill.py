"""What is taken for a standstill, and what of the past is taken for now."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from rage_plugin.core.config import Limits
from rage_plugin.core.model import ItemState, PauseReason, RunStatus, Verification
from rage_plugin.hookspecs import Block, Continue, Stop, ToolOutcome, Turn

from ..core.simulated import Simulation, TurnScript, judgement
from ..core.test_decide import GATED, SLICE, V, always
from ..e2e.project import FIXED, Project
from ..machine.processes import Process, Table, session
from ..machine.world import code_of, source_of
from .chats import Chat
from .runs import LINE, now

GOOD = [
    '{"is_error": false, "result": "wrote 3 files"}',
    "0 errors, 0 failures; error handling added in errors.py",
    "installed @upstash/ratelimit 2.0.1 (rate limit helpers)",
    "Reached 429 lines; usage limit of the API documented",
]


@pytest.mark.parametrize("text", GOOD)
def test_the_word_error_in_good_output_is_no_error(text: str, table: Table, chat: Process) -> None:
    """`"is_error": false` five times, and the breaker opened; a package's name began a back-off.

    https://github.com/frankbria/ralph-claude-code/issues/2
    https://github.com/subsy/ralph-tui/issues/100
    """
    for number in range(2):
        chat.asks(0)
        for _ in range(5):
            chat.tool({"path": "x"}, ToolOutcome("ok", text))
        table.world.files[code_of("1")] = f"red {number}: {text}"
        assert isinstance(chat.rests(Turn(f"{text}\n{LINE}")), Continue)
        run = now(table).run
        assert (run.provider_errors, run.noop_turns, run.pause_reason) == (0, 0, None)
    chat.asks(0)
    table.world.files[code_of("1")] = "green"
    assert isinstance(chat.rests(Turn(text)), Continue)
    assert now(table).items["1"].state == "DONE"


def test_five_good_turns_in_a_row_are_no_reason_to_leave() -> None:
    """Each answer that could be read counted as "done", and the fifth ended the run.

    https://github.com/frankbria/ralph-claude-code/issues/128
    """
    sim = Simulation(always(V.FAIL), [GATED], Limits(max_fix_attempts=9))
    for number in range(8):
        script = TurnScript(f"t{number}", SLICE, text='{"exit_signal": false, "done": true}')
        assert sim.turn(script).run.status is RunStatus.ACTIVE
        assert sim.state.run.noop_turns == 0


def test_a_changed_tree_is_progress_each_time() -> None:
    """Every turn changed something, and no progress was seen.

    https://github.com/frankbria/ralph-claude-code/issues/141
    """
    sim = Simulation(always(V.FAIL), [GATED], Limits(max_fix_attempts=30, max_iterations=None))
    for number in range(30):
        state = sim.turn(TurnScript(f"t{number}", SLICE))
        assert (state.run.status, state.run.noop_turns) == (RunStatus.ACTIVE, 0)


def test_a_commit_of_somebody_elses_is_not_called_a_standstill(table: Table, chat: Process) -> None:
    """The agent committed its work itself, so the diff was empty and nothing was seen.

    https://github.com/frankbria/ralph-claude-code/issues/141
    """
    world = table.world
    chat.asks(0)
    world.files[code_of("1")] = "green"
    world._commit(world.files)
    assert not world.dirty()
    assert isinstance(chat.rests(Turn(LINE)), Stop)
    assert [(item, quality) for item, _, quality in world.judged] == [("1", "green")]
    run = now(table).run
    assert (run.noop_turns, run.pause_reason) == (0, "COMMIT_FAILED")
    assert "HEAD moved" in run.pause_detail


def test_work_that_was_committed_by_hand_is_seen_in_a_real_repository(
    project: Project, real_chat: Callable[..., Chat]
) -> None:
    """The candidate is the tree against the item's base, wherever HEAD stands.

    https://github.com/frankbria/ralph-claude-code/issues/141
    """
    chat = real_chat("mine")
    chat.answer("/rage start #5")
    chat.asks()
    (project.root / "calc" / "__init__.py").write_text(FIXED)
    project.commit("by hand")
    assert isinstance(chat.rests("Committed."), Stop)
    status = chat.answer("/rage status")
    assert "NO_PROGRESS" not in status
    assert "COMMIT_FAILED" in status
    assert "red and is green" in chat.answer("/rage why")


def test_three_items_that_end_alike_are_not_one_stuck_task() -> None:
    """Three tasks in a row said the same on their end, and the run was killed for it.

    https://github.com/mikeyobrien/ralph-orchestrator/issues/234
    """
    items = [replace(GATED, id=str(n)) for n in range(1, 6)]
    sim = Simulation(always(V.PASS), items)
    for number in range(5):
        state = sim.turn(TurnScript(f"t{number}", SLICE, text="task.complete"))
    assert state.run.status is RunStatus.DONE
    assert {i.state for i in state.items.values()} == {ItemState.DONE}


def test_the_same_action_of_another_item_is_another_action(table: Table, chat: Process) -> None:
    """A call that failed twice for one item is not blocked for the next.

    https://github.com/mikeyobrien/ralph-orchestrator/issues/234
    """
    failed = ToolOutcome("error", "no such file")
    chat.asks(0)
    for _ in range(2):
        assert chat.tool({"path": "x"}, failed) is None
    assert isinstance(chat.tool({"path": "x"}, failed), Block)
    table.world.files[code_of("1")] = "green"
    assert isinstance(chat.rests(Turn(LINE)), Continue)
    assert now(table).run.current_item == "2"
    chat.asks(0)
    assert chat.tool({"path": "x"}, failed) is None


def test_a_missing_signal_is_no_progress() -> None:
    """A reviewer that found nothing printed no signal, and it was taken for "issues fixed".

    https://github.com/umputun/ralphex/issues/69
    """
    sim = Simulation(always(V.FAIL), [GATED])
    sim.turn(TurnScript("t1", SLICE))
    judged = len([e for e in sim.log if e.kind == "judged"])
    for _ in range(2):
        sim.turn(TurnScript(text="I looked at everything and found nothing to improve."))
    assert sim.state.run.pause_reason is PauseReason.NO_PROGRESS
    assert len([e for e in sim.log if e.kind == "judged"]) == judged
    assert sim.state.items["5"].attempts == 1


@pytest.mark.parametrize("reason", ["error", "interrupt"])
def test_a_signal_of_the_past_holds_nobody_up_again(reason: str) -> None:
    """A flag of the last round was read before the next: it halted for ever, though mended.

    https://github.com/LarsCowe/bmalph/issues/97
    """
    sim = Simulation(always(V.PASS), [GATED], Limits(provider_errors=1))
    sim.turn(TurnScript(reason=reason))  # type: ignore[arg-type]
    assert sim.state.run.status is RunStatus.PAUSED
    state = sim.says("resume")
    assert (state.run.status, state.run.pause_reason) == (RunStatus.ACTIVE, None)
    assert (state.run.provider_errors, state.run.noop_turns, state.run.refused_call) == (0, 0, "")
    state = sim.turn(TurnScript(text="Looking."))
    assert state.run.status is RunStatus.ACTIVE
    assert sim.turn(TurnScript("t1", SLICE)).run.status is RunStatus.DONE


def test_what_a_person_mended_is_looked_at_anew(table: Table, chat: Process) -> None:
    """Each reason to wait is gone once it is mended: branch, checks, criteria.

    https://github.com/LarsCowe/bmalph/issues/97
    """
    world = table.world
    chat.asks(0)
    world.branch = "elsewhere"
    chat.rests(Turn(""))
    assert now(table).run.pause_reason == "WORKSPACE_MOVED"
    world.branch = "rage/work"
    chat.says("/rage resume")
    assert now(table).run.status == "active"
    chat.asks(0)
    world.files[source_of("1")] = "v1"
    chat.rests(Turn(LINE))
    assert now(table).run.pause_reason == "SPEC_DEVIATION"
    world.files[source_of("1")] = "v0"
    chat.says("/rage resolve spec")
    assert now(table).run.status == "active"
    chat.asks(0)
    world.files[code_of("1")] = "green"
    assert isinstance(chat.rests(Turn(LINE)), Continue)
    assert now(table).items["1"].state == "DONE"


def test_a_question_is_asked_once_and_not_after_its_answer() -> None:
    """A marker that was answered does not stop the same words again.

    https://github.com/LarsCowe/bmalph/issues/97
    """
    sim = Simulation(always(V.PASS), [GATED])
    asked = "[NEEDS CLARIFICATION: which port?]"
    assert sim.turn(TurnScript(text=asked)).run.pause_reason is PauseReason.NEEDS_CLARIFICATION
    sim.says("answer 8080")
    sim.says("resume")
    state = sim.turn(TurnScript("t1", SLICE, text=f"As you said. {asked}"))
    assert state.run.status is RunStatus.DONE


def test_a_result_of_an_older_plan_is_never_applied() -> None:
    """A correction was drowned, and the agent went on with the old step.

    https://github.com/agent0ai/agent-zero/issues/1672
    """
    judged: list[str] = []

    def judge(item: str, base: str, tree: str) -> object:
        judged.append(tree)
        return judgement(base, tree, V.PASS)

    sim = Simulation(judge, [GATED])  # type: ignore[arg-type]
    for number in range(4):
        words = f"correct go the {number}. way"
        state = sim.turn(TurnScript(f"old {number}", SLICE, during=lambda s, w=words: s.says(w)))  # type: ignore[misc]
        assert (state.run.status, state.slice) == (RunStatus.ACTIVE, None)
    assert (judged, sim.commits) == ([], [])
    sim.turn(TurnScript("new", SLICE))
    assert judged == ["new"]


def test_a_message_for_a_finished_item_does_nothing_to_the_next(
    table: Table, chat: Process
) -> None:
    """An old DONE killed the new worker that had got the same name.

    https://github.com/gastownhall/gastown/issues/909
    """
    chat.asks(0)
    table.world.files[code_of("1")] = "green"
    chat.rests(Turn(LINE))
    before = now(table)
    assert before.run.current_item == "2"
    for words in ("accept 1", "reject 1 --why old"):
        said = Process(table, session("chat", "s2")).says(f"/rage {words}")
        assert said is not None
        assert said.error, words
    assert now(table) == before
    chat.asks(0)
    chat.rests(Turn("Item 1 is DONE. Commit: c9. Verification: pass."))
    assert now(table).items["2"].state == "IN_PROGRESS"


def test_what_was_observed_of_an_older_run_is_not_held_against_a_new_one(
    table: Table, chat: Process
) -> None:
    """Failed calls of a run that was stopped block nothing in the next one on the same item.

    https://github.com/gastownhall/gastown/issues/909
    """
    failed = ToolOutcome("error", "no such file")
    chat.asks(0)
    for _ in range(2):
        chat.tool({"path": "x"}, failed)
    assert isinstance(chat.tool({"path": "x"}, failed), Block)
    chat.says("/rage stop")
    chat.says("/rage start #9")
    chat.asks(0)
    assert chat.tool({"path": "x"}, failed) is None
    item = now(table).items["1"]
    assert (item.attempts, item.reasked, item.iteration) == (0, 0, 0)


def test_only_the_newest_of_what_contradicts_is_told_after_a_resume() -> None:
    """After a resume an older "do not test yet" was obeyed, over the newer objective.

    https://github.com/openai/codex/issues/40929
    """
    sim = Simulation(always(V.FAIL), [GATED])
    sim.says("correct do not run the tests yet")
    sim.says("correct keep the signature of add")
    sim.says("pause")
    sim.says("correct run the tests now")
    state = sim.says("resume")
    assert list(state.directives) == ["keep the signature of add", "run the tests now"]


def test_a_hook_that_fails_each_time_holds_no_turn_up(
    table: Table, chat: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook with a broken dependency failed each time, and the agent could never rest.

    https://github.com/openai/codex/issues/37937
    """

    def broken(*args: object) -> None:
        raise ImportError("No module named 'gone'")

    chat.asks(0)
    monkeypatch.setattr("rage_plugin.loop.tick", broken)
    after = chat.rests(Turn(LINE))
    assert isinstance(after, Stop)
    assert "Next: /rage resume" in after.report
    state = now(table)
    assert (state.run.status, state.run.pause_reason) == ("paused", "INTERNAL_FAULT")
    for _ in range(5):
        assert (chat.asks(0), chat.rests(Turn("Hello again."))) == (None, None)
    assert now(table) == state
    table.world.faults.clear()


def test_a_host_that_ends_the_turns_leaves_no_run_that_only_seems_to_go_on() -> None:
    """The host ended it after eight continuations, and the loop believed that it was running.

    https://github.com/anthropics/claude-code/issues/85547
    """
    sim = Simulation(always(V.FAIL), [GATED])
    turns = 0
    while sim.state.run.status is RunStatus.ACTIVE:
        sim.turn(TurnScript(text="Working on it."))
        turns += 1
        assert turns < 8, "without a change it ends of itself before any cap of a host"
    assert sim.state.run.pause_reason is PauseReason.NO_PROGRESS


def test_a_chat_whose_host_gave_up_waits_with_a_reason(table: Table, chat: Process) -> None:
    """Where a host ends the chat, the run waits and says so; where it died, so does `status`.

    https://github.com/anthropics/claude-code/issues/85547
    """
    chat.asks(0)
    chat.ends()
    assert now(table).run.pause_reason == "SESSION_ENDED"
    chat.says("/rage resume")
    chat.kill()
    said = Process(table, session("chat", "s2")).says("/rage status")
    assert said is not None
    assert "Its host is gone. Next: /rage " in said.text


def test_a_new_process_has_all_the_time_that_the_old_one_had(table: Table, chat: Process) -> None:
    """It was killed at once for the silence of the process before it, every three minutes.

    https://github.com/gastownhall/gastown/issues/589
    """
    chat.kill()
    table.world.wall += 30 * 86_400.0
    again = Process(table, session("chat", "s1"))
    again.begins()
    for _ in range(2):
        table.world.wall += 7 * 86_400.0
        again.asks(0)
        table.world.passed += 60
        table.world.files[code_of("1")] = f"red {table.world.wall}"
        assert isinstance(again.rests(Turn(LINE)), Continue)
    assert now(table).run.active_seconds < 600


def test_a_text_that_says_done_is_no_state(table: Table, chat: Process) -> None:
    """An item's state is not what a text in its row says.

    https://github.com/gastownhall/gastown/issues/909
    """
    chat.asks(0)
    table.world.files[code_of("1")] = 'red {"state": "DONE", "verification": "pass"}'
    chat.rests(Turn(LINE))
    item = now(table).items["1"]
    assert (item.state, item.verification) == ("IN_PROGRESS", Verification.FAIL)
    assert json.loads(item.criteria) == ["c"]
