"""The flag that idle hosts look at, when the process that raised it is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from .project import ENVIRONMENT, Project, reply, shell


def test_a_stop_from_a_shell_lowers_the_flag_of_a_host_that_was_killed(project: Project) -> None:
    """Law 1: no idle chat goes on looking for a run that is over."""
    flag = project.home / "state" / "rage" / "active"
    model = project.script([reply("", shell("sleep 60"))])
    environment = {**ENVIRONMENT, "HOME": str(project.home)}
    host = subprocess.Popen(
        [sys.executable, "-m", "rage_plugin", "run", "5", "--model", model],
        cwd=project.root,
        env=environment | {"XDG_STATE_HOME": str(project.home / "state")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not flag.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    host.send_signal(signal.SIGKILL)
    host.wait()
    assert flag.exists()
    assert project.rage("stop").returncode == 0
    assert not flag.exists()
