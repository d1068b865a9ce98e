"""What a person reads at the end of a run; counts are of all names, not of those that were kept."""

from __future__ import annotations

import json

import pytest

from rage_plugin.core import facts
from rage_plugin.core.judgement import Judgement, Verdict
from rage_plugin.core.model import Verification
from rage_plugin.report import ItemReport, Report, lines

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
