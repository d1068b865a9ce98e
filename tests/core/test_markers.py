"""Markers by which an agent says that only a person can decide."""

from __future__ import annotations

import dataclasses
import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin.core.markers import OPTION, OPTIONS, READ, TEXT, Marker, scan
from rage_plugin.core.model import PauseReason

ASK = PauseReason.NEEDS_CLARIFICATION
DEVIATES = PauseReason.SPEC_DEVIATION
CRITICAL = PauseReason.CRITICAL_ISSUE

FOUND = [
    # the plain forms
    ("[NEEDS CLARIFICATION]", Marker(ASK)),
    ("[NEEDS CLARIFICATION: which port?]", Marker(ASK, "which port?")),
    ("[NEEDS_CLARIFICATION which port?]", Marker(ASK, "which port?")),
    ("[Critical issue the key is public]", Marker(CRITICAL, "the key is public")),
    ("[SPEC_DEVIATION]", Marker(DEVIATES)),
    ("[SPEC DEVIATION: used YAML]", Marker(DEVIATES, "used YAML")),
    ("[CRITICAL]", Marker(CRITICAL)),
    ("[CRITICAL: the key is public]", Marker(CRITICAL, "the key is public")),
    ("[CRITICAL_ISSUE: the key is public]", Marker(CRITICAL, "the key is public")),
    # options
    ("[NEEDS CLARIFICATION: which port? - 80 | 8080]", Marker(ASK, "which port?", ("80", "8080"))),
    ("[NEEDS CLARIFICATION: which port? 80 | 8080|443 ]", Marker(ASK, "which port?", ("80", "8080", "443"))),
    ("[NEEDS CLARIFICATION: the port - 80 | 8080]", Marker(ASK, "the port", ("80", "8080"))),
    ("[NEEDS CLARIFICATION: the port \u2013 80 | 8080]", Marker(ASK, "the port", ("80", "8080"))),
    ("[NEEDS CLARIFICATION: use a - b? x | y - z]", Marker(ASK, "use a - b?", ("x", "y - z"))),
    ("[NEEDS CLARIFICATION: tabs | spaces]", Marker(ASK, "tabs | spaces", ("tabs", "spaces"))),
    ("[NEEDS CLARIFICATION: tabs? || ]", Marker(ASK, "tabs?")),
    ("[CRITICAL: a | b]", Marker(CRITICAL, "a | b")),
    # case, separators, white space, one line break
    ("[needs clarification]", Marker(ASK)),
    ("[Needs-Clarification - which?]", Marker(ASK, "which?")),
    ("[  NEEDS \t _CLARIFICATION :which? ]", Marker(ASK, "which?")),
    ("[NEEDSCLARIFICATION]", Marker(ASK)),
    ("[spec-deviation \u2014 used YAML]", Marker(DEVIATES, "used YAML")),
    ("[critical issue!]", Marker(CRITICAL)),
    ("[NEEDS\nCLARIFICATION]", Marker(ASK)),
    ("[NEEDS CLARIFICATION: which\r\n   port?]", Marker(ASK, "which port?")),
    ("[CRITICAL\u2028: x]", Marker(CRITICAL, "x")),
    ("[NEEDS\r\u200b\nCLARIFICATION]", Marker(ASK)),
    # what nobody sees
    ("[CRI\u200bTIC\u00adAL]", Marker(CRITICAL)),
    ("[\u2060SPEC\ufeff_\u200dDEVIATION\U000e0041]", Marker(DEVIATES)),
    ("[NEEDS\u200bCLARIFICATION: a\u202eb]", Marker(ASK, "ab")),
    ("[CRIT\x00ICAL: a\x07b]", Marker(CRITICAL, "ab")),
    ("\x1b[31m[CRITICAL]\x1b[0m", Marker(CRITICAL)),
    ("\x1b[K[CRITICAL\x1b[1m: x\x1b[m]", Marker(CRITICAL, "x")),
    ("\x1b[CRITICAL]", Marker(CRITICAL)),
    # look-alikes
    ("\uff3b\uff23\uff32\uff29\uff34\uff29\uff23\uff21\uff2c\uff1a\u3000db\uff3d", Marker(CRITICAL, "db")),
    ("[\U0001d402\U0001d411\U0001d408\U0001d413\U0001d408\U0001d402\U0001d400\U0001d40b]", Marker(CRITICAL)),
    ("\u3010SPEC\u00a0DEVIATION\u3011", Marker(DEVIATES)),
    # where it stands
    ("**[CRITICAL]** x", Marker(CRITICAL)),
    ("[**CRITICAL**: x]", Marker(CRITICAL, "x")),
    ("[`SPEC_DEVIATION`]", Marker(DEVIATES)),
    ("\\[CRITICAL\\]", Marker(CRITICAL)),
    ('{"report": "done.\\n[CRITICAL] x"}', Marker(CRITICAL)),
    ("- [ ] [CRITICAL] x", Marker(CRITICAL)),
    ("注意[CRITICAL]", Marker(CRITICAL)),
    ("([CRITICAL])", Marker(CRITICAL)),
    ("[CRITICAL] (see below)", Marker(CRITICAL)),
    ("[CRITICAL](the key is public)", Marker(CRITICAL)),
    ("+# [SPEC_DEVIATION]: used YAML", Marker(DEVIATES)),
    ("# TODO[x] [SPEC_DEVIATION]", Marker(DEVIATES)),
    # brackets in its words, or none at the end
    ("[SPEC DEVIATION: foo[0] is b]", Marker(DEVIATES, "foo[0] is b")),
    ("[CRITICAL: [a] and [b]] x]", Marker(CRITICAL, "[a] and [b]")),
    ("[CRITICAL: a[ is off]", Marker(CRITICAL, "a[ is off")),
    ("[CRITICAL: never closed\nx\ny", Marker(CRITICAL, "never closed")),
]  # fmt: skip

