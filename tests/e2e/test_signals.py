"""Signals at a real process: what a tool started ends with its host, and the answer is told."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time

import psutil
import pytest

from .project import ENVIRONMENT, FIX, Project, reply, shell

LONG = "sleep 31.4159"


def begin(project: Project, words: list[str], stdin: bytes = b"") -> subprocess.Popen[bytes]:
    """A host that is in the middle of a command of its agent."""
    script = project.script([reply("", FIX, shell(f"{LONG}; echo")), reply("Done.")])
    process = subprocess.Popen(
        [sys.executable, "-m", "rage_plugin", *words, "--model", script],
        cwd=project.root,
        env={**ENVIRONMENT, "HOME": str(project.home), "XDG_STATE_HOME": str(project.home / "s")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.flush()
    for _ in range(600):
        if tool(process):
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate())


def tool(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes of the agent's command, as far as they run yet."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += [child] if LONG in " ".join(child.cmdline()) else []
    return found


def works(process: psutil.Process) -> bool:
    """Not one that is dead and waits for somebody to take note."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT] * 5, [signal.SIGINT, signal.SIGTERM]],
    ids=["SIGTERM", "SIGHUP", "an impatient person", "a supervisor"],
)
def test_a_run_tells_its_end_and_leaves_nothing_behind(
    project: Project, signals: list[signal.Signals]
) -> None:
    """F155: one object, 130, a run that waits, and no command of the agent that works on alone."""
    process = begin(project, ["run", "#5", "--json"])
    started = tool(process)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["status"] == "paused", err
    assert [p for p in started if works(p)] == []
    assert json.loads(project.rage("status", "--json").stdout)["status"] == "paused"


def test_a_chat_that_is_told_to_end_ends(project: Project) -> None:
    """SIGTERM is no Ctrl-C: the program is over, its run waits."""
    process = begin(project, ["chat"], b"/rage start #5\n")
    started = tool(process)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert [p for p in started if works(p)] == []
    assert json.loads(project.rage("status", "--json").stdout)["status"] == "paused"
