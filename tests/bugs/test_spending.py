"""Limits that nobody raises but a person, and what must cost nothing: idle runs, checks, briefs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin.core.config import Limits
from rage_plugin.core.events import Event, decode
from rage_plugin.core.judgement import Judgement
from rage_plugin.core.model import (
    ItemSpec,
    ItemState,
    PauseReason,
    Proposal,
    RunStatus,
    Verification,
)
from rage_plugin.hookspecs import Continue, ModelRequest, Stop, ToolOutcome, Turn

from ..core.simulated import Simulation, TurnScript, judgement
from ..core.test_decide import GATED, OPEN, SLICE, TURNS, V, always
from ..e2e.project import FIXED, Project
from ..machine.processes import Process, Table, session
from ..machine.world import Deliver, code_of
from .chats import Chat
from .runs import LINE, now

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))
BOUNDS = {"limits", "items_limit", "expected_tokens", "expected_files", "expected_lines"}
"""Columns that say how far a run may go."""
PERSONS = {"run_started", "limits", "confirmed"}
"""Events that set them, each written for a person's word alone."""


def raised(events: Sequence[Event]) -> list[str]:
    """Kinds of events that move a limit."""
    return [e.kind for e in events if any(BOUNDS & set(put.values) for put in e.puts)]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(TURNS, min_size=1, max_size=12),
    st.dictionaries(st.sampled_from(["t1", "t2", "t3", "t4", "t5"]), st.sampled_from(list(V))),
    st.lists(st.sampled_from(["", "", "resume", "correct go on", "pause"]), max_size=12),
)
def test_a_limit_is_never_raised_without_a_person(
    turns: list[TurnScript], verdicts: dict[str, Verification], words: list[str]
) -> None:
    """At the most iterations it was set 10 higher in silence, and the same was tried again.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/2090
    """

    def judge(item: str, base: str, tree: str) -> Judgement:
        found = verdicts.get(tree, V.FAIL)
        return judgement(base, tree, V.FAIL if found is V.NONE else found)

    bounds = Limits(max_iterations=3, run_iterations=5, item_tokens=1500, run_tokens=2500)
    sim = Simulation(judge, [GATED, OPEN], bounds)
    first = sim.state.run.limits
    for number, script in enumerate(turns):
        word = words[number] if number < len(words) else ""
        waits = sim.state.run.status is RunStatus.PAUSED
        if word and (waits if word == "resume" else sim.state.run.status is RunStatus.ACTIVE):
            sim.says(word)
        sim.turn(script)
        assert sim.state.run.limits == first
        assert sim.state.run.iteration <= 5
        assert all(item.iteration <= 3 for item in sim.state.items.values())
    assert raised(sim.log) == ["run_started"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_in_every_log_a_limit_moves_by_a_persons_word_alone(path: Path) -> None:
    """The same over every kept log: each kind of event that there is.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/2090
    """
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    events = [decode(r["kind"], json.dumps(r["body"]) if isinstance(r["body"], dict) else r["body"])
              for r in rows if "kind" in r]  # fmt: skip
    assert events
    assert set(raised(events)) <= PERSONS


def test_the_same_failure_again_and_again_ends_at_the_limit() -> None:
    """The failing approach went on for as long as the limit was moved.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/2090
    """
    sim = Simulation(always(V.FAIL), [GATED], Limits(max_iterations=3, max_fix_attempts=99))
    for number in range(20):
        sim.turn(TurnScript(f"t{number}", SLICE))
    assert sim.state.run.pause_reason is PauseReason.LIMIT_ITERATIONS
    assert sim.state.run.iteration == 3
    for number in range(20, 30):
        sim.says("resume")
        sim.turn(TurnScript(f"t{number}", SLICE))
    assert sim.state.run.iteration == 3, "a bare resume is no permission for another turn"


def test_more_budget_keeps_what_was_spent_and_where_the_item_stood() -> None:
    """A run that had met its budget could never go on; one began from nothing.

    https://github.com/openai/codex/issues/34215
    """
    sim = Simulation(always(V.FAIL), [GATED], Limits(run_tokens=100, max_fix_attempts=5))
    sim.turn(TurnScript("t1", SLICE, tokens=120))
    before = sim.state
    assert before.run.pause_reason is PauseReason.LIMIT_TOKENS
    state = sim.says("resume --budget +500")
    assert state.run.status is RunStatus.ACTIVE
    assert json.loads(state.run.limits)["run_tokens"] == 600
    assert (state.run.tokens, state.run.iteration) == (120, 1)
    assert (state.items, state.judged_trees, state.failures, state.run.id) == (
        before.items,
        before.judged_trees,
        before.failures,
        before.run.id,
    )


def test_an_item_whose_record_never_lands_is_not_picked_again_and_again(
    table: Table, chat: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit failed each time, so the queue gave out the same item for eight hours.

    https://github.com/anthropics/claude-code/issues/57719
    """

    def fails(self: Deliver, **how: object) -> str:
        from rage_plugin.core.errors import RageError

        raise RageError("The pre-commit hook refused")

    monkeypatch.setattr(Deliver, "commit", fails)
    chat.asks(0)
    table.world.files[code_of("1")] = "green"
    assert isinstance(chat.rests(Turn(LINE)), Stop)
    turns = 0
    for _ in range(6):
        said = chat.says("/rage resume")
        assert said is not None
        if said.then is not None:
            turns += 1
            chat.asks(0)
            chat.rests(Turn(LINE))
    state = now(table)
    assert (state.run.status, state.run.pause_reason) == ("paused", "COMMIT_FAILED")
    assert turns == 0, "the work is there: no further turn is paid for"
    assert table.world.briefs == 1


def test_a_failing_item_is_left_for_the_others() -> None:
    """The item of the highest priority failed for ever, and nothing else was begun.

    https://github.com/anthropics/claude-code/issues/57719
    """
    others = [replace(OPEN, id=str(n)) for n in (6, 7)]
    verdicts = {"5": V.FAIL, "6": V.PASS, "7": V.PASS}
    sim = Simulation(lambda i, b, t: judgement(b, t, verdicts[i]), [GATED, *others])
    worked: list[str] = []
    for number in range(30):
        if sim.state.run.status is not RunStatus.ACTIVE:
            sim.says("resume")
        if sim.state.run.status is not RunStatus.ACTIVE:
            continue
        worked.append(sim.state.run.current_item or "")
        sim.turn(TurnScript(f"t{number}", SLICE))
    assert worked == ["5", "5", "5", "6", "7"]
    assert sim.state.items["5"].state is ItemState.FAILED
    assert sim.commits == [("6", "verified"), ("7", "verified")]


def test_the_same_tree_is_never_checked_twice_for_an_item(table: Table, chat: Process) -> None:
    """Outputs that were the same byte for byte were examined over and over.

    https://github.com/anthropics/claude-code/issues/87178
    """
    trees = ["red 1", "red 1", "red 2", "red 1", "red 2"]
    for content in trees:
        chat.asks(0)
        table.world.files[code_of("1")] = content
        chat.rests(Turn(LINE))
        chat.says("/rage pause")
        chat.says("/rage resume")
    seen = [(item, tree) for item, tree, _ in table.world.judged]
    assert len(seen) == len(set(seen)) == 2


def test_an_identical_candidate_costs_no_process_after_a_crash(
    project: Project, real_chat: Callable[..., Chat]
) -> None:
    """The same tree and command are answered from what is known, in a new process too.

    https://github.com/anthropics/claude-code/issues/87178
    """
    source = project.root / "calc" / "__init__.py"
    runs = project.home / "runs"
    project.write(
        {"tests/test_add.py": "from pathlib import Path\n\nfrom calc import add\n\n\n"
         f"def test_add():\n    with Path({str(runs)!r}).open('a') as log:\n"
         "        log.write('x')\n    assert add(2, 3) == 5\n"}
    )  # fmt: skip
    project.commit("count the runs")
    first = real_chat("mine")
    first.answer("/rage start #5")
    first.asks()
    wrong = FIXED.replace("a + b", "a * b")
    source.write_text(wrong)
    first.rests()
    once = runs.read_text()
    assert once
    first.answer("/rage stop")
    project.git("restore", ".")
    again = real_chat("mine")
    again.answer("/rage start #5")
    again.asks()
    source.write_text(wrong)
    again.rests()
    assert runs.read_text() == once
    assert "test_add fails" in again.answer("/rage report"), "it was judged all the same"


def test_an_idle_run_calls_no_model(table: Table) -> None:
    """Nothing was to be done, and the watch was woken every three minutes for it.

    https://github.com/gastownhall/gastown/issues/3675
    """
    chat = Process(table, session("chat", "s1"))
    said = chat.says("/rage start #0")
    assert said is not None
    assert (said.then, said.error) == (None, False)
    assert now(table).run.status == "done"
    for _ in range(50):
        table.world.wall += 180
        table.world.passed += 180
        chat.begins()
        assert (chat.asks(0), chat.rests(Turn(""))) == (None, None)
    assert table.world.briefs == 0


def test_a_paused_run_calls_no_model_however_long_it_waits(table: Table, chat: Process) -> None:
    """Waiting for a person is free.

    https://github.com/gastownhall/gastown/issues/3675
    """
    chat.says("/rage pause")
    held, briefs = now(table), table.world.briefs
    for _ in range(50):
        table.world.wall += 3_600
        chat.begins()
        chat.says("/rage status")
        assert (chat.asks(0), chat.rests(Turn(""))) == (None, None)
    assert (now(table), table.world.briefs) == (held, briefs)


def test_the_brief_comes_first_whole_and_once_an_item(table: Table, chat: Process) -> None:
    """The worker had begun to look around before its task arrived.

    https://github.com/gastownhall/gastown/issues/319
    """
    world = table.world
    assert world.briefs == 1
    told = []
    for content in ("red 1", "red 2", "green"):
        chat.asks(0)
        world.files[code_of("1")] = content
        after = chat.rests(Turn(LINE))
        assert isinstance(after, Continue)
        told.append(after.text.startswith("BRIEF"))
    assert told == [False, False, True], "only the next item's first message is a brief"
    assert world.briefs == 2


def test_a_resume_in_the_same_state_tells_the_task_once(table: Table, chat: Process) -> None:
    """The payload was injected a second time after each compaction.

    https://github.com/gastownhall/beads/issues/6273
    """
    chat.asks(0)
    for _ in range(3):
        chat.says("/rage pause")
        said = chat.says("/rage resume")
        assert said is not None
        assert (said.then or "").count("BRIEF") == 1
        for _ in range(3):
            assert str(chat.asks(0)).count("PACKET") == 1
    assert isinstance(chat.rests(Turn("")), Continue)
    again = Process(table, session("chat", "s1"))
    chat.kill()
    before = table.world.briefs
    again.begins()
    again.begins()
    assert table.world.briefs == before, "a chat that begins again is told nothing by that alone"


def test_side_calls_and_children_are_told_nothing(table: Table, chat: Process) -> None:
    """Children got the parent's orders, and had children of their own.

    https://github.com/anthropics/claude-code/issues/69578
    """
    hook = chat.manager.hook.rage_before_model_call
    for request in (ModelRequest("side"), ModelRequest("worker"), ModelRequest("main", depth=1)):
        assert chat.call(lambda r=request: hook(session=chat.session, request=r)) is None  # type: ignore[misc]
    assert chat.asks(0) is not None


@pytest.mark.parametrize("notice", [
    "limit reached, resets 1pm", "429 Too Many Requests", "You've hit your usage limit."])  # fmt: skip
def test_a_quota_notice_is_no_work_and_no_attempt(notice: str) -> None:
    """It was counted as "issues fixed", and the next review began, three times in 20 seconds.

    https://github.com/umputun/ralphex/issues/47
    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/777
    """
    for error in (True, False):
        sim = Simulation(always(V.PASS), [GATED, OPEN])
        for _ in range(6):
            how = {"reason": "error", "error": notice} if error else {"text": notice}
            sim.turn(TurnScript(**how))  # type: ignore[arg-type]
        item = sim.state.items["5"]
        assert (item.attempts, item.state, sim.commits) == (0, ItemState.IN_PROGRESS, [])
        assert sim.state.run.current_item == "5"
        reason = PauseReason.PROVIDER_ERRORS if error else PauseReason.NO_PROGRESS
        assert (sim.state.run.status, sim.state.run.pause_reason) == (RunStatus.PAUSED, reason)
        assert sim.state.run.iteration == (3 if error else 4)


def test_provider_errors_take_no_attempt_of_an_item_that_failed_before() -> None:
    """Errors of the provider used up the tries of the work.

    https://github.com/Yeachan-Heo/oh-my-claudecode/issues/777
    """
    sim = Simulation(always(V.FAIL), [GATED], Limits(provider_errors=9, noop_turns=2))
    sim.turn(TurnScript("t1", SLICE))
    assert sim.state.items["5"].attempts == 1
    for number in range(8):
        sim.turn(TurnScript(f"half {number}", reason="error", error="503"))
    assert sim.state.items["5"].attempts == 1
    assert sim.state.run.noop_turns == 0
    assert sim.state.run.status is RunStatus.ACTIVE


def test_checks_that_cannot_run_park_nothing_for_good(table: Table, chat: Process) -> None:
    """One failure of the environment parked the issue for ever.

    https://github.com/macanderson/stella/issues/5621
    """
    chat.asks(0)
    table.world.files[code_of("1")] = "blocked"
    assert isinstance(chat.rests(Turn(LINE)), Stop)
    state = now(table)
    assert state.run.pause_reason == "CHECK_COULD_NOT_RUN"
    assert (state.items["1"].attempts, state.items["1"].state) == (0, "IN_PROGRESS")
    table.world.files[code_of("1")] = "green"
    chat.says("/rage resume")
    assert now(table).items["1"].state == "DONE"


def test_work_of_a_turn_that_was_cut_off_is_looked_at() -> None:
    """Twenty commits, then the timeout: scored as nothing.

    https://github.com/frankbria/ralph-claude-code/issues/198
    """
    sim = Simulation(always(V.PASS), [GATED])
    assert sim.turn(TurnScript("t1", SLICE, reason="limit")).run.status is RunStatus.DONE
    half = Simulation(always(V.FAIL), [ItemSpec("5", "t", "b", "s", gates=("tests/test_x.py",))])
    state = half.turn(TurnScript("t1", Proposal("x"), reason="limit"))
    assert (state.items["5"].attempts, state.items["5"].state) == (1, ItemState.IN_PROGRESS)
    assert half.tree == "t1", "partial work is kept"


def test_a_tool_that_fails_says_nothing_of_the_budget(table: Table, chat: Process) -> None:
    """Failed calls are observations: no attempt, no limit, no pause follows from one.

    https://github.com/frankbria/ralph-claude-code/issues/2
    """
    chat.asks(0)
    before = now(table)
    for number in range(30):
        chat.tool({"path": f"{number}"}, ToolOutcome("error", "Error: fatal error"))
    assert now(table) == before
