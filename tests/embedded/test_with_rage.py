"""The embedded host with the real plugin: what reaches the model, and what scripts get back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI

ITEM = """---
id: 5
title: Make add add
gates: [tests/test_calc.py]
---
`add` subtracts.

- [ ] add(1, 2) is 3
"""
LOOK = {"text": "Looking.", "tools": [{"name": "read_file", "args": {"path": "src/calc.py"}}]}
PUSH = {"text": "Publishing.", "tools": [{"name": "run_command", "args": {"command": "git push"}}]}
FIX = {
    "text": "Fixing.",
    "tools": [
        {"name": "edit_file", "args": {"path": "src/calc.py", "old": "a - b", "new": "a + b"}}
    ],
}
DONE = {"text": 'Done.\nRAGE {"slice": "add", "gate": "tests/test_calc.py"}'}


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") and "KEY" not in k}
    git = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    # The workspace's `pytest` is this one's.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return kept | git | {"PATH": path} | more


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "a repo ü"
    for name, text in {
        "src/__init__.py": "",
        "src/calc.py": "def add(a, b):\n    return a - b\n",
        "tests/test_calc.py": (
            "from src.calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
            "def test_zero():\n    assert add(0, 0) == 0\n"
        ),
        "backlog/5-add.md": ITEM,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Test"],
        ["config", "user.email", "test@example.invalid"],
        ["add", "-A"],
        ["commit", "-q", "-m", "base"],
    ):
        subprocess.run(["git", *words], cwd=root, env=environment(), check=True)
    return root


def rage(repository: Path, *words: str, lines: str = "", **more: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "rage_plugin", *words, "--workspace", str(repository)],
        input=lines,
        env=environment(XDG_STATE_HOME=str(repository.parent / "state"), **more),
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def scripted(repository: Path, *replies: dict[str, Any]) -> str:
    path = repository.parent / "replies.json"
    path.write_text(json.dumps(replies))
    return f"script:{path}"


def commits(repository: Path, branch: str = "--all") -> list[str]:
    done = subprocess.run(
        ["git", "log", "--format=%s", branch],
        cwd=repository,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_run_takes_a_repository_to_green_and_prints_one_object(repository: Path):
    """The contract for scripts; the guard holds while the run is active."""
    model = scripted(repository, LOOK, PUSH, FIX, DONE)
    done = rage(repository, "run", "#5", "--model", model, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["status"], result["items"][0]["status"]) == ("done", "done")
    assert len(result["head"]) == 64 and result["tokens"] > 0
    assert "blocked: refused: git push" in done.stderr
    assert "analyze → generate" in done.stderr and "generate → execute" in done.stderr
    assert len(commits(repository)) == 2


def test_a_refused_start_is_one_object_and_exit_1(repository: Path):
    done = rage(
        repository, "run", "#77", "--model", scripted(repository, {"text": "never"}), "--json"
    )
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert (result["run"], result["status"], result["items"]) == (None, "failed", [])
    assert result["reason"] and "never" not in done.stderr


def test_wrong_words_are_exit_2(repository: Path):
    model = scripted(repository, {"text": "never"})
    assert rage(repository, "run", "#5", "--model", model, "--budget", "many").returncode == 2
    assert rage(repository, "run", "--model", model).returncode == 2


def test_an_agent_that_only_claims_is_never_done(repository: Path):
    """Law 8: the run ends by itself, exit 4, with a reason."""
    done = rage(
        repository, "run", "5", "--model", scripted(repository, {"text": "All done!"}), "--json"
    )
    result = json.loads(done.stdout)
    assert done.returncode in (1, 4), done.stderr
    assert result["status"] != "done" and result["reason"]
    assert len(commits(repository)) == 1


def test_ctrl_c_pauses_the_run_with_exit_130(repository: Path):
    """Law 7: an interrupt never restarts the agent by itself."""
    wait = {"tools": [{"name": "run_command", "args": {"command": "sleep 64.5"}}]}
    words = ["run", "#5", "--model", scripted(repository, wait), "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "rage_plugin", *words, "--workspace", str(repository)],
        env=environment(XDG_STATE_HOME=str(repository.parent / "state")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stderr is not None and run.stdout is not None
        while "run_command" not in run.stderr.readline():
            assert run.poll() is None
        time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        result = json.loads(run.stdout.read())
        run.stderr.read()
        assert run.wait(20) == 130
    assert result["status"] == "paused"


def test_commands_in_the_chat_cost_no_model_call(repository: Path):
    model = scripted(repository, {"text": "a model answered"})
    lines = "/rage help\n/rage status\nrage context\n/rage strat #5\n"
    done = rage(repository, "chat", "--model", model, lines=lines)
    assert done.returncode == 0
    assert "a model answered" not in done.stdout
    assert "start" in done.stdout


def test_without_a_run_the_guard_is_silent(repository: Path):
    done = rage(repository, "chat", "--model", scripted(repository, PUSH, DONE), lines="go\n")
    assert "refused" not in done.stdout and "No configured push destination" in done.stdout


SESSIONS = """
import io, sys
from host_adapters.embedded import Host, Terminal

