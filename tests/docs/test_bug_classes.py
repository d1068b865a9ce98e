"""The page of bug classes: every kind has a line, and every test that a line names is there."""

from __future__ import annotations

import ast
import json
import re

import pytest

from .pages import ROOT

PAGE = (ROOT / "docs/bug-classes.md").read_text("utf-8")
REPORTS = ROOT / "tests/corpora/bug-reports.jsonl"
LINE = re.compile(r"^\| \[([\w-]+)\]\(([^)]+)\) \|.*\| (`[^`]+`|–) \|$", re.MULTILINE)
LATER = {"protocol-mismatch", "worker-output-flood", "stale-reference"}
"""Kinds of what is not built yet: hosts of others, workers, forges."""


def kinds() -> dict[str, list[str]]:
    """The urls of each kind of the public reports."""
    found: dict[str, list[str]] = {}
    for line in REPORTS.read_text("utf-8").splitlines():
        report = json.loads(line)
        found.setdefault(report["kind"], []).append(report["url"])
    return found


def test_every_kind_has_a_line_with_one_of_its_reports() -> None:
    told = {kind: url for kind, url, _ in LINE.findall(PAGE)}
    known = kinds()
    assert set(told) == set(known)
    assert all(told[kind] in urls for kind, urls in known.items())


def test_only_what_is_not_built_has_no_test() -> None:
    assert {kind for kind, _, test in LINE.findall(PAGE) if test == "–"} == LATER


@pytest.mark.parametrize(
    "named", sorted({test.strip("`") for _, _, test in LINE.findall(PAGE) if test != "–"})
)
def test_a_test_that_the_page_names_is_there(named: str) -> None:
    file, _, name = named.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    functions = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    assert name in functions if name else any(f.startswith("test_") for f in functions)
