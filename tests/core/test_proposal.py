"""The agent's `RAGE {…}` line: found in what models write, refused when it is not one slice."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.model import Proposal
from rage_plugin.core.proposal import ASK, ASK_NO_CHANGE, Parsed, parse

FIX = Proposal(
    objective="Keep the last line", gates=("tests/test_x.py::test_y",), scope=("src/x.py",)
)
LINE = (
    'RAGE {"slice": "Keep the last line", "gate": "tests/test_x.py::test_y", "scope": ["src/x.py"]}'
)


@pytest.mark.parametrize(
    "message",
    [
        LINE,
        f"I looked around.\n\n{LINE}\n\nNow I begin.",
        f"- {LINE}",
        f"1. {LINE}",
        f"> {LINE}",
        f"`{LINE}`",
        f"```json\n{LINE}\n```",
        f"**RAGE** {LINE[5:]}",
        f"RAGE: {LINE[5:]}",
        f"RAGE\n```json\n{LINE[5:]}\n```",
        f"\ufeff  {LINE}\r\n",
        f"{LINE} <- my plan {{}}",
        LINE.replace(", ", ",\n   "),
        LINE.replace('"', "'"),
        LINE.replace("]}", ",],}"),
        'RAGE {slice: "Keep the last line", gate: tests/test_x.py::test_y, scope: [src/x.py]}',
        LINE.replace('"slice"', '"objective"').replace('"gate"', '"gates"'),
        LINE.replace('["src/x.py"]', '"src/x.py"'),
        LINE.replace('"tests/test_x.py::test_y"', '["tests/test_x.py::test_y"]'),
        LINE.replace("]}", '], "no_change": null}'),
        LINE.replace("Keep the", "Keep\\n  the"),
        LINE.replace('"', "\u201c", 1).replace('"', "\u201d", 1),
        f'RAGE {{"slice": "first thought"}}\n{LINE}',
        f"{LINE}\nRAGE {{broken",
        f"{LINE}\nRAGE runs the checks now.",
    ],
)
def test_found_however_it_is_written(message: str) -> None:
    """F010: bullets, fences, quotes, other quotation marks, trailing commas; the last valid wins."""
    assert parse(message) == Parsed(FIX)


def test_umlauts_escapes_and_apostrophes() -> None:
    """F010: text arrives as it was meant, a backslash in a path included."""
    assert parse('RAGE {"slice": "Gr\\u00fc\\u00dfe, it\'s ok"}').proposal == Proposal(
        "Grüße, it's ok"
    )
    assert parse("RAGE {'slice': 'it\\'s ok', 'gate': 'a b/ü.py'}").proposal == Proposal(
        "it's ok", ("a b/ü.py",)
    )
    windows = parse("RAGE {'slice': 'fix', 'scope': 'src\\x.py'}").proposal
    assert windows is not None
    assert windows.scope == ("src\\x.py",)


def test_no_change() -> None:
    """F011: the claim that nothing is needed, with its reason."""
    found = parse('RAGE {"no_change": "it already  works", "slice": ""}')
    assert found == Parsed(Proposal(no_change="it already works"))


@pytest.mark.parametrize(
    "message",
    [
        "",
        "All done!",
        "the RAGE plugin",
        "RAGE runs the checks",
        "x RAGE {}",
        "RAGED {}",
        "rage {}",
    ],
)
def test_no_line_at_all_has_no_reason(message: str) -> None:
    """F010: without a line there is no proposal and nothing to complain about."""
    assert parse(message) == Parsed(None, "")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ASK, "slice says nothing"),
        (ASK_NO_CHANGE, "no_change does not say why"),
        ("RAGE slice=fix gate=tests/x.py", "no {…} after RAGE"),
        ("RAGE {}", "no slice and no no_change"),
        ('RAGE {"gate": "tests/x.py"}', "no slice and no no_change"),
        ('RAGE {"slice": "a", "command": "rm -rf /"}', 'unknown key "command"'),
        ('RAGE {"slice": "a", "no_change": "b"}', "both slice and no_change"),
        ('RAGE {"slice": "a", "objective": "b"}', "slice is given twice"),
        ('RAGE {"slice": "a", "slice": "b"}', '"slice" is given twice'),
        ('RAGE {"slice": "a"', "the object does not end"),
        ('RAGE {"slice": "a}', "the object does not end"),
        ("RAGE {'slice' 'a'}", ": is missing"),
        ("RAGE {'slice': ,}", "unexpected ,"),
        ("RAGE {'slice': 'a' 'b'}", "} is missing"),
        ('RAGE {"slice": 5}', "slice is not text"),
        ('RAGE {"slice": NaN}', "NaN is not a value"),
        ('RAGE {"no_change": true}', "no_change is not text"),
        ('RAGE {"slice": {"a": "b"}}', '"slice" holds an object or a list in a list'),
        ('RAGE {"slice": "a", "gate": [["b"]]}', '"gate" holds an object or a list in a list'),
        ('RAGE {"slice": "a", "gate": [1]}', "gate holds something that is not a path"),
        ('RAGE {"slice": "a", "gate": 7}', "gate is neither text nor a list"),
        ('RAGE {"slice": "a", "gate": " "}', "gate holds something that is not a path"),
        ('RAGE {"slice": "a", "gate": "-p evil"}', 'gate looks like an option: "-p evil"'),
        ('RAGE {"slice": "a", "gate": "@file"}', 'gate looks like an option: "@file"'),
        ('RAGE {"slice": "a", "gate": "a\\nb"}', "gate holds an unprintable character"),
        ('RAGE {"slice": "a", "gate": "a\\u202eb"}', "gate holds an unprintable character"),
        (
            'RAGE {"slice": "a", "scope": "/etc/passwd"}',
            'scope leaves the workspace: "/etc/passwd"',
        ),
        ('RAGE {"slice": "a", "scope": "x/../../y"}', 'scope leaves the workspace: "x/../../y"'),
        ('RAGE {"slice": "a", "scope": "C:\\\\x"}', 'scope leaves the workspace: "C:\\\\x"'),
        ('RAGE {"slice": "a", "scope": "~/x"}', 'scope leaves the workspace: "~/x"'),
        (f'RAGE {{"slice": "{"a" * 201}"}}', "slice has 201 characters, at most 200"),
        (f'RAGE {{"no_change": "{"a" * 301}"}}', "no_change has 301 characters, at most 300"),
        (
            f'RAGE {{"slice": "a", "gate": "{"a" * 301}"}}',
            "gate has an entry of 301 characters, at most 300",
        ),
        (
            f'RAGE {{"slice": "a", "gate": {json.dumps([f"t{n}" for n in range(21)])}}}',
            "gate has 21 entries, at most 20",
        ),
        (
            f'RAGE {{"slice": "a", "scope": {json.dumps([f"s{n}" for n in range(51)])}}}',
            "scope has 51 entries, at most 50",
        ),
    ],
)
def test_anything_else_is_refused_with_a_reason(line: str, reason: str) -> None:
    """F010, F106: validated strictly; a command, an option or a foreign path gets nowhere."""
    assert parse(line) == Parsed(None, reason)


def test_the_largest_line_allowed() -> None:
    """F010: every limit may be reached at once."""
    raw = {
        "slice": "s" * 200,
        "gate": [f"{n:03}{'g' * 297}" for n in range(20)],
        "scope": [f"{n:03}{'p' * 297}" for n in range(50)],
    }
    found = parse("RAGE " + json.dumps(raw)).proposal
    assert found is not None
    assert (len(found.gates), len(found.scope)) == (20, 50)
    assert parse("RAGE " + json.dumps(raw | {"gate": ["a", "b", "a"]})).proposal == Proposal(
        "s" * 200, ("a", "b"), tuple(raw["scope"])
    )


@pytest.mark.parametrize(
    "unit",
    [
        "RAGE {",
        "\nRAGE {",
        "\nRAGE",
        '\nRAGE {"',
        "\nRAGE {'a':[",
        "\nRAGE {\\",
        "> ",
        "RAGE \n",
        "{",
    ],
    ids=ascii,
)
def test_a_megabyte_is_bounded(unit: str) -> None:
    """F156: hostile repetition and deep nesting end quickly and propose nothing."""
    found = parse(unit * (1_000_000 // len(unit)))
    assert found.proposal is None
    assert len(found.reason) < 100


def test_only_the_end_of_a_huge_message_is_read() -> None:
    """F156: a line at the very end of a megabyte is found, one far before it is not."""
    assert parse("chat " * 200_000 + "\n" + LINE) == Parsed(FIX)
    assert parse(LINE + "\n" + "chat " * 200_000) == Parsed(None, "")


pieces = st.one_of(
    st.sampled_from(
        ["RAGE ", "RAGE", "{", "}", "[", "]", ":", ",", '"', "'", "\\", "slice", "gate", "\n", "“"]
    ),
    st.text(max_size=5),
)


@given(st.lists(pieces, max_size=40).map("".join))
def test_never_raises_and_always_stays_in_its_limits(message: str) -> None:
    """F010: for any text there is a proposal within the limits, or a short reason."""
    for text in (message, f"RAGE {{{message}"):
        found = parse(text)
        if found.proposal is None:
            assert len(found.reason) < 150
            assert found.reason.isprintable()
        else:
            assert found.reason == ""
            assert len(found.proposal.objective) <= 200
            assert bool(found.proposal.objective) != bool(found.proposal.no_change)


@given(st.text().filter(lambda text: "RAGE" not in text))
def test_without_the_word_there_is_nothing(text: str) -> None:
    """F010: no text without the word is a proposal or a malformed one."""
    assert parse(text) == Parsed(None, "")


@given(
    st.text(max_size=250),
    st.lists(st.text(max_size=310), max_size=22),
    st.one_of(st.none(), st.text(max_size=20)),
)
def test_json_that_a_model_writes_well_is_read_as_json(
    objective: str, gates: list[str], no_change: str | None
) -> None:
    """F010: well-formed JSON of any content is a proposal of just that, or refused."""
    raw = {"slice": objective, "gates": gates, "no_change": no_change}
    found = parse(f"Plan:\nRAGE {json.dumps(raw)}\n").proposal
    if found is not None and found.objective:
        assert (
            found.objective.split()
            == "".join(c for c in " ".join(objective.split()) if c.isprintable()).split()
        )
        assert set(found.gates) == {g.strip() for g in gates}
