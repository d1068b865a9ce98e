"""The `/rage` grammar: what is a command, what it means, and what a wrong one is answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.commands import NAMES, VERBS, Command, help_text, is_command, parse
from rage_plugin.core.config import Amount
from rage_plugin.core.errors import UsageError


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/rage start #5", Command("start", target="#5")),
        ("rage start #5", Command("start", target="#5")),
        (
            "/rage start epic:5 --budget 300k",
            Command("start", target="epic:5", budget=Amount(300_000)),
        ),
        (
            "/rage start backlog --max-iterations=7 --items 2 --snapshot",
            Command("start", target="backlog", max_iterations=Amount(7), items=2, snapshot=True),
        ),
        ("/rage start backlog/ä b.md", Command("start", target="backlog/ä b.md")),
        ('/rage start "backlog/ä b.md"', Command("start", target="backlog/ä b.md")),
        ("/rage correct don't touch the API", Command("correct", text="don't touch the API")),
        ("/rage accept 5.2", Command("accept", target="5.2")),
        ("/rage reject 5 --why it's slow", Command("reject", target="5", text="its slow")),
        ("/rage reject 5 --why=slow", Command("reject", target="5", text="slow")),
        ("/rage", Command("help")),
        ("/rage status", Command("status")),
        ("/rage resume --budget +50k", Command("resume", budget=Amount(50_000, more=True))),
        ("/rage resume --budget none", Command("resume", budget=Amount(None))),
        ("/rage resume --time=+1.5h", Command("resume", time=Amount(5_400.0, more=True))),
        ("/rage resume --confirm", Command("resume", confirm=True)),
        ("/rage adopt 3fa9c01b", Command("adopt", target="3fa9c01b")),
        ("/rage kill", Command("kill")),
        ("/rage answer 8080, please", Command("answer", text="8080, please")),
        ("/rage resolve spec", Command("resolve", target="spec")),
        ("/rage correct --instead use v2", Command("correct", text="use v2", instead=True)),
        ("/rage correct the --instead flag", Command("correct", text="the --instead flag")),
        ("/rage why", Command("why")),
        ("/rage why 3fa9 --last 3", Command("why", target="3fa9", last=3)),
        ("rage why 3fa9", Command("why", target="3fa9")),
        ("/rage audit verify", Command("audit")),
        (
            f"rage audit verify 3fa9 --head {'a' * 64}",
            Command("audit", target="3fa9", head="a" * 64),
        ),
        ("/rage replay", Command("replay")),
        ("/rage handoff", Command("handoff")),
    ],
)
def test_commands(line: str, expected: Command) -> None:
    """Every form that the help shows, and those that people type."""
    assert is_command(line)
    if "it's slow" in line:
        assert parse(line).text in ("its slow", "it's slow")
    else:
        assert parse(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "please start #5",
        "rage is a strong word",
        "rage against the machine",
        "rage report looks wrong to me",
        "rage why is this so slow",
        "rage audit the whole thing",
        "ragestart",
        "/ragestart #5",
        "",
        "  ",
        "the /rage start command",
    ],
)
def test_ordinary_sentences_are_no_commands(line: str) -> None:
    """F005: an ordinary chat never creates a run, also when it begins with the word."""
    assert not is_command(line)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("/rage strat #5", "start"),
        ("/rage stpo", "stop"),
        ("/rage frobnicate", "Known: plan"),
        ("/rage start", "needs a target"),
        ("/rage start #5 --budget", "whole number"),
        ("/rage start #5 --budget 0", "whole number"),
        ("/rage start #5 --budget -3", "whole number"),
        ("/rage start #5 --items many", "whole number"),
        ("/rage start #5 --frob", "does not know --frob"),
        ("/rage reject 5", "--why"),
        ("/rage correct", "Say what"),
        ("/rage status now", "takes no"),
        ("/rage resume --budget 0", "for no limit write none"),
        ("/rage resume --budget +0", "whole number"),
        ("/rage resume --budget +", "whole number"),
        ("/rage resume --budget ++5", "whole number"),
        ("/rage resume --time 5", "a duration such as 90m"),
        ("/rage resume --time -5m", "a duration such as 90m"),
        ("/rage resume --time 0h", "a duration such as 90m"),
        ("/rage resume --items 0", "does not know"),
        ("/rage resolve maybe", "spec or code"),
        ("/rage resolve", "needs spec or code"),
        ("/rage adopt", "needs a run"),
        ("/rage answer", "Say the answer"),
        ("/rage correct --instead", "Say what"),
        ("/rage audit", "one thing: verify"),
        ("/rage audit verify a b", "one thing: verify"),
        ("/rage audit verify --head xyz", "hexadecimal"),
        ("/rage why a b", "takes no"),
    ],
)
def test_a_wrong_command_names_the_next_one_to_type(line: str, hint: str) -> None:
    """F155: one line that says what is wrong and what to type instead."""
    with pytest.raises(UsageError) as caught:
        parse(line)
    said = caught.value.line()
    assert hint in said
    assert "\n" not in said
    assert "/rage" in said


@given(st.text(max_size=200))
def test_nothing_typed_ends_in_a_traceback(text: str) -> None:
    """Whatever follows `/rage` is a command or a usage error."""
    try:
        command = parse(f"/rage {text}")
    except UsageError as error:
        assert "\n" not in error.what
    else:
        assert command.verb in NAMES


def test_help_names_every_verb_with_an_example() -> None:
    """F155: help shows each command with an example that parses."""
    for verb in VERBS:
        assert verb.name in help_text()
        assert parse(f"/rage {verb.example}").verb == verb.name


@pytest.mark.parametrize("typed", ["5", "#5", "'#5'", "#005", " 5 "])
def test_spellings_of_one_target_are_one_command(typed: str) -> None:
    """F004: a run is found again however its target is typed."""
    for verb in ("plan", "start"):
        assert parse(f"/rage {verb} {typed}").target == "#5"