workspace = sys.argv[1]

def chat(with_rage, *lines):
    host = Host(workspace, "tiny-local", Terminal(io.StringIO()), with_rage=with_rage)
    host.hooks.session_start()
    for line in lines:
        host.send(line)
    host.close()

chat(False, "hello", "and now?")
chat(True, "hello", "and now?")
chat(True, "hello", "/rage start #5", "and now?")
chat(True, "hello", "and now?")
"""


PACKET = re.compile(r"(?:\n\n)?\[RAGE run \w+ · item 5 · \w+ · turn [^]\n]+\][^\0]*\Z")


def test_what_reaches_the_wire_absent_inactive_active_and_after(repository: Path):
    """F001, F003, F136, F148: raw bytes at a real socket, in four sessions of one process."""
    plain = [{"text": "Hi."}, {"text": "Still here."}]
    work = [{"text": "Hi."}, LOOK, {"text": "No line yet."}, FIX, DONE, {"text": "Still here."}]
    with FakeOpenAI([*plain, *plain, *work, *plain]) as fake:
        subprocess.run(
            [sys.executable, "-c", SESSIONS, str(repository)],
            env=environment(
                OPENAI_BASE_URL=fake.url, XDG_STATE_HOME=str(repository.parent / "state")
            ),
            timeout=170,
            check=True,
        )
        bodies, requests = fake.bodies, fake.requests
    assert len(bodies) == 12
    absent, inactive, after = bodies[:2], bodies[2:4], bodies[10:]
    assert absent == inactive
    assert absent == after
    assert bodies[4] == absent[0], "the session of the run, before it began"

    *active, last = [request["messages"] for request in requests[5:10]]
    stripped = [_without_packet(messages) for messages in active]
    for earlier, later in pairwise([*stripped, last]):
        assert later[: len(earlier)] == earlier
    # The same session after its run: nothing is added any more.
    assert last[-1] == {"role": "user", "content": "and now?"}
    assert not any(PACKET.search(str(m["content"])) for m in last)
    assert all(request["tools"] == requests[0]["tools"] for request in requests)
    assert all(request["messages"][0] == requests[0]["messages"][0] for request in requests)

    # The ledger says the same: 0 bytes over the one call that the host counted before the run.
    context = json.loads(rage(repository, "context", "--json").stdout)
    assert (context["inactive"]["calls"], context["inactive"]["bytes"]) == (1, 0)


def _without_packet(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The list without the one packet at its tail."""
    *rest, tail = messages
    assert tail["role"] == "user"
    assert not any(PACKET.search(str(m["content"])) for m in rest)
    found = PACKET.search(tail["content"])
    assert found is not None and len(found[0]) < 1_200
    message = tail["content"][: found.start()]
    return [*rest, {**tail, "content": message}] if message else rest
