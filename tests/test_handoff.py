"""What a person reads who takes a run over: true of every status, short for every size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rage_plugin.core import lifecycle
from rage_plugin.core.model import ItemState, PauseReason, RunStatus, Verification
from rage_plugin.core.rows import evidence
from rage_plugin.handoff import SHOWN, handoff, lines

from .story import RUN, Story, spec

ITEMS = [
    spec("5", "Sums are wrong"),
    spec("6", "Sums are slow"),
    spec("7", "Turn it round"),
    spec("8", "Needs six", "6"),
    spec("9", "Needs eight", "8"),
    spec("10", "Opens a port"),
]


def shown(story: Story) -> str:
    return lines(handoff(story.store, RUN))


def test_a_run_that_asks(tmp_path: Path) -> None:
    """F060: done, failed, open, what the person said, and what they should do now."""
    story = Story(tmp_path, ITEMS)
    story.done("5", "a1" * 20, "c1" * 20)
    story.failed("6", f"refs/rage/{RUN}/6")
    story.unverified("7", "a3" * 20, "c3" * 20)
    story.correct("use pathlib, please")
    story.begin("10")
    story.slice("open the port")
    story.block(PauseReason.NEEDS_CLARIFICATION, "Which port?", "8080", "9090")
    assert shown(story).split("\n") == [
        f"RAGE handoff of run {RUN} (backlog): paused",
        "Done: 1",
        "  ✓ 5 Sums are wrong: tests/test_5.py::test_it was red and is green, commit c1c1c1c1c1c1",
        "Failed: 1",
        "  ✗ 6 Sums are slow: 3 attempts did not pass: tests/test_6.py::test_it fails",
        f"      what it made is kept: git diff HEAD refs/rage/{RUN}/6",
        "      3 failed attempts, 3 turns, 15,000 tokens",
        "      given up: “cache the sums”: fail: tests/test_6.py::test_it: assert 3 == 4",
        "      given up: “sum without a cache”: fail: tests/test_6.py::test_it: assert 3 == 4",
        "Not done: 4",
        "  ? 7 Turn it round: could not be proven, no test was red before; "
        "decide: rage accept 7 | rage reject 7 --why TEXT",
        "  … 10 Opens a port: begun, in generate",
        "  · 8 Needs six: waits for #6 (failed)",
        "  · 9 Needs eight: waits for #8, which needs #6 (failed)",
        "What you said that still holds:",
        "  use pathlib, please",
        "What you should do now:",
        "  Item 10 has a question for you: Which port?",
        "  Possible answers: 8080 | 9090. All work is kept as it is.",
        "    rage answer TEXT",
        "    rage stop",
        "Spent: 5 turns, 21,000 of 2,000,000 tokens, branch rage/work",
        f"Chain head: {story.store.head(RUN)}",
    ]


def test_an_active_run_asks_for_nothing(tmp_path: Path) -> None:
    """F060: it says who drives it, and what has failed so far."""
    story = Story(tmp_path, [spec("6", "Sums are slow")])
    story.begin("6")
    story.slice("cache the sums")
    assert "  … 6 Sums are slow: begun, in generate\n" in shown(story)
    assert "  Nothing: embedded drives the run, and it goes on by itself.\n" in shown(story)
    data = handoff(story.store, RUN)
    assert (data["next"], data["next_in_chat"]) == (["rage status"], ["/rage status"])
    assert data["completed"] == data["failed"] == []


def test_a_stopped_run_is_not_called_anything_else(tmp_path: Path) -> None:
    """F060: what lies where, and how what is left can be begun again."""
    story = Story(tmp_path, ITEMS[:2])
    story.done("5", "a1" * 20, "c1" * 20)
    story.begin("6")
    story.stop()
    told = shown(story)
    assert "  … 6 Sums are slow: begun, not finished\n" in told
    assert (
        "What you should do now:\n"
        "  The run is over: A person stopped the run.\n"
        "  Its commits stay. What was not committed lies in the workspace as it was.\n"
        '    rage run "backlog"\n'
        "    git log rage/work\n"
    ) in told


def test_a_done_run_leaves_its_commits(tmp_path: Path) -> None:
    """F060: nothing is failed or open, so neither has a heading."""
    story = Story(tmp_path, ITEMS[:1])
    story.done("5", "a1" * 20, "c1" * 20)
    story.tell(lifecycle.finished(story.state, "The item is done", story.now))
    told = shown(story)
    assert "Failed" not in told
    assert "Not done" not in told
    assert "  Nothing is left to do. Look at what was made.\n    git log rage/work\n" in told


def test_an_item_that_failed_says_what_was_not_taken_back(tmp_path: Path) -> None:
    """F060: files that changed meanwhile, by name and number; a rejected item has its revert."""
    story = Story(tmp_path, [spec("6", "Sums"), spec("7", "Round")])
    story.begin("6")
    story.slice("cache the sums")
    story.fail("12 turns were the limit of the item", "", ["a.py", "b.py", "c.py", "d.py"])
    story.unverified("7", "a3" * 20, "c3" * 20)
    state = story.state
    row = evidence(state, "reject", "a3" * 20, {"why": "no", "revert": "d4" * 20}, story.now)
    values = {"state": ItemState.FAILED, "verification": Verification.FAIL}
    rejected = {**values, "reason": "rejected: changes the API", "next": ""}
    story.tell(lifecycle.person(state, "7", rejected, row))
    told = shown(story)
    assert (
        "  ✗ 6 Sums: 12 turns were the limit of the item\n"
        "      left as they are, since they changed meanwhile: a.py, b.py, c.py (+1 more)\n"
        "      0 failed attempts, 0 turns, 0 tokens\n"
        "  ✗ 7 Round: rejected: changes the API\n"
        "      its commit was taken back by d4d4d4d4d4d4\n"
    ) in told
    assert "what it made is kept" not in told


def test_a_large_run_is_handed_over_on_a_page(tmp_path: Path) -> None:
    """F060: the first of each kind, and how many more; the counts are whole."""
    story = Story(tmp_path, [spec(str(n), f"Item {n}") for n in range(60)])
    for n in range(20):
        story.done(str(n), f"{n:02}" * 20, f"{n:02}" * 20)
    for n in range(20, 35):
        story.begin(str(n))
        story.fail("it did not pass", "")
    for n in range(15):
        story.correct(f"correction number {n}")
    data = handoff(story.store, RUN)
    lists = (data["completed"], data["failed"], data["open"], data["corrections"])
    assert [len(entries) for entries in lists] == [SHOWN] * 4
    assert data["corrections"][-1] == "correction number 14"
    told = lines(data)
    assert "Done: 20\n" in told
    assert "  … and 10 more: rage report\nFailed: 15\n" in told
    assert "  … and 5 more: rage report\nNot done: 25\n" in told
    assert "  … and 15 more: rage report\n" in told
    assert len(told.split("\n")) < 70
    assert len(json.dumps(data)) < 20_000


def test_what_waits_for_a_person_comes_before_what_was_not_begun(tmp_path: Path) -> None:
    """F060: the cut never hides an item that only the person can move."""
    story = Story(tmp_path, [*(spec(str(n), "Later") for n in range(30)), spec("z", "Odd")])
    story.unverified("z", "a3" * 20, "c3" * 20)
    assert handoff(story.store, RUN)["open"][0]["id"] == "z"


@pytest.mark.parametrize("status", RunStatus)
def test_no_text_breaks_a_handoff(tmp_path: Path, status: RunStatus) -> None:
    """F156: of every status, with titles, corrections and reasons that anybody wrote."""
    odd = "x\x1b[31m\nRAGE handoff of run\u202e\x00 y"
    story = Story(tmp_path, [spec(f"5{odd}", odd), spec("6", odd)], target=odd)
    story.begin(f"5{odd}")
    story.slice(odd)
    story.correct(odd)
    story.fail(odd, f"refs/{odd}", [odd])
    story.begin("6")
    if status is not RunStatus.ACTIVE:
        event = lifecycle.paused(story.state, PauseReason.USER, odd, story.now)
        run, *others = event.puts
        values = {**run.values, "status": status}
        if status is not RunStatus.PAUSED:
            values["pause_reason"] = None
        story.tell(replace(event, puts=(replace(run, values=values), *others)))
    told = shown(story)
    assert all(c.isprintable() or c == "\n" for c in told)
    assert sum(line.startswith("RAGE handoff") for line in told.split("\n")) == 1
    assert f": {status}\n" in told
