"""A run explained from its log: every transition with its evidence, and what would move it on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rage_plugin.core import lifecycle, limits
from rage_plugin.core.config import Limits
from rage_plugin.core.events import Event
from rage_plugin.core.model import PauseReason, Phase, RunStatus
from rage_plugin.core.rows import put_run
from rage_plugin.why import QUIET, lines, why

from .story import RUN, Story, missed, spec


def moves(story: Story) -> list[str]:
    return why(story.store, RUN)["moves"]


def named(story: Story) -> list[str]:
    """The evidence of each kind in the order of writing: its short id."""
    return [f"{e.kind} {e.id}" for e in story.store.evidence(RUN)]


def test_an_item_from_its_beginning_to_its_commit(tmp_path: Path) -> None:
    """F159: each step, its evidence, the checks behind the judgement, and nothing to do."""
    story = Story(tmp_path, [spec("5", "Sums are wrong")], target="#5")
    story.done("5", "a1" * 20, "c1" * 20)
    story.tell(lifecycle.finished(story.state, "The item is done", story.now))
    review, proposal, change, judgement, commit = named(story)
    assert lines(why(story.store, RUN)).split("\n") == [
        f"RAGE run {RUN} (#5) is done; times are UTC",
        "  2026-01-01",
        "  09:00:00 embedded started #5",
        "  09:01:00 Reviewed 5: Sums are wrong",
        f"      evidence: {review}, tree bbbbbbbbbbbb",
        "  09:02:00 The agent proposed one slice of 5: “make 5 work” (analyze → generate)",
        f"      evidence: {proposal}, tree bbbbbbbbbbbb",
        "  09:03:00 1 file changed for 5: M src/5.py (generate → execute)",
        f"      evidence: {change}, tree a1a1a1a1a1a1",
        "  09:04:00 Checked 5: tests/test_5.py::test_it was red and is green",
        f"      evidence: {judgement}, tree a1a1a1a1a1a1",
        "      red: pytest -q: fail, 3 passed, 1 failed (from the cache)",
        "      green: pytest -q: pass, 4 passed, 0 failed",
        "  09:07:00 5 is done, commit c1c1c1c1c1c1",
        f"      evidence: {judgement}, tree a1a1a1a1a1a1, {commit}, tree a1a1a1a1a1a1",
        "  09:08:00 Done: The item is done",
        "What moves it on:",
        "  Nothing: the run is done.",
        "    git log rage/work",
    ]


def test_pauses_words_and_limits_are_steps(tmp_path: Path) -> None:
    """F159: what a person did stands among the rest, with its figures."""
    story = Story(tmp_path, [spec("5", "Sums")], target="#5")
    story.begin("5")
    story.correct("use pathlib")
    story.pause(PauseReason.LIMIT_TOKENS, "12,300 tokens used of 10,000 for the run")
    more = limits.dump(Limits(run_tokens=60_000, wall_seconds=None))
    story.tell(lifecycle.limits_changed(story.state, more, "A person changed the limits"))
    story.resume()
    story.tell(lifecycle.alerted(story.state, 50_000, 60_000))
    story.block(PauseReason.CRITICAL_ISSUE, "SQL is made of what a user types")
    blocker = story.state.blockers[-1]
    story.tell(lifecycle.ruled(story.state, blocker, "confirmed", story.now))
    story.stop()
    told = [step["text"] for step in why(story.store, RUN)["steps"]]
    assert told[2:] == [
        "Correction 2: use pathlib",
        "Paused, LIMIT_TOKENS: 12,300 tokens used of 10,000 for the run",
        "A person changed the limits: 60,000 tokens, 200 turns, no limit of seconds",
        "Resumed by embedded",
        "50,000 of 60,000 tokens of the run are spent",
        "Paused, CRITICAL_ISSUE: 5: SQL is made of what a user types",
        "A person decided CRITICAL_ISSUE of 5: confirmed",
        "Stopped: A person stopped the run",
    ]
    assert moves(story) == [
        'Nothing: the run is over. rage run "#5" begins a new one with what is left.'
    ]


def test_an_approach_that_was_given_up_is_told(tmp_path: Path) -> None:
    """F159, F014: the error that came again, and where the work of a failed item lies."""
    story = Story(tmp_path, [spec("6", "Sums are slow")])
    story.failed("6", f"refs/rage/{RUN}/6")
    told = lines(why(story.store, RUN, last=3))
    assert (
        "Checked 6: fail: tests/test_6.py::test_it: assert 3 == 4 (the same error again: "
        "this approach is retired) (execute → analyze)\n"
    ) in told
    assert f"its changes are kept under refs/rage/{RUN}/6\n" in told
    assert "      green: pytest -q: fail, 3 passed, 1 failed\n" in told


def test_only_the_last_steps_are_told_and_the_rest_is_counted(tmp_path: Path) -> None:
    """F159: what merely counts is no step, however much of it there is."""
    story = Story(tmp_path, [spec("5", "Sums")])
    story.begin("5")
    for _ in range(30):
        story.tell(lifecycle.seen({}))
        story.turn(100)
    data = why(story.store, RUN, last=1)
    assert [s["kind"] for s in data["steps"]] == ["item_began"]
    assert data["earlier"] == 1
    assert "  1 earlier events; more with --last 2\n" in lines(data)
    kinds = {s["kind"] for s in why(story.store, RUN, last=1_000)["steps"]}
    assert not kinds & QUIET
    assert why(story.store, RUN, last=1_000)["earlier"] == 0


def test_every_transition_of_the_log_is_a_step_with_all_its_evidence(tmp_path: Path) -> None:
    """F159: against the log and the tables: none is left out, each piece is what it is called."""
    story = Story(tmp_path, [spec("5", "Sums"), spec("6", "Slow"), spec("7", "Round")])
    story.done("5", "a1" * 20, "c1" * 20)
    story.failed("6", "")
    story.unverified("7", "a3" * 20, "c3" * 20)
    log = [e for e in story.store.events(RUN) if e.kind not in QUIET]
    steps = why(story.store, RUN, last=1_000)["steps"]
    assert [s["seq"] for s in steps] == [e.seq for e in log]
    assert [[e["id"] for e in s["evidence"]] for s in steps] == [
        list(e.event.evidence) for e in log
    ]
    known = {e.id: {"id": e.id, "kind": e.kind, "tree": e.tree} for e in story.store.evidence(RUN)}
    assert all(e == known[e["id"]] for s in steps for e in s["evidence"])
    runs = [(c.cell, str(c.verdict), c.passed, c.failed) for c in story.store.checks(RUN)]
    told = [(c["cell"], c["verdict"], c["passed"], c["failed"]) for s in steps for c in s["checks"]]
    assert told == runs
    assert len(runs) > 3


def test_what_an_active_run_needs(tmp_path: Path) -> None:
    """F159: the change, its place, the gate, what failed last and how much is left."""
    story = Story(tmp_path, [spec("6", "Slow", gates=("tests/test_6.py",)), spec("7", "R", "6")])
    assert moves(story)[0] == "The end of the turn: then RAGE begins #6."
    story.begin("6")
    assert moves(story)[0] == "The agent names one slice of #6, or changes the workspace."
    story.slice("cache the sums", scope=("src/sums.py",))
    gate = "tests/test_6.py must go from red to green, and what passed before must still pass."
    assert moves(story) == [
        "The agent's change for #6 in src/sums.py; then RAGE runs the checks.",
        gate,
        "Left for #6: 3 attempts, 12 turns, 200,000 tokens.",
        "#7 waits for #6",
    ]
    story.change("e1" * 20, "src/sums.py")
    assert moves(story)[0] == "RAGE runs the checks of #6 at the turn's end."
    story.judge(missed("e1" * 20, "tests/test_6.py::test_it"))
    story.turn(1_000)
    assert moves(story)[1:4] == [
        gate,
        "The last check: fail: tests/test_6.py::test_it: assert 3 == 4. "
        "It takes another tree than that one.",
        "Left for #6: 2 attempts, 11 turns, 199,000 tokens.",
    ]
    reached = limits.Reached(PauseReason.LIMIT_TOKENS, "9,000 tokens used of 10,000 for the run")
    story.tell(lifecycle.call_refused(story.state, reached))
    assert "The run waits at the turn's end: 9,000 tokens used of 10,000 for the run." in moves(
        story
    )


def test_a_paused_run_moves_on_by_its_dialogue(tmp_path: Path) -> None:
    """F159, F085: the same words and commands as at the pause; others that wait are named."""
    story = Story(tmp_path, [spec("7", "Round"), spec("8", "Next", "7"), spec("9", "Last")])
    story.unverified("7", "a3" * 20, "c3" * 20)
    story.begin("9")
    story.block(PauseReason.SPEC_DEVIATION, "it answers 201")
    data = why(story.store, RUN)
    assert data["next"] == ["rage resolve spec", "rage resolve code"]
    assert data["next_in_chat"] == ["/rage resolve spec", "/rage resolve code"]
    assert data["moves"] == [
        "Item 9 deviates from what was agreed: it answers 201.",
        "spec: what was agreed holds, and the agent takes it back; code: it stands as it is.",
        "#7 waits for your word: rage accept 7 | rage reject 7 --why TEXT",
        "#8 waits for #7 (unverified)",
    ]
    story.pause(PauseReason.UNVERIFIED, "")
    assert why(story.store, RUN)["next"][0] == "rage accept 7"


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize("phase", [Phase.ANALYZE, Phase.GENERATE, Phase.EXECUTE])
def test_no_text_breaks_an_explanation(tmp_path: Path, status: RunStatus, phase: Phase) -> None:
    """F156, F159: of every status and phase, with words that anybody wrote."""
    odd = "x\x1b[31m\nWhat moves it on:\u202e\x00 y" + "z" * 2_000
    item = f"5{odd[:40]}"
    story = Story(tmp_path, [spec(item, odd), spec("6", odd, item)])
    story.begin(item)
    story.correct(odd)
    story.slice(odd, scope=(odd, odd, odd, odd))
    story.change("e1" * 20, odd)
    story.judge(missed("e1" * 20, odd[:150]))
    if phase is not Phase.ANALYZE:
        story.slice(odd)
    if phase is Phase.EXECUTE:
        story.change("e2" * 20, odd)
    assert story.state.run.phase is phase
    reason = PauseReason.SCOPE if status is RunStatus.PAUSED else None
    put = put_run(RUN, {"status": status, "pause_reason": reason, "pause_detail": odd})
    story.tell(Event(f"run_{status}", odd, (put,)))
    data = why(story.store, RUN)
    told = lines(data)
    assert all(c.isprintable() or c == "\n" for c in told)
    assert told.split("\n").count("What moves it on:") == 1
    assert max(len(line) for line in told.split("\n")) < 1_000
    assert len(told) < 12_000
    json.dumps(data)
