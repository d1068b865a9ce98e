"""kill -9 while a check's view lies in the work tree: it is put back before anybody looks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from .project import ENVIRONMENT, FIX, Project, reply, write

PROFILE = "verification: {isolation: swap}\n"
SLOW = "import time\n\n\ndef test_slow():\n    time.sleep(1.5)\n"
NEW = write("calc/more.py", "MORE = 1\n")


def kill_in_the_view(project: Project) -> None:
    """Kill the host while the work tree holds the base instead of the candidate."""
    model = project.script([reply("", FIX, NEW), reply("Done.")])
    host = subprocess.Popen(
        [sys.executable, "-m", "rage_plugin", "run", "#5", "--model", model],
        cwd=project.root,
        env={**ENVIRONMENT, "HOME": str(project.home), "XDG_STATE_HOME": str(project.home / "s")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    more = project.root / "calc" / "more.py"
    until(more.exists)
    until(lambda: not more.exists())
    time.sleep(0.2)
    host.kill()
    host.wait()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def candidate(project: Project) -> bool:
    text = (project.root / "calc/__init__.py").read_text("utf-8")
    return "a + b" in text and (project.root / "calc/more.py").exists()


@pytest.fixture
def killed(project: Project) -> Project:
    project.write({"rage.yaml": PROFILE, "tests/test_slow.py": SLOW})
    project.commit("swap")
    kill_in_the_view(project)
    assert not candidate(project)
    return project


def test_the_next_command_puts_the_work_tree_back(killed: Project) -> None:
    """F142: a person who looks at the state sees the agent's work, not a check's view."""
    assert json.loads(killed.rage("status", "--json").stdout)["status"] == "active"
    assert candidate(killed)


def test_the_same_target_goes_on_with_what_the_agent_did(killed: Project) -> None:
    """F007, F142: the work of a killed host is judged; nothing is taken for unchanged."""
    result = killed.run([reply("Go on.")])
    assert (result.code, result.data["status"]) == (0, "done"), result.err
    assert candidate(killed)
