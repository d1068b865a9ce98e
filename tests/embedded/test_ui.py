"""What a person sees is never a reason to stop: closed and full streams, odd names."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from host_adapters.embedded import Terminal

READER_GONE = """
import os, sys
from host_adapters.embedded import Terminal
ui = Terminal(sys.stderr, sys.stderr)
for _ in range(3):
    ui.text("piece"); ui.end_text(); ui.tool("t", {"a": "b"}); ui.result("error", "x")
    ui.say("RAGE run x"); ui.note("n"); ui.progress("p")
sys.stdout.write("worked on")
"""


def _pipe_without_reader() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize(
    "stream", [_pipe_without_reader, lambda: os.open("/dev/full", os.O_WRONLY)]
)
def test_a_stream_that_takes_nothing_more_stops_nothing(stream: Callable[[], int]) -> None:
    """`rage run … 2>&1 | head -1`, or a full disk under the log."""
    handle = stream()
    done = subprocess.run(
        [sys.executable, "-c", READER_GONE], stdout=subprocess.PIPE, stderr=handle, check=False
    )
    os.close(handle)
    assert done.stdout == b"worked on"


def test_a_closed_stream_is_no_stream() -> None:
    """`2>&-`: Python has None in its place."""
    ui = Terminal(None)
    ui.text("piece")
    ui.say("RAGE run x")
    ui.note("n")


class Watched(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "told"), [(Watched(), 1), (io.StringIO(), 0)])
def test_a_silent_model_is_told_once_to_a_person(
    stream: io.StringIO, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress on anything over a second; nothing in a pipe, nothing once the answer began."""
    monkeypatch.setattr("host_adapters.embedded.ui.PATIENCE_S", 0.05)
    ui = Terminal(stream)
    with ui.waiting():
        time.sleep(0.3)
    with ui.waiting():
        ui.text("here")
        time.sleep(0.3)
    assert stream.getvalue().count("waiting for the model") == told


def _run(
    words: Sequence[str | bytes], cwd: Path, **more: str
) -> subprocess.CompletedProcess[bytes]:
    (cwd / "script.json").write_text('[{"text": ""}]', "utf-8")
    run = [sys.executable, "-m", "rage_plugin", "run", *words, "--model", "script:script.json"]
    env = {**os.environ, "HOME": str(cwd), "XDG_STATE_HOME": str(cwd), **more}
    return subprocess.run([*run, "--json"], cwd=cwd, env=env, capture_output=True, check=False)


def test_json_survives_any_name_and_any_terminal(tmp_path: Path) -> None:
    """F155: one object, also where the words are no UTF-8 and the terminal knows ASCII only."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for words, more in (([b"\xff.md"], {}), (["ü\U0001f600.md"], {"PYTHONIOENCODING": "ascii"})):
        done = _run(words, tmp_path, **more)
        assert done.returncode == 1, done.stderr
        assert json.loads(done.stdout)["status"] == "failed"
