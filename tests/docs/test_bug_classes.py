"""The page of bug classes: every kind has a line, and every test that a line names is there."""

from __future__ import annotations

import ast
import json
import re

import pytest

from .pages import ROOT

PAGE = (ROOT / "docs" / "bug-classes.md").read_text("utf-8")
REPORTS = ROOT / "tests" / "corpora" / "bug-reports.jsonl"
LATER = {"protocol-mismatch", "worker-output-flood", "stale-reference"}
"""Kinds of what is not built yet: hosts of others, workers, forges."""
NONE = "–"


def rows() -> dict[str, tuple[str, str, list[str]]]:
    """By kind: a report's address, what holds here, and the tests that are named."""
    found: dict[str, tuple[str, str, list[str]]] = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        head = re.fullmatch(r"\[([\w-]+)\]\((\S+)\)", cells[0])
        if head is None:
            continue
        assert len(cells) == 4, line
        assert head[1] not in found, f"{head[1]} has two lines"
        named = [] if cells[3] == NONE else cells[3].split("<br>")
        assert all(re.fullmatch(r"`[^`\s]+::test_\w+`", one) for one in named), line
        found[head[1]] = (head[2], cells[2], [one.strip("`") for one in named])
    return found


ROWS = rows()
NAMED = sorted({test for _, _, tests in ROWS.values() for test in tests})


def kinds() -> dict[str, list[str]]:
    """The addresses of each kind of the public reports."""
    found: dict[str, list[str]] = {}
    for line in REPORTS.read_text("utf-8").splitlines():
        report = json.loads(line)
        found.setdefault(report["kind"], []).append(report["url"])
    return found


def test_every_kind_has_a_line_with_one_of_its_reports() -> None:
    known = kinds()
    assert sum(map(len, known.values())) >= 72
    assert set(ROWS) == set(known)
    assert all(ROWS[kind][0] in urls for kind, urls in known.items())
    assert list(ROWS) == sorted(ROWS)


def test_only_what_is_not_built_has_no_test() -> None:
    assert {kind for kind, row in ROWS.items() if not row[2]} == LATER
    assert all("comes with" in ROWS[kind][1] for kind in LATER)


@pytest.mark.parametrize("kind", ROWS)
def test_no_line_names_a_test_twice(kind: str) -> None:
    tests = ROWS[kind][2]
    assert len(tests) == len(set(tests))


@pytest.mark.parametrize("named", NAMED)
def test_a_test_that_the_page_names_is_there(named: str) -> None:
    file, _, function = named.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_every_address_that_a_test_gives_as_its_source_is_in_the_reports() -> None:
    """And every test in tests/bugs gives one, or is about what the one before it began."""
    known = {url for urls in kinds().values() for url in urls}
    for path in sorted((ROOT / "tests" / "bugs").glob("test_*.py")):
        given = re.findall(r"https://github\.com/\S+", path.read_text("utf-8"))
        assert given
        assert set(given) <= known, path.name


def test_no_sentence_of_a_report_is_copied() -> None:
    """The page has its own words: no eight words in a row are a report's."""
    words = re.findall(r"\w+", PAGE.casefold())
    told = {tuple(words[n : n + 8]) for n in range(len(words) - 7)}
    for line in REPORTS.read_text("utf-8").splitlines():
        report = json.loads(line)
        for key in ("symptom", "scenario", "expected"):
            theirs = re.findall(r"\w+", report[key].casefold())
            assert not {tuple(theirs[n : n + 8]) for n in range(len(theirs) - 7)} & told, report
