"""`rage chat` as a person starts it: a process, a pipe or a terminal, signals."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(replies: list[dict[str, Any]]) -> str:
        path = tmp_path / "replies.json"
        path.write_text(json.dumps(replies))
        return f"script:{path}"

    return write


def command(workspace: Path, model: str, *more: str) -> list[str]:
    start = [sys.executable, "-m", "rage_plugin", "chat", "--workspace", str(workspace)]
    return [*start, "--model", model, "--without-rage", *more]


def piped(workspace: Path, model: str, lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(workspace, model),
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_piped_lines_each_get_their_turn_and_the_end_of_the_pipe_ends_the_chat(
    workspace: Path, script: Any
):
    model = script(
        [
            {"tools": [{"name": "run_command", "args": {"command": "cat; sleep 0.2"}}]},
            {"text": "first"},
            {"text": "second"},
        ]
    )
    done = piped(workspace, model, "one\n\ntwo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["first", "second"]


def test_exit_ends_the_chat(workspace: Path, script: Any):
    done = piped(workspace, script([{"text": "answer"}]), "/exit\nhi\n")
    assert (done.returncode, done.stdout) == (0, "")


def test_what_steers_a_terminal_is_not_passed_on(workspace: Path, script: Any):
    done = piped(workspace, script([{"text": "a\x1b]52;c;x\x07b\u202ec"}]), "hi\n")
    assert done.stdout == "a]52;c;xbc\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "not JSON"),
        ("{}", "not a list"),
        ("[]", "empty list"),
        ('["x"]', "reply 1 is not an object"),
        ('[{"txt": "x"}]', "unknown key 'txt'"),
        ('[{"text": 1}]', "`text` is not a string"),
        ('[{}, {"tools": {}}]', "reply 2: `tools` is not a list"),
        ('[{"tools": [{"args": {}}]}]', "`name` and `args`"),
        ('[{"tools": [{"name": "x", "args": []}]}]', "`args` object"),
        ('[{"usage": {"in": 1}}]', "`usage`"),
        ('[{"usage": {"input": -1}}]', "whole numbers"),
        ('[{"delay_s": "x"}]', "`delay_s`"),
        ('[{"error": []}]', "`error`"),
    ],
)
def test_a_bad_script_is_named_with_its_entry(tmp_path: Path, content: str, said: str):
    from host_adapters.embedded.models import ModelSetupError, load_model

    path = tmp_path / "s.json"
    path.write_text(content)
    with pytest.raises(ModelSetupError) as error:
        load_model(f"script:{path}")
    assert said in str(error.value) and "s.json" in str(error.value)
    assert "\n" not in error.value.line()


def test_a_missing_script_and_a_missing_model_are_one_line(workspace: Path):
    for model in ("script:/nowhere/s.json", " "):
        done = piped(workspace, model, "hi\n")
        assert done.returncode in (1, 2)
        assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1


def test_ctrl_c_ends_the_turn_and_not_the_program(workspace: Path, script: Any):
    model = script(
        [
            {"tools": [{"name": "run_command", "args": {"command": "sleep 63.5"}}]},
            {"text": "after"},
        ]
    )
    started = time.monotonic()
    with subprocess.Popen(
        command(workspace, model), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as chat:
        assert chat.stdin is not None and chat.stdout is not None
        chat.stdin.write("hi\n")
        chat.stdin.flush()
        while "run_command" not in chat.stdout.readline():
            pass
        time.sleep(0.2)
        chat.send_signal(signal.SIGINT)
        assert "interrupted" in chat.stdout.readline()
        chat.stdin.write("again\n")
        chat.stdin.close()
        assert chat.stdout.read() == "after\n"
        assert chat.wait(10) == 0
    assert time.monotonic() - started < 20


def test_in_a_terminal_ctrl_c_clears_the_line_and_ctrl_d_ends(workspace: Path, script: Any):
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - the child becomes the chat
        os.execv(sys.executable, command(workspace, script([{"text": "the answer"}])))
    seen = b""

    def until(text: bytes, count: int = 1) -> None:
        nonlocal seen
        deadline = time.monotonic() + 30
        while seen.count(text) < count:
            assert time.monotonic() < deadline, seen
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                seen += os.read(terminal, 1024)
            except OSError:  # Linux says EIO when the other side is closed
                return

    until(b"> ")
    time.sleep(0.3)  # the prompt is written a moment before the terminal is set up for typing
    os.write(terminal, b"half a line\x03")
    until(b"> ", 2)
    time.sleep(0.3)
    os.write(terminal, b"hi\r")
    until(b"the answer")
    until(b"> ", 3)
    time.sleep(0.3)
    os.write(terminal, b"\x04")
    until(b"never", 1)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert seen.count(b"the answer") == 1


def test_importing_the_host_is_light():
    """The entry point is loaded by the CLI: nothing heavy may come with it."""
    code = (
        "import sys; import host_adapters.embedded as e; e.Host;"
        "heavy = {'litellm', 'pydantic', 'tiktoken', 'jinja2', 'sqlite_utils', 'psutil', 'httpx',"
        " 'rage_plugin.plugin', 'tree_sitter'}; print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
