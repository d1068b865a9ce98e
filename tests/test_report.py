"""What a person reads at the end of a run; counts are of all names, not of those that were kept."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from rage_plugin import report as reports
from rage_plugin.core import dialogue, facts, lifecycle
from rage_plugin.core.config import Limits
from rage_plugin.core.events import Event, Put
from rage_plugin.core.judgement import Judgement, Verdict
from rage_plugin.core.model import PauseReason, Verification
from rage_plugin.report import WORDS, ItemReport, Report, for_shell, lines, report

from .story import RUN, Story, spec

TESTS = tuple(f"tests/test_x.py::test_{n:03}" for n in range(120))


def shown(red: int, preexisting: int) -> str:
    """The report of an item with so many names, after they went through an evidence row."""
    judgement = Judgement(
        verification=Verification.PASS,
        verdict=Verdict.PASS,
        base_tree="b",
        tree="c",
        message="",
        red=TESTS[:red],
        preexisting=TESTS[:preexisting],
    )
    kept = json.loads(json.dumps(facts.judgement_data(judgement)))
    assert all(len(kept.get(name, [])) <= facts.NAMES + 1 for name in ("red", "preexisting"))
    item = ItemReport(
        id="5",
        title="Sums",
        status="done",
        state="DONE",
        verification="pass",
        origin="given",
        evidence=[],
        red=kept.get("red", []),
        preexisting=kept.get("preexisting", []),
        regressions=[],
        unstable=[],
        warnings=[],
        commits=["a" * 40],
        attempts=0,
        iterations=1,
        tokens=1,
        reason="",
        next="",
        criteria_not_checked=[],
        waits_for=[],
        avoid=[],
    )
    return lines(
        Report(
            run="r",
            target="#5",
            status="done",
            reason="The item is done",
            branch="",
            items=[item],
            tokens=1,
            iterations=1,
            next="",
            head="",
            counts={"done": 1},
            budget={"tokens": None, "iterations": None, "seconds": None},
            choice="",
            next_in_chat="",
        )
    )


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "test_000 was red and is green"),
        (2, "test_000 (+1 more) were red and are green"),
        (50, "test_000 (+49 more) were red and are green"),
        (51, "test_000 (+50 more) were red and are green"),
        (120, "test_000 (+119 more) were red and are green"),
    ],
)
def test_the_count_of_red_tests_is_the_real_one(count: int, words: str) -> None:
    """F155: neither the cut of the row nor that of the line changes what is counted."""
    assert words in shown(count, 0)


def test_failures_of_before_are_named_and_counted() -> None:
    """F164: the first by name, the others by their number; a script reads fifty."""
    names = "; ".join(TESTS[:3])
    assert f"failed before and still: {names}\n" in shown(1, 3)
    assert f"failed before and still: {names} (+117 more)\n" in shown(1, 120)


def mixed(folder: Path) -> Story:
    """A run with an item of every kind, and a question."""
    items = [
        spec("5", "Sums are wrong", gates=("tests/test_5.py",)),
        spec("6", "Sums are slow"),
        spec("7", "Turn it round"),
        spec("8", "Needs six", "6"),
        spec("9", "Needs eight", "8", "5"),
        spec("10", "Needs seven", "7"),
        spec("11", "Left out"),
        spec("12", "Opens a port"),
        spec("13", "Comes after", "12"),
    ]
    story = Story(folder, items)
    story.done("5", "a1" * 20, "c1" * 20)
    story.failed("6", f"refs/rage/{RUN}/6")
    story.unverified("7", "a3" * 20, "c3" * 20)
    left_out = {"state": "SKIPPED", "reason": "a person left it out"}
    story.tell(Event("skipped", "Left out", (Put("items", (RUN, "11"), left_out),)))
    story.begin("12")
    story.slice("open the port")
    story.block(PauseReason.NEEDS_CLARIFICATION, "Which port?", "8080", "9090")
    return story


def test_every_item_is_told_as_the_database_has_it(tmp_path: Path) -> None:
    """F145: done, failed, unverified, waiting and skipped, each with its reason."""
    story = mixed(tmp_path)
    data = report(story.store, RUN)
    told = {i["id"]: (i["status"], i["reason"], i["waits_for"]) for i in data["items"]}
    assert told == {
        "5": ("done", "tests/test_5.py::test_it was red and is green", []),
        "6": ("failed", "3 attempts did not pass: tests/test_6.py::test_it fails", []),
        "7": ("unverified", "no test was red before", []),
        "8": ("pending", "waits for #6 (failed)", ["6"]),
        "9": ("pending", "waits for #8, which needs #6 (failed)", ["8"]),
        "10": ("pending", "waits for #7 (unverified)", ["7"]),
        "11": ("skipped", "a person left it out", []),
        "12": ("in_progress", "", []),
        "13": ("pending", "waits for #12", ["12"]),
    }
    with sqlite3.connect(tmp_path / "rage.db") as database:
        rows = database.execute("SELECT state, verification, tokens FROM items").fetchall()
        run = database.execute("SELECT tokens, iteration FROM runs").fetchone()
    database.close()
    unproven = ("IN_PROGRESS", "unverified")
    kept = Counter("unverified" if r[:2] == unproven else r[0].lower() for r in rows)
    assert data["counts"] == {word: kept[word] for word in WORDS}
    assert sum(data["counts"].values()) == len(rows) == len(data["items"])
    assert (data["tokens"], data["iterations"]) == run
    assert sum(i["tokens"] for i in data["items"]) == sum(r[2] for r in rows) == data["tokens"]
    assert data["budget"] == {"tokens": 2_000_000, "iterations": 200, "seconds": 28_800}


def test_the_lines_of_a_run_that_asks(tmp_path: Path) -> None:
    """F145: the whole report as a person reads it."""
    story = mixed(tmp_path)
    assert lines(report(story.store, RUN)).split("\n") == [
        f"RAGE run {RUN} (backlog): paused",
        "  NEEDS_CLARIFICATION: 12: Which port? - 8080 | 9090",
        "  Possible answers: 8080 | 9090. All work is kept as it is.",
        "  ✓ 5 Sums are wrong: done, tests/test_5.py::test_it was red and is green, "
        "commit c1c1c1c1c1c1",
        "  ✗ 6 Sums are slow: failed, 3 attempts did not pass: tests/test_6.py::test_it fails",
        "      not machine-checked: it works",
        "      given up: cache the sums; sum without a cache",
        f"      next: git diff HEAD refs/rage/{RUN}/6",
        "  ? 7 Turn it round: unverified, commit c3c3c3c3c3c3, no test was red before",
        "      not machine-checked: it works",
        "      next: rage accept 7 | rage reject 7 --why TEXT",
        "  · 8 Needs six: pending, waits for #6 (failed)",
        "      not machine-checked: it works",
        "  · 9 Needs eight: pending, waits for #8, which needs #6 (failed)",
        "      not machine-checked: it works",
        "  · 10 Needs seven: pending, waits for #7 (unverified)",
        "      not machine-checked: it works",
        "  … 11 Left out: skipped, a person left it out",
        "      not machine-checked: it works",
        "  … 12 Opens a port: in progress",
        "      not machine-checked: it works",
        "  · 13 Comes after: pending, waits for #12",
        "      not machine-checked: it works",
        "  9 items: 1 done, 1 failed, 1 unverified, 1 in progress, 4 pending, 1 skipped",
        "  5 turns, 21,000 of 2,000,000 tokens",
        "  branch rage/work",
        f"  chain head {story.store.head(RUN)}",
        "  next: rage answer TEXT | rage stop",
    ]


@pytest.mark.parametrize("reason", PauseReason)
def test_the_next_command_is_the_dialogues(tmp_path: Path, reason: PauseReason) -> None:
    """F145, F085: what a paused run says to do is one thing, in a chat, a shell and a script."""
    story = Story(tmp_path, [spec("5", "Sums")], target="#5")
    story.begin("5")
    story.pause(reason, "It is so")
    said = dialogue.dialogue(story.state)
    data = report(story.store, RUN)
    assert data["next_in_chat"] == " | ".join(said.commands[:2])
    assert data["next"] == for_shell(data["next_in_chat"], "#5")
    assert "/rage" not in data["next"] + data["choice"]
    if said.commands[0] == "/rage resume":
        assert data["next"].startswith('rage run "#5" | ')


def test_a_shell_goes_on_with_run_and_a_chat_with_resume(tmp_path: Path) -> None:
    """F055: the last line holds a command that works where it is read."""
    story = Story(tmp_path, [spec("5", "Sums")], target="#5")
    story.begin("5")
    story.pause(PauseReason.LIMIT_TOKENS, "12,300 tokens used of 10,000 for the run")
    data = report(story.store, RUN)
    assert data["next"] == 'rage run "#5" --budget +50k | rage stop'
    last = lines(data).rsplit("\n", 1)[1]
    assert last == f"  next: {data['next']} (in a chat: /rage resume --budget +50k)"


def test_an_empty_queue_is_a_success(tmp_path: Path) -> None:
    """F145: a run without items is done and asks for nothing."""
    story = Story(tmp_path, [])
    story.tell(lifecycle.finished(story.state, "Nothing to do", story.now))
    data = report(story.store, RUN)
    assert (data["status"], data["reason"], data["items"]) == ("done", "Nothing to do", [])
    assert set(data["counts"].values()) == {0}
    assert "  0 items\n  0 turns, 0 of 2,000,000 tokens\n" in lines(data)


def test_an_unlimited_budget_is_told_as_none(tmp_path: Path) -> None:
    """F117: no figure is made up where there is no limit."""
    story = Story(tmp_path, [spec("5", "Sums")], bounds=Limits(run_tokens=None))
    data = report(story.store, RUN)
    assert data["budget"]["tokens"] is None
    assert "  0 turns, 0 tokens\n" in lines(data)


def test_a_run_that_is_over_points_to_its_commits(tmp_path: Path) -> None:
    """F145: of a stopped run what was not finished is not called done."""
    story = Story(tmp_path, [spec("5", "Sums"), spec("6", "More")])
    story.done("5", "a1" * 20, "c1" * 20)
    story.begin("6")
    story.stop()
    data = report(story.store, RUN)
    assert (data["status"], data["next"]) == ("stopped", "git log rage/work")
    assert [i["status"] for i in data["items"]] == ["done", "in_progress"]
    assert "  2 items: 1 done, 1 in progress\n" in lines(data)


def test_odd_texts_neither_break_the_lines_nor_change_the_data(tmp_path: Path) -> None:
    """F156, F145: titles and ids come from anybody; scripts get them exactly."""
    odd = "Sums\x1b[2J\nRAGE run x: done\u202e" + "x" * 200
    story = Story(tmp_path, [spec("5\n6", odd)], target="#5")
    story.begin("5\n6")
    story.pause(PauseReason.CHECK_COULD_NOT_RUN, odd)
    data = report(story.store, RUN)
    assert data["items"][0]["title"] == odd
    shown = lines(data)
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert sum(line.lstrip().startswith("RAGE run") for line in shown.split("\n")) == 1
    assert reports.status_line(story.state).isprintable()


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("#5", '"#5"'),
        ("docs/my plan/", '"docs/my plan/"'),
        ("a$(id)`id`", "'a$(id)`id`'"),
        ("it's", '"it\'s"'),
    ],
)
def test_a_target_is_one_word_of_a_shell(target: str, word: str) -> None:
    """F146: spaces, and what a shell would run, are quoted."""
    shell = for_shell(f"To try again: /rage stop, then /rage start {target}.", target)
    assert shell == f"To try again: rage stop, then rage run {word}."
    assert for_shell("/rage resume --confirm", target) == f"rage run {word} --confirm"
    assert shlex.split(word) == [target]
