"""What the parser takes for text: references, criteria and bodies of one item's markdown."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rage_plugin.backlog.items import read_items
from rage_plugin.core.errors import Refused
from rage_plugin.core.model import ItemSpec


def item(text: str, name: str = "backlog/1.md") -> ItemSpec:
    (found,) = read_items(text, name)
    return found.spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Depends on #4", ["4"]),
        ("This depends on #4, #5 and #6.", ["4", "5", "6"]),
        ("DEPENDS ON: #4; #5 & #6, and #7", ["4", "5", "6", "7"]),
        ("depends-on #4/#5", ["4", "5"]),
        ("**Depends on:** **#4**, [#5](5-x.md)", ["4", "5"]),
        ("Blocked by #004 (the parser) and #login-form.", ["4", "login-form"]),
        ("Depends on #5.2.", ["5.2"]),
        ("Depends on #4,\n#5", ["4", "5"]),
        ("Depends on #4\n\nBlocked by #5", ["4", "5"]),
        ("- it depends on #4\n- > blocked by #5", ["4", "5"]),
        ("# Depends on #4\n", ["4"]),
        ("Depends on:\n- #4\n- #5 the lexer\n- words", ["4", "5"]),
        ("## Blocked by\n\n- [ ] #4\n- [x] #5\n", ["4", "5"]),
        ("# Update dependencies\n- #4\n", []),
        ("It was blocked by:\n\n1. #4\n", ["4"]),
        ("It does not depend on #4, is no longer blocked by #5", []),
        ("`depends on #4` and ```depends on #5```", []),
        ("```\nDepends on #4\n```", []),
        ("~~~md\nDepends on #4\n~~~", []),
        ("    Depends on #4", []),
        ("<!-- Depends on #4 -->", []),
        ("text <!-- Depends on #4 --> text", []),
        ("<!--\nDepends on #4\n\nBlocked by #5\n-->", []),
        ("~~Depends on #4~~", []),
        ("Depends on owner/repo#4", []),
        ("Depends on # 4, independs on #5", []),
        ("Depends on \\#4", ["4"]),
        ("Depends on 4 things", []),
    ],
)
def test_dependencies(text: str, expected: list[str]) -> None:
    """F033: what the prose says, never what code, a comment or struck-out text says."""
    assert list(item(text).depends_on) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Parent: #4", "4"),
        ("**PARENT:** #04", "4"),
        ("The parent #4", None),
        ("`Parent: #4`", None),
        ("Grandparent: #4", None),
        ("Parent: #4\n\nParent: #4", "4"),
    ],
)
def test_parent(text: str, expected: str | None) -> None:
    assert item(text).parent == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [ ] #4\n- [x] #5 done\n* [X] **#6** bold\n1. [ ] [#7](7.md)\n", ["4", "5", "6", "7"]),
        ("- [ ] phase\n  - [ ] #4\n", ["4"]),
        ("- #4\n- [ ] see #5\n- [ ] #6, #7\n", []),
        ("```\n- [ ] #4\n```\n", []),
        ("Depends on:\n- [ ] #4\n", []),
        ("# Update dependencies\n- [ ] #4\n", ["4"]),
        ("- [ ] #4: one\n- [ ] #5 - two\n- [ ] #6\n", ["4", "5", "6"]),
    ],
)
def test_parts(text: str, expected: list[str]) -> None:
    assert list(item(text).children) == expected


CRITERIA = {
    "checkboxes, ticked or not, nested or not": (
        "- [ ] one\n  - [x] two\n- three\n- [ ] #4\n- [ ]\n\n1. [ ] four\n",
        ["one", "two", "four"],
    ),
    "a checkbox over several lines, its comment and its code": (
        "- [ ] reads `a  b`\n      and <!-- hidden --> writes\n",
        ["reads `a b` and writes"],
    ),
    "struck out is withdrawn": ("- [ ] ~~old~~\n- [ ] new\n", ["new"]),
    "what is no markup stays": (
        "- [ ] returns Vec<T> and __init__ works\n",
        ["returns Vec<T> and __init__ works"],
    ),
    "in code": ("```\n- [ ] no\n```\n\n    - [ ] no\n", []),
    "a paragraph": (
        "Given a file\nWhen it is read\nAnd parsed\nThen dates come out\n\nMore words.\n",
        ["Given a file when it is read and parsed then dates come out"],
    ),
    "steps in paragraphs of their own": (
        "**Given** a file\n\n**When** read\n\n**Then** fine\n",
        ["Given a file when read then fine"],
    ),
    "two scenarios": (
        "Given a\nThen b\nGiven c\nWhen d\nThen e\nWhen f\nThen g\n",
        ["Given a then b", "Given c when d then e when f then g"],
    ),
    "a list of steps": (
        "- Given a\n- When b\n- Then c\n- other\n",
        ["Given a when b then c"],
    ),
    "one line": ("- Given a, when b, then c\n", ["Given a, when b, then c"]),
    "a named scenario": (
        "Scenario: login\nGiven a user\nThen welcome\n\nScenario: out\nWhen gone\nThen bye\n",
        ["login: Given a user then welcome", "out: When gone then bye"],
    ),
    "a gherkin fence": (
        "```gherkin\nFeature: x\n  Scenario: s\n    Given a\n    # no\n    Then b\n"
        "    | t | u |\n  Scenario: only given\n    Given z\n```\n",
        ["s: Given a then b"],
    ),
    "another fence": ("```text\nGiven a\nWhen b\nThen c\n```\n", []),
    "prose is no scenario": ("When I click, it crashes.\n\nThen I cry.\n\nGiven up.\n", []),
    "an acceptance list": (
        "# T\n- not this\n\n## Acceptance criteria:\n\n- one\n- two\n  - detail\n\n### More\n"
        "1. three\n\n## Notes\n- not that\n",
        ["one", "two", "three"],
    ),
    "a bold line above a list": ("**Acceptance Criteria**\n\n* one\n\ntext\n\n* no\n", ["one"]),
    "a step alone in an acceptance list": (
        "## Criteria\n- When it rains, it pours\n- all tests pass\n",
        ["When it rains, it pours", "all tests pass"],
    ),
    "each once": ("- [ ] a\n- [ ] a\n", ["a"]),
}


@pytest.mark.parametrize("name", CRITERIA)
def test_criteria(name: str) -> None:
    """F090: checkboxes, Given/When/Then and acceptance lists."""
    text, expected = CRITERIA[name]
    assert list(item(text).criteria) == expected


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("# A title\n", "5-x.md", "A title"),
        ("A title\n=======\n", "5-x.md", "A title"),
        ("text\n\n## #5 Fix `x`: __init__\n", "5-x.md", "Fix `x`: __init__"),
        ("# #6 stays\n", "5-x.md", "#6 stays"),
        ("> # quoted\n", "005 größe_prüfen-jetzt.md", "größe prüfen jetzt"),
        ("", "5.md", "Item 5"),
        ("#5 no heading\n", "5-x.md", "x"),
        ("---\ntitle: 2024-01-02\n---\n# H\n", "5.md", "2024-01-02"),
        ("---\ntitle: no\n---\n", "5.md", "no"),
        ("<!-- # no -->\n# yes <!-- no -->\n", "5.md", "yes"),
    ],
)
def test_title(text: str, name: str, expected: str) -> None:
    assert item(text, name).title == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("5.md", "5"),
        ("005-x.md", "5"),
        ("0.md", "0"),
        ("#5 x.md", "5"),
        ("5.2-x.md", "5.2"),
        ("5_x.markdown", "5"),
        ("3d-print.md", "3d-print"),
        ("neue Größe.md", "neue-Größe"),
        ("u\u0308ber.md", "über"),
        ("a..b.lock~1.md", "a.b.lock-1"),
    ],
)
def test_id_of_a_name(name: str, expected: str) -> None:
    assert item("", f"issues/{name}").id == expected


FRONTS = st.sampled_from(
    ["", "id: 9\n", "title: x\r\nstatus: open\r\n", "\n", "# note\n", "a: |\n  b\n"]
)
BODIES = st.text(st.sampled_from("-#ab \t\r\n[]x`~>*.:\ufeff\u2028\x0b\x00")) | st.text()


@given(front=FRONTS, body=BODIES, newline=st.sampled_from(["\n", "\r\n", "\r"]))
@example(front="", body="---\nid: 2\n---\n", newline="\n")
@example(front="", body="\n---\n---", newline="\r\n")
@example(front="id: 9\n", body="", newline="")
@settings(max_examples=300, deadline=None)
def test_the_body_is_what_the_file_says(front: str, body: str, newline: str) -> None:
    """The text after the front matter comes back character for character."""
    assume(not (newline == "\r" and body.startswith("\n")))
    (found,) = read_items(
        f"---\n{front}---{newline}{body}" if newline else f"---\n{front}---", "1.md"
    )
    assert found.spec.body == body


@given(body=BODIES)
@settings(max_examples=300, deadline=None)
def test_any_text_is_an_item_or_refused(body: str) -> None:
    """Nothing a person writes ends in a traceback, as an item or as a list."""
    for name in ("1.md", "BACKLOG.md"):
        try:
            for found in read_items(body, name):
                assert found.spec.id
                assert found.line >= 1
        except Refused as error:
            assert error.what.startswith(name)


HOSTILE = {
    "spaces": lambda n: "depends on " + " " * (20 * n) + "x",
    "mentions": lambda n: "depends on #4 " * n,
    "open brackets": lambda n: "depends on #4 (" * n,
    "reversed": lambda n: "#4 depends on " * n,
    "square": lambda n: "[" * (10 * n),
    "emphasis": lambda n: "*a " * (3 * n),
    "struck": lambda n: "~~a " * n + "a~~ " * n,
    "tasks": lambda n: "- [ ] #5 x\n" * n,
    "parts": lambda n: "- [ ] #0 x\n" + "  - [ ] #5 x\n" * n,
    "quotes": lambda n: ">" * (10 * n),
    "steps": lambda n: "Given a\n" * (3 * n),
    "lines": lambda n: "Depends on #4,\n" * n,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_text_takes_twice_the_time(name: str) -> None:
    """A text of up to 1 MiB may come from anyone: no shape of it costs quadratic time."""

    def seconds(n: int) -> float:
        text = HOSTILE[name](n)
        began = time.process_time()
        read_items(text, "1.md")
        read_items(text, "BACKLOG.md" if "[ ]" in text else "1.md")
        return time.process_time() - began

    seconds(100)
    short, long = seconds(1000), seconds(8000)
    assert long < max(0.3, 24 * short)  # 8 when linear, 64 when quadratic


def test_deep_nesting_ends() -> None:
    deep = "".join("  " * n + f"- [ ] #{n} x\n" for n in range(300))
    assert read_items(deep, "BACKLOG.md")
    assert read_items(deep, "1.md")
