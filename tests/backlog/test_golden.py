"""Small markdown backlogs and what they must come to: one tree, one target, one answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from rage_plugin.core.model import ItemSpec

from .conftest import MakeRoom, Tree


@dataclass(frozen=True)
class Golden:
    """A tree, a target, and the items in order: id → the fields that are looked at."""

    tree: Tree
    target: str
    items: dict[str, dict[str, Any]]
    title: str = ""
    warnings: tuple[str, ...] = ()
    sources: tuple[str, ...] = field(default=())


EPIC = {
    "backlog/5-epic.md": "# Parse dates\n\n- [ ] #6\n- [ ] #7 the lexer\n",
    "backlog/006-parser.md": "# Parser\nDepends on #7 and #8.\n\n- [ ] it parses\n- [x] it is fast\n",
    "backlog/7-lexer.md": "---\npriority: high\ngates: [tests/t.py::x]\n---\nNo heading.\n",
    "backlog/8-done.md": "---\nstatus: wontfix\n---\n",
    "backlog/9.md": "",
}
LIST = {
    "BACKLOG.md": (
        "# Backlog\n\n"
        "- [ ] #5 Epic\n"
        "  Why it matters.\n"
        "  - [ ] #6 First (depends on #7)\n"
        "    - [ ] it works\n"
        "  - [ ] #7 Second\n"
        "- [x] Already there\n"
        "- plain bullet, no item\n"
        "- [ ] Add the Parser, please\n"
        "  Blocked by: #5\n\n"
        "  - [ ] round trip\n"
    )
}

CASES: dict[str, Golden] = {
    "an epic is its open parts in order of work": Golden(
        EPIC,
        "#5",
        {
            "7": {"title": "lexer", "parent": "5", "priority": 1, "gates": ("tests/t.py::x",)},
            "6": {
                "title": "Parser",
                "depends_on": ("7",),
                "criteria": ("it parses", "it is fast"),
            },
        },
        title="Parse dates",
    ),
    "epic: is the same": Golden(EPIC, "epic:5", {"7": {}, "6": {}}),
    "the backlog is every open item": Golden(
        EPIC, "backlog", {"7": {}, "6": {}, "9": {"title": "Item 9"}}, title="backlog"
    ),
    "one item brings what it waits for": Golden(EPIC, "6", {"7": {}, "6": {}}, title="Parser"),
    "a file's name is an item": Golden(EPIC, "006-parser", {"7": {}, "6": {}}),
    "a file is its item": Golden(EPIC, "backlog/7-lexer.md", {"7": {}}, title="lexer"),
    "a closed item leaves nothing to do": Golden(EPIC, "#8", {}, title="done"),
    "a list's parts, text and criteria": Golden(
        LIST,
        "backlog",
        {
            "7": {"title": "Second", "parent": "5"},
            "6": {"depends_on": ("7",), "criteria": ("it works",), "parent": "5"},
            "add-the-parser-please": {
                "title": "Add the Parser, please",
                "depends_on": ("6", "7"),
                "criteria": ("round trip",),
                "body": "Blocked by: #5\n\n- [ ] round trip",
                "source": "BACKLOG.md",
            },
        },
    ),
    "bullets only group tasks": Golden(
        {
            "TODO.md": "- Phase 1\n  - [ ] #2 B\n- Phase 2\n  1. [ ] #1 Update dependencies\n"
            "     - [ ] #3 C\n"
        },
        "backlog",
        {"2": {}, "3": {"parent": "1", "depends_on": ()}},
    ),
    "a task without an id is found by its words": Golden(
        {"todo.md": "- [ ] Größe prüfen\n"}, "größe-prüfen", {"größe-prüfen": {}}
    ),
    "dotted numbers sort as numbers": Golden(
        {f"issues/5.{n}-x.md": "" for n in (10, 9, 2)},
        "backlog",
        {"5.2": {}, "5.9": {}, "5.10": {}},
    ),
    "words, priorities and spaces": Golden(
        {
            "docs/backlog/neue Funktion.md": "---\npriority: low\n---\n",
            "docs/backlog/login.md": "",
            "docs/backlog/00.md": "---\npriority: P0\nlabels: a, b\n---\n",
        },
        "backlog",
        {
            "0": {"priority": 0, "labels": ("a", "b")},
            "login": {"priority": 2},
            "neue-Funktion": {"priority": 3, "title": "neue Funktion"},
        },
    ),
    "front matter names everything": Golden(
        {
            "backlog/x.md": (
                "---\nid: 010\ntitle: Fix #3: the `a: b` case\nstatus: In Progress\n"
                "depends_on: [#4, '5', 006]\nparent: #9\npriority: -2\nlabels: [1, x]\n"
                "gates:\n  - tests/test_a.py::test[1-a]\nunseal: tests/conftest.py\n"
                "owner: me\n---\n"
            ).replace("Fix #3: the `a: b` case", "'Fix #3: the `a: b` case'"),
            "backlog/4.md": "---\nstatus: done\n---",
            "backlog/5.md": "---\nstatus: closed\n---",
            "backlog/6.md": "",
        },
        "10",
        {
            "6": {},
            "10": {
                "title": "Fix #3: the `a: b` case",
                "depends_on": ("6",),
                "parent": "9",
                "priority": -2,
                "labels": ("1", "x"),
                "gates": ("tests/test_a.py::test[1-a]",),
                "unseal": ("tests/conftest.py",),
            },
        },
        warnings=(
            "backlog/x.md:12: the key `owner` is not read",
            "There is no item 9, which is named as a parent",
        ),
    ),
    "an estimate is as much of it as a person wrote": Golden(
        {
            "backlog/1.md": "---\nestimate: {tokens: 20k, files: 3, lines: 120}\n---\n",
            "backlog/2.md": "---\nestimate:\n  tokens: 1_500\n---\n",
            "backlog/3.md": "---\nestimate: {tokens: '2M', lines: 010}\n---\n",
            "backlog/4.md": "---\nestimate:\n---\n",
        },
        "backlog",
        {
            "1": {"expected_tokens": 20_000, "expected_files": 3, "expected_lines": 120},
            "2": {"expected_tokens": 1_500, "expected_files": 0, "expected_lines": 0},
            "3": {"expected_tokens": 2_000_000, "expected_files": 0, "expected_lines": 10},
            "4": {"expected_tokens": 0, "expected_files": 0, "expected_lines": 0},
        },
    ),
    "ids in front matter need no quotes": Golden(
        {
            "backlog/1.md": "---\ndepends_on: #2, #3 # note\ntitle: After #2\n---\n",
            "backlog/2.md": "---\ndepends_on:\n- #3\n---\n",
            "backlog/3.md": "---\ndepends_on: # none yet\n---\n",
        },
        "1",
        {"3": {}, "2": {}, "1": {"title": "After #2"}},
    ),
    "an epic's tick closes who says nothing, its own word wins": Golden(
        {
            "backlog/1.md": "- [x] #2\n- [x] #3\n",
            "backlog/2.md": "",
            "backlog/3.md": "---\nstatus: open\n---\n",
        },
        "#1",
        {"3": {}},
    ),
    "who needs an epic needs its parts, a part needs what its epic needs": Golden(
        {
            "backlog/1.md": "Depends on #4 and #2.\n- [ ] #2\n- [ ] #3\n",
            "backlog/2.md": "",
            "backlog/3.md": "",
            "backlog/4.md": "",
            "backlog/5.md": "Blocked by #1",
        },
        "#5",
        {
            "4": {},
            "2": {"depends_on": ("4",)},
            "3": {"depends_on": ("4",)},
            "5": {"depends_on": ("2", "3")},
        },
    ),
    "epics nest": Golden(
        {"backlog/1.md": "", "backlog/2.md": "Parent: #1", "backlog/3.md": "parent: #2"},
        "epic:1",
        {"3": {"parent": "2"}},
    ),
    "gates of an epic are named as not run": Golden(
        {"backlog/1.md": "---\ngates: [t.py]\n---\n- [ ] #2\n", "backlog/2.md": ""},
        "#1",
        {"2": {"gates": ()}},
        warnings=("backlog/1.md: gates of an epic are not run: give them to its parts",),
    ),
    "sources replace the built-in places": Golden(
        {"backlog/1.md": "", "plan/2.md": "", "work.md": "- [ ] #3 Three\n"},
        "backlog",
        {"2": {}, "3": {"title": "Three"}},
        sources=("plan", "work.md"),
    ),
    "a file outside the backlog is read with it": Golden(
        {"backlog/1.md": "", "notes/new idea.md": "# New\nDepends on #1\n- [ ] works\n"},
        "notes/new idea.md",
        {"1": {}, "new-idea": {"title": "New", "criteria": ("works",)}},
        title="New",
    ),
    "a list outside the backlog brings its own ids": Golden(
        {"plan.md": "# Plan\n- [ ] #1 One\n- [ ] #2 Two, depends on #1\n"},
        "plan.md",
        {"1": {"source": "plan.md"}, "2": {}},
        title="plan.md",
    ),
    "an epic outside the backlog lists its items": Golden(
        {"backlog/1.md": "# One", "plan.md": "# Plan\n- [ ] #1 One\n"},
        "plan.md",
        {"1": {"source": "backlog/1.md"}},
        title="Plan",
    ),
    "a folder is all of it, READMEs and drafts apart": Golden(
        {
            "backlog/sub/1.md": "",
            "backlog/sub/README.md": "",
            "backlog/sub/_template.md": "",
            "backlog/sub/.x.md": "",
            "backlog/sub/img.png": b"\0",
            "backlog/2.MD": "",
        },
        "backlog/sub",
        {"1": {}},
    ),
    "CRLF and a BOM": Golden(
        {"backlog/1.md": b"\xef\xbb\xbf---\r\ntitle: T\r\nid: 7\r\n---\r\n# H\r\n- [ ] a\r\n"},
        "#7",
        {"7": {"title": "T", "body": "# H\r\n- [ ] a\r\n", "criteria": ("a",)}},
    ),
    "a list with nothing in it": Golden(
        {"TODO.md": "# Later\n\nwords\n"},
        "backlog",
        {},
        warnings=("TODO.md: no item in it: write `- [ ] #1 Title` lines",),
    ),
    "an empty folder": Golden({"backlog/.keep": ""}, "backlog", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, make_room: MakeRoom) -> None:
    """F032, F034: what is read, in which order, and what was noticed."""
    case = CASES[name]
    room = make_room(case.tree, *case.sources)
    specs = room.resolve(case.target)
    assert [s.id for s in specs] == list(case.items)
    for spec in specs:
        expected = case.items[spec.id]
        assert {k: getattr(spec, k) for k in expected} == expected
    assert all(isinstance(s, ItemSpec) and not s.closed for s in specs)
    assert room.warnings == case.warnings
    if case.title:
        assert room.title(case.target) == case.title


def test_the_targets_spelling_does_not_matter(make_room: MakeRoom) -> None:
    """F004: one target, however it is typed."""
    room = make_room(EPIC)
    spelled = ["#6", "6", "006", "#006", " 6 ", "'#6'", "backlog/006-parser.md", "006-parser.md"]
    answers = [[s.id for s in room.resolve(t)] for t in spelled[:-1]]
    assert answers == [["7", "6"]] * len(answers)
