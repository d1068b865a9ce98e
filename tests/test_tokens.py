"""Counting tokens: the real encodings, offline, without litellm and without a trace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.tokens import CL100K, O200K, counter, estimate, fits

PROBE = """
import json, os, socket, sys

def refuse(*_):
    raise AssertionError("the network was asked for")

socket.socket.connect = refuse
socket.getaddrinfo = refuse
before = dict(os.environ)
from rage_plugin import tokens
at_import = [m for m in ("litellm", "tiktoken", "requests") if m in sys.modules]
count, exact = tokens.counter(sys.argv[1])
print(json.dumps({
    "count": count("hello world <|endoftext|> " * 3),
    "exact": exact,
    "environment": dict(os.environ) == before,
    "at_import": at_import,
    "litellm": "litellm" in sys.modules,
}))
"""


def probe(encoding: str, **environment: str) -> dict[str, object]:
    """What a fresh process without a network finds."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, encoding],
        env={k: v for k, v in os.environ.items() if k != "TIKTOKEN_CACHE_DIR"} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("encoding", [O200K, CL100K])
def test_real_encoding_without_network_or_litellm(encoding: str) -> None:
    """F027: the shipped encodings load with sockets refused; nothing heavy, nothing left behind."""
    found = probe(encoding)
    assert found["exact"] is True
    assert found["at_import"] == []
    assert found["litellm"] is False
    assert found["environment"] is True
    assert 20 < int(str(found["count"])) < 60, "a special token's spelling counts as text"


def test_a_damaged_file_is_an_estimate_and_stays_where_it_is(tmp_path: Path) -> None:
    """F027: tiktoken would delete a changed file and download it; here it is not even shown it."""
    package = tmp_path / "litellm"
    folder = package / "litellm_core_utils" / "tokenizers"
    folder.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('litellm was imported')\n")
    name = "fb374d419588a4632f3f557e76b4b70aebbca790"
    (folder / name).write_text("aGk= 0\n")
    found = probe(O200K, PYTHONPATH=str(tmp_path))
    assert found["exact"] is False
    assert found["count"] == estimate("hello world <|endoftext|> " * 3)
    assert (folder / name).read_text() == "aGk= 0\n"


def test_the_users_own_cache_comes_first(tmp_path: Path) -> None:
    """F027: a whole file in TIKTOKEN_CACHE_DIR is used, also without litellm; the setting stays."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    shipped = Path(spec.submodule_search_locations[0], "litellm_core_utils", "tokenizers")
    name = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    cache = tmp_path / "cache ü"
    cache.mkdir()
    shutil.copyfile(shipped / name, cache / name)
    hidden = tmp_path / "hide" / "litellm"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("")
    environment = {"TIKTOKEN_CACHE_DIR": str(cache), "PYTHONPATH": str(hidden.parent)}
    found = probe(CL100K, **environment)
    assert (found["exact"], found["environment"]) == (True, True)
    assert probe(O200K, **environment)["exact"] is False


def test_an_unknown_encoding_is_estimated() -> None:
    """F027: a name that is not shipped is an estimate and says so."""
    count, exact = counter("no_such_encoding")
    assert (count("abcd"), exact) == (2, False)


def test_counts_are_the_models() -> None:
    """F027: figures of the real encodings, with special spellings as text."""
    count, exact = counter(O200K)
    assert exact
    assert counter(O200K) is counter(O200K)
    assert [count(t) for t in ("", "hello world", "<|endoftext|>")] == [0, 2, 7]
    assert counter(CL100K).count("hello world") == 2


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 60))
def test_fits_agrees_with_the_count(text: str, cap: int) -> None:
    """F003: the short way never says that a text fits which does not."""
    assert fits(text, cap) == (counter().count(text) <= cap)


@pytest.mark.parametrize("text", ["\ud800", "\udcff name", "a" * 100_000, " " * 50_000, "\x00"])
def test_odd_text_is_counted(text: str) -> None:
    """F027: lone surrogates and endless runs neither raise nor hang."""
    assert counter().count(text) >= 1
    assert estimate(text) >= 1


def test_the_estimate_is_on_the_high_side_for_what_is_written() -> None:
    """F027: prose, code, paths and other scripts have fewer tokens than are estimated."""
    count = counter().count
    for text in (
        "The quick brown fox jumps over the lazy dog. " * 5,
        "def f(x: int) -> str:\n    return [str(y) for y in range(x)]\n" * 5,
        "tests/test_parser.py::TestParser::test_last_line[case-1] " * 5,
        "Grüße aus München, schöne Straße. " * 5,
        "速い茶色の狐が怠け者の犬を飛び越える。" * 5,
        "Съешь же ещё этих мягких французских булок. " * 5,
        "👩 😀 🔥 " * 5,
    ):
        assert count(text) <= estimate(text)