NOT_FOUND = [
    "Severity: Critical",
    "this is critical",
    "CRITICAL: the key is public",
    "a spec deviation that needs clarification",
    "SPEC_DEVIATION",
    "(CRITICAL)",
    "{NEEDS CLARIFICATION}",
    "<CRITICAL>",
    "[critical](https://example.org)",
    "[Critical](docs/a.md 'the page')",
    "[needs clarification](#open)",
    "[ ] critical",
    "[x] CRITICAL: done",
    "[criticality]",
    "[critical path]",
    "[critical-path]",
    "[non-critical]",
    "[not critical]",
    "[CRITICAL, ERROR]",
    '["CRITICAL"]',
    "[ERROR, CRITICAL]",
    "levels[CRITICAL]",
    "levels()[CRITICAL]",
    "levels[0][CRITICAL]",
    "levels[CRITICAL:3]",
    "[the page][critical]",
    "[^critical]",
    "[critical]+",
    "^[critical]*$",
    "[critical]{2,}",
    "[a-z]critical[0-9]",
    "[critical issues, all]",
    "[needs clarification](docs/open.md)",
    "[spec deviation report](docs/report.md)",
    "[spec]",
    "[deviation]",
    "[needs]",
    "[needs more clarification]",
    "[clarification needed]",
    "[NEEDS\n\nCLARIFICATION]",
    "[\nCRITICAL\n]",
    "[",
    "",
]  # fmt: skip


@pytest.mark.parametrize(("text", "marker"), FOUND)
def test_forms(text: str, marker: Marker) -> None:
    """F061, F062, F063, F064: every form, in the middle of a text too."""
    assert scan(text) == (marker,)
    assert scan(f"Some words.\n\n{text}\n\nMore words.") == (marker,)


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_only_looks_like_a_marker(text: str) -> None:
    """F064: prose, links, checkboxes, indices and regular expressions never pause a run."""
    assert scan(text) == ()
    assert scan(f"Some words {text} more words.") == ()


