"""The account of the ledger: what `rage context` prints and what a script reads."""

from __future__ import annotations

import json
from dataclasses import dataclass

from rage_plugin.telemetry import account, as_json, lines


@dataclass(frozen=True)
class Row:
    """A sum as the store gives it."""

    kind: str
    run: str | None = None
    phase: str = ""
    purpose: str = "main"
    calls: int = 1
    bytes: int = 0
    tokens: int = 0
    peak_tokens: int = 0
    estimated: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


ROWS = [
    Row("inactive", calls=40),
    Row("packet", "r1", "analyze", calls=2, bytes=900, tokens=240, peak_tokens=130),
    Row("packet", "r1", "generate", calls=8, bytes=4_000, tokens=1_000, peak_tokens=140),
    Row("packet", "r1", "generate", "side", calls=1, bytes=500, tokens=120, peak_tokens=120),
    Row("brief", "r1", "analyze", calls=1, bytes=5_000, tokens=1_300, peak_tokens=1_300),
    Row("call", "r1", "generate", calls=11, input_tokens=53_200, output_tokens=900),
    Row("packet", "r2", "generate", calls=3, bytes=1_200, tokens=300, peak_tokens=101),
]


def test_the_account_adds_up() -> None:
    """F027, F136: calls, bytes and tokens, idle and active, per call, peak and total."""
    found = account(ROWS, [])
    assert (found.inactive_calls, found.inactive_bytes, found.inactive_tokens) == (40, 0, 0)
    assert (found.active_calls, found.calls) == (14, 54)
    assert (found.active_bytes, found.active_tokens) == (11_600, 2_960)
    assert (found.largest_tokens, found.largest_packet) == (1_300, 140)
    assert round(found.tokens_per_call) == 211
    assert [(p.run, p.phase, p.kind, p.injections, p.tokens, p.largest) for p in found.parts] == [
        ("r1", "analyze", "packet", 2, 240, 130),
        ("r1", "generate", "packet", 9, 1_120, 140),
        ("r1", "analyze", "brief", 1, 1_300, 1_300),
        ("r2", "generate", "packet", 3, 300, 101),
    ]
    assert sum(p.bytes for p in found.parts) == found.active_bytes
    assert [(r.run, r.calls, r.share) for r in found.runs] == [("r1", 11, 0.05), ("r2", 3, None)]


def test_lines_for_a_person() -> None:
    """F136: the ledger as a table, with the chain's state as its last line."""
    assert lines(account(ROWS, [])).split("\n") == [
        "inactive: 40 model calls, 0 bytes, 0 tokens added",
        "active:   14 model calls, 11,600 bytes, 2,960 tokens added; 211 a call, largest 1,300",
        "",
        "run    phase     kind    times   bytes  tokens  largest",
        "r1     analyze   packet      2     900     240      130",
        "r1     generate  packet      9   4,500   1,120      140",
        "r1     analyze   brief       1   5,000   1,300    1,300",
        "r2     generate  packet      3   1,200     300      101",
        "total                       15  11,600   2,960    1,300",
        "r1: 2,660 of 53,200 prompt tokens (5.0%) in 11 calls",
        "chain: verified",
    ]


def test_an_empty_ledger_is_all_zero() -> None:
    """F136: before any run there is an account, and it says nothing was added."""
    assert lines(account([], [])).split("\n") == [
        "inactive: 0 model calls, 0 bytes, 0 tokens added",
        "active:   0 model calls, 0 bytes, 0 tokens added; 0 a call, largest 0",
        "chain: verified",
    ]


def test_bytes_while_idle_would_be_seen() -> None:
    """F136: the account is not a constant: a row that breaks the promise shows up in it."""
    leak = Row("inactive", calls=1, bytes=7, tokens=3)
    assert "inactive: 1 model call, 7 bytes, 3 tokens added" in lines(account([leak], []))


def test_estimates_and_a_broken_chain_are_said() -> None:
    """F027, F136: estimated tokens are marked, what is wrong with the chain is named."""
    rows = [Row("packet", "r1", "generate", bytes=400, tokens=200, peak_tokens=200, estimated=1)]
    found = account(rows, ["row 3 was altered"])
    text = lines(found)
    assert "≈ 200 tokens added" in text
    assert "their tokens are estimated" in text
    assert text.endswith("chain: row 3 was altered")
    assert as_json(found)["chain"] == {"intact": False, "problems": ["row 3 was altered"]}


def test_json_holds_the_same_figures() -> None:
    """F136, F155: the same account for scripts, as JSON values only."""
    raw = json.loads(json.dumps(as_json(account(ROWS, []))))
    assert raw["calls"] == 54
    assert raw["inactive"] == {"calls": 40, "bytes": 0, "tokens": 0}
    assert raw["active"]["tokens"] == 2_960
    assert raw["active"]["tokens_per_call"] == 211.4
    assert raw["estimated"] is False
    assert raw["by_part"][2]["kind"] == "brief"
    assert raw["by_run"][0] == {
        "run": "r1",
        "calls": 11,
        "prompt_tokens": 53_200,
        "injected_tokens": 2_660,
        "share": 0.05,
    }
    assert raw["chain"] == {"intact": True, "problems": []}
