"""The pipe's reading end against whatever may be written into it."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.judgement import Outcome
from rage_plugin.verify import observed
from rage_plugin.verify.observed import Channel, Observed


class Writer:
    """Writes what the probe would."""

    def __init__(self, channel: Channel) -> None:
        settings = json.loads(channel.settings.read_text())
        self.fd, self.key, self.number = channel.pass_fds[0], settings["key"].encode(), 0

    def send(self, kind: str, **data: object) -> None:
        body = json.dumps([self.number, kind, data]).encode()
        mac = hmac.new(self.key, body, hashlib.sha256).hexdigest().encode()
        self.number += 1
        os.write(self.fd, mac + b" " + body + b"\n")


def told(folder: Path, *events: tuple[str, dict[str, object]], raw: bytes = b"") -> Observed:
    """What is observed of these events and then these bytes."""
    channel = Channel(folder, named=False, cwd_on_path=False, targets=None)
    with channel:
        writer = Writer(channel)
        for kind, data in events:
            if kind == "skip a number":
                writer.number += 1
            else:
                writer.send(kind, **data)
        os.write(writer.fd, raw)
    return channel.observed


def report(id: str, when: str, outcome: str, **more: object) -> tuple[str, dict[str, object]]:
    return "report", {"id": id, "when": when, "outcome": outcome, **more}


def test_phases_come_to_outcomes(tmp_path: Path) -> None:
    seen = told(
        tmp_path,
        ("collected", {"ids": ["a", "b", "c", "c"]}),
        *[report("a", when, "passed") for when in ("setup", "call", "teardown")],
        report("b", "setup", "passed"),
        report("b", "call", "rerun"),
        report("b", "setup", "passed"),
        report("b", "call", "passed"),
        report("b", "teardown", "failed", text="ValueError"),
        report("c", "setup", "passed"),
    )
    assert seen.outcomes() == {"a": Outcome.PASS, "b": Outcome.ERROR}
    assert seen.unfinished() == ["c"]
    assert seen.duplicates() == ("c",)
    assert seen.messages() == {"b": "ValueError"}
    assert not seen.forged
    assert not seen.truncated


def test_a_missing_number_is_noticed(tmp_path: Path) -> None:
    seen = told(tmp_path, ("configure", {}), ("skip a number", {}), report("a", "call", "passed"))
    assert seen.forged
    assert not seen.tests


def test_half_a_line_is_a_truncated_report(tmp_path: Path) -> None:
    seen = told(tmp_path, ("configure", {}), raw=b"0123")
    assert seen.truncated
    assert not seen.forged


@given(st.binary(max_size=400))
def test_no_bytes_are_believed_without_the_key(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    seen = told(tmp_path_factory.mktemp("p"), raw=raw)
    assert seen.forged == (b"\n" in raw)
    assert not seen.outcomes()
    assert seen.status is None


def test_a_flood_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "MAX_BYTES", 10_000)
    seen = told(tmp_path, *[report(str(n), "call", "passed") for n in range(500)])
    assert seen.truncated
    assert len(seen.tests) < 500