def test_each_marker_once_in_order() -> None:
    """F064: two that stand side by side are two; one inside another is found as well."""
    text = "[CRITICAL][SPEC_DEVIATION] x [critical] [CRITICAL: a] [NEEDS CLARIFICATION: b [SPEC DEVIATION: c]]"
    assert scan(text) == (
        Marker(CRITICAL),
        Marker(DEVIATES),
        Marker(CRITICAL, "a"),
        Marker(ASK, "b [SPEC DEVIATION: c]"),
        Marker(DEVIATES, "c"),
    )


FENCED = [
    "```\n[CRITICAL]\n```",
    "~~~ python\n[CRITICAL]\n~~~",
    "   ````\n```\n[CRITICAL]\n````",
    "```\r\n[CRITICAL]\r\n```",
    "```\n[CRITICAL]",
    "~~~\n```\n[CRITICAL]\n~~~",
]
NOT_FENCED = [
    "`[CRITICAL]`",
    "    [CRITICAL]",
    "``` a`b\n[CRITICAL]",
    "``\n[CRITICAL]\n``",
    "```\nx\n```\n[CRITICAL]",
    "~~~\nx\n~~~~  \n[CRITICAL]",
    "\u200b```\n[CRITICAL]\n```",
    "\u3000~~~\n[CRITICAL]\n~~~",
    "\uff40\uff40\uff40\n[CRITICAL]",
    "x\u2028```\n[CRITICAL]\n```",
    "    ```\n[CRITICAL]",
]


@pytest.mark.parametrize("text", FENCED)
def test_fenced_code_is_read_unless_configured_off(text: str) -> None:
    """F064: fail closed by default."""
    assert scan(text) == (Marker(CRITICAL),)
    assert scan(text, code_fences=False) == ()
    assert scan(f"[SPEC_DEVIATION]\n{text}", code_fences=False) == (Marker(DEVIATES),)


@pytest.mark.parametrize("text", NOT_FENCED)
def test_only_what_markdown_fences_is_left_out(text: str) -> None:
    """F064: nothing becomes a fence by what is invisible or looks alike."""
    assert scan(text, code_fences=False) == (Marker(CRITICAL),)


def test_a_fence_that_is_left_out_joins_nothing() -> None:
    assert scan("[NEEDS\n```\nx\n```\nCLARIFICATION]", code_fences=False) == ()


def test_text_and_options_are_bounded() -> None:
    """F062: what a person is shown has an end, and nothing gets lost with it."""
    (marker,) = scan(f"[CRITICAL: {'word ' * 2000}]")
    assert len(marker.text) <= TEXT and marker.text.endswith("word…")
    options = " | ".join("o" * 150 + str(n) for n in range(20))
    (marker,) = scan(f"[NEEDS CLARIFICATION: {'q' * 400}? - {options}]")
    assert len(marker.text) == TEXT and len(marker.options) == OPTIONS
    assert all(len(o) == OPTION for o in marker.options)


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_a_marker_anywhere_in_a_long_text_is_found(where: float) -> None:
    """F063: no silent cut."""
    words = "Some words [x] and é more. " * 80_000
    cut = int(len(words) * where)
    assert len(words) > 2_000_000
    assert scan(f"{words[:cut]}\n[SPEC DEVIATION: here]\n{words[cut:]}") == (
        Marker(DEVIATES, "here"),
    )


def test_of_an_endless_text_both_ends_are_read() -> None:
    text = f"[CRITICAL: a]{' ' * READ}[CRITICAL: b]"
    assert [m.text for m in scan(text)] == ["a", "b"]


@pytest.mark.parametrize(
    "piece",
    [
        "[", "[ ", "[CRITICAL: ", "[CRITICAL:[a]", "[critical](a 'x", "[NEEDS ", "[CRITICAL  ", "]",
        "[CRITICAL: a\n", "\x1b[", "~~~\n", "```a`\n", "`", "[CRITICAL:[", "é[", "\n", "[SPEC _", "[*",
    ],
)  # fmt: skip
def test_much_of_anything_ends(piece: str) -> None:
    """F064: linear time; what follows is found."""
    text = piece * (200_000 // len(piece))
    found = scan(f"{text}\n\n[SPEC DEVIATION: here]")
    assert found[-1] == Marker(DEVIATES, "here")
    scan(text, code_fences=False)


def test_a_marker_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Marker(CRITICAL).text = "x"  # type: ignore[misc]


# ── properties ──


def _opens(char: str) -> bool:
    return unicodedata.normalize("NFKC", char).startswith("[") or char in "\u3010\u3014"


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    """F064: never raises, and what is found can be shown."""
    for marker in (
        *scan(text),
        *scan(f"[CRITICAL: {text}]"),
        *scan(f"[NEEDS CLARIFICATION: {text}"),
    ):
        for shown in (marker.text, *marker.options):
            assert shown == " ".join(shown.split())
            assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in shown)


CLOSE = "critical CRITICAL: spec deviation SPEC_DEVIATION needs clarification NEEDS issue ] ( ) - | ? : ```"
PROSE = st.lists(st.sampled_from([*CLOSE.split(), "\n"]) | st.text(max_size=4), max_size=20).map(
    " ".join
)


@given(PROSE)
def test_without_an_opening_bracket_there_is_no_marker(text: str) -> None:
    """F064: whatever is said about something critical, prose never pauses a run."""
    assert scan("".join(c for c in text if not _opens(c))) == ()


HIDDEN = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\ufe0f", "\x00", "\u034f"]
GAPS = ["", " ", "  ", "\t", "\u00a0", "\u3000"]
BETWEEN = ["", " ", "_", "-", "\t ", "\n", " \n ", "\r\n", "\uff3f", "\u00a0"]
NAMES = {
    ASK: ("needs", "clarification"),
    DEVIATES: ("spec", "deviation"),
    CRITICAL: ("critical", "issue"),
}
BEFORE = ["", " ", "\n", "Some words. ", "- [ ] ", "**", "> ", "(", "\\n", "/* ", "注"]
AFTER = ["", " ", "\n", ".", "**", " (see below)", ")", " */", "\\n", ": so", "[CRITICAL]"]


def _decorated(seed: int) -> tuple[Marker, str]:
    """A marker as somebody who hides it might write it, the same for the same seed."""
    chance = random.Random(seed)
    kind = chance.choice(list(NAMES))
    words = NAMES[kind][:1] if kind is CRITICAL and chance.random() < 0.5 else NAMES[kind]
    said = chance.choice(["", "which port", "Łódź is über 5", "a[0] is b"])
    between = chance.choice(BETWEEN)
    name = between.join("".join(_written(char, chance) for char in word) for word in words)
    mark = chance.choice([":", ": ", " - ", " \u2014 ", "\uff1a"]) if said else ""
    inside = f"{chance.choice(GAPS)}{name}{mark}{said}{chance.choice(GAPS)}"
    opened, closed = chance.choice(["[]", "\uff3b\uff3d", "\u3010\u3011"])
    shown = "".join(c + chance.choice(["", "", chance.choice(HIDDEN)]) for c in inside)
    return Marker(kind, said), f"{opened}{shown}{closed}"


def _written(char: str, chance: random.Random) -> str:
    cased = chance.choice([char, char.upper()])
    return chance.choice([cased, cased, chr(ord(cased) + 0xFEE0)])


@given(st.integers(0), st.sampled_from(BEFORE), st.sampled_from(AFTER))
@settings(max_examples=400)
def test_every_decorated_form_is_found(seed: int, before: str, after: str) -> None:
    """F064: case, full width, separators, white space, one line break, invisible characters."""
    marker, text = _decorated(seed)
    assert scan(f"{before}{text}{after}")[0] == marker
    assert scan(f"x\n{text}\ny", code_fences=False)[0] == marker


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_around_it_hides_a_marker(before: str, after: str) -> None:
    """F064: two lines away from it, nothing does."""
    assert Marker(CRITICAL, "x") in scan(f"{before}\n\n[CRITICAL: x]\n\n{after}")
