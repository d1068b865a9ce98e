"""Who drives a run: one process of one boot of one machine, and never another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin import holder

LINUX = sys.platform == "linux"
linux = pytest.mark.skipif(not LINUX, reason="these parts of a name are Linux's")
PRINT = "from rage_plugin.holder import holder; print(holder(), flush=True); input()"
ASK = "import sys; from rage_plugin.holder import liveness; print(liveness(sys.argv[1]))"


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """A process that has said its own name."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRINT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def name(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def part(text: str, number: int, value: Callable[[str], str]) -> str:
    parts = text.split(":")
    parts[number] = value(parts[number])
    return ":".join(parts)


def test_this_process_lives_under_one_stable_name() -> None:
    """F093: the name is one word, and the same each time."""
    mine = holder.holder()
    assert mine == holder.holder() == holder.name_of(os.getpid())
    assert len(mine.split()) == 1
    assert mine.startswith("v2:")
    assert holder.pid_of(mine) == os.getpid()
    assert holder.liveness(mine) == "alive"


def test_a_name_is_what_the_process_itself_says(other: subprocess.Popen[str]) -> None:
    theirs = name(other)
    assert theirs == holder.name_of(other.pid) != holder.holder()
    assert holder.liveness(theirs) == "alive"


def test_a_child_is_not_its_parent() -> None:
    """F093: a process that was forked off a holder does not hold what it held."""
    mine = holder.holder()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, holder.holder().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    assert holder.pid_of(os.read(reader, 1000).decode()) == pid
    os.close(reader)
    assert holder.holder() == mine


def test_stopped_is_alive_and_a_zombie_is_dead(other: subprocess.Popen[str]) -> None:
    theirs = name(other)
    other.send_signal(signal.SIGSTOP)
    assert holder.liveness(theirs) == "alive"
    other.kill()
    until(lambda: psutil.Process(other.pid).status() == psutil.STATUS_ZOMBIE)
    assert holder.liveness(theirs) == "dead"
    other.wait()
    assert holder.liveness(theirs) == "dead"


@linux
def test_stale_lock_a_reused_pid_holds_nothing(other: subprocess.Popen[str]) -> None:
    """F093, bug row stale-lock: a living foreign process under the same pid is not the holder."""
    theirs = part(name(other), 5, lambda ticks: str(int(ticks) - 1))
    assert psutil.pid_exists(other.pid)
    assert holder.liveness(theirs) == "dead"
    mine = part(holder.holder(), 4, lambda _: str(other.pid))
    assert holder.liveness(mine) == "dead"


def test_restart_loop_a_new_process_is_not_taken_for_the_one_that_crashed(
    other: subprocess.Popen[str],
) -> None:
    """F093, bug row restart-loop: a name belongs to one life of a process."""
    before = name(other)
    other.kill()
    other.wait()
    with subprocess.Popen(
        [sys.executable, "-c", PRINT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as again:
        after = name(again)
        assert (holder.liveness(before), holder.liveness(after)) == ("dead", "alive")
        again.kill()


@linux
def test_the_clock_has_no_part_in_a_name(
    other: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day's jump either way changes what psutil calls the start, and not whether one lives."""
    theirs = name(other)
    boot, before = psutil.boot_time(), psutil.Process(other.pid).create_time()
    for jump in (-86_400.0, 86_400.0):
        monkeypatch.setattr(psutil._pslinux, "boot_time", lambda jump=jump: boot + jump)
        assert abs(psutil.Process(other.pid).create_time() - before) > 80_000
        assert holder.liveness(theirs) == "alive"
        assert holder.name_of(other.pid) == theirs


@linux
def test_another_boot_of_this_machine_is_dead_and_another_machine_unknown() -> None:
    """F093: what cannot be seen from here is never called dead."""
    mine = holder.holder()
    reboot = part(mine, 2, lambda boot: boot[::-1])
    assert holder.liveness(reboot) == "dead"
    assert holder.liveness(part(reboot, 1, lambda host: host[::-1])) == "unknown"
    assert holder.liveness(part(mine, 3, lambda _: "4026530000.4026530001")) == "unknown"
    assert holder.liveness(part(reboot, 1, lambda host: host[::-1])) == "unknown"
    assert holder.liveness(reboot) == "dead"


@linux
def test_a_machine_that_got_another_name_meanwhile_is_the_same_one() -> None:
    assert holder.liveness(part(holder.holder(), 1, lambda host: host[::-1])) == "alive"


@linux
def test_another_process_namespace_is_unknown_from_both_sides(
    other: subprocess.Popen[str],
) -> None:
    """F093: in a container the same number is another process."""
    theirs = name(other)
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c"]
    tried = subprocess.run([*command, ""], check=False, capture_output=True)
    if tried.returncode != 0:
        pytest.skip("no process namespace can be made here")
    asked = subprocess.run([*command, ASK, theirs], check=True, capture_output=True, text=True)
    assert asked.stdout == "unknown\n"
    told = subprocess.run(
        [*command, PRINT], check=True, capture_output=True, text=True, input="\n"
    ).stdout.strip()
    assert holder.pid_of(told) == 1
    assert holder.liveness(told) == "unknown"


@linux
def test_a_proc_of_somebody_elses_processes_says_nothing() -> None:
    """In a namespace whose /proc is the outer one, a number would be read of a stranger."""
    command = ["unshare", "--pid", "--fork", sys.executable, "-c"]
    if subprocess.run([*command, ""], check=False, capture_output=True).returncode != 0:
        pytest.skip("no process namespace can be made here")
    program = "from rage_plugin.holder import holder, liveness; print(liveness(holder()))"
    asked = subprocess.run([*command, program], check=True, capture_output=True, text=True)
    assert asked.stdout == "unknown\n"


@linux
def test_a_program_whose_name_looks_like_fields_is_read_right(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.write_text("#!/bin/sh\necho up; read x\n", "utf-8")
    program.chmod(0o755)
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert name(process) == "up"
        ticks = round(psutil.Process(process.pid)._proc.create_time(monotonic=True) * 100)
        assert holder.name_of(process.pid).endswith(f":{process.pid}:{ticks}")
        process.kill()


NOBODY = ["", " ", "null", "None", "undefined", ":", "0:0", "-1:5", "1", "1:", "v2", "v2:::::",
          "v2:a:b:c:0:1", "v2:a:b:c:-1:1", "v2:a:b:c:x:1", "v2:a:b:c:1:2:3", "v3:a:b:c:1:2",
          "PID:nan", "PID:inf", f"{'9' * 5000}:1.0", "²:1.0", "1:²", "4294967296:1.0",
          "PID: SECONDS", "PID:SECONDS ", "PID:-SECONDS"]  # fmt: skip


@pytest.mark.parametrize("text", NOBODY, ids=lambda text: repr(text)[:20])
def test_a_name_that_is_none_is_nobody(text: str) -> None:
    """F093: empty, missing, "null" and garbage match nobody."""
    seconds = f"{psutil.Process().create_time():.2f}"
    assert holder.liveness(f"{os.getpid()}:{seconds}") == "alive"
    text = text.replace("PID", str(os.getpid())).replace("SECONDS", seconds)
    assert holder.liveness(text) == "dead"


@given(st.text() | st.from_regex(r"v2(:[0-9a-f.-]{0,9}){4,6}|[0-9]{1,8}:[0-9.]{0,12}"))
def test_no_text_that_nobody_wrote_is_alive(text: str) -> None:
    assert holder.liveness(text) != "alive"


def test_the_first_form_is_still_understood(other: subprocess.Popen[str]) -> None:
    """A run that an earlier version began is told apart from a dead one, with two seconds' room."""
    name(other)
    created = psutil.Process(other.pid).create_time()
    for off, expected in ((0, "alive"), (1.5, "alive"), (-1.5, "alive"), (3, "dead"), (-3, "dead")):
        assert holder.liveness(f"{other.pid}:{created + off:.2f}") == expected
    assert holder.pid_of(f"{other.pid}:{created:.2f}") == other.pid
    other.kill()
    until(lambda: psutil.Process(other.pid).status() == psutil.STATUS_ZOMBIE)
    assert holder.liveness(f"{other.pid}:{created:.2f}") == "dead"
    other.wait()
    assert holder.liveness(f"{other.pid}:{created:.2f}") == "dead"


def test_marks_name_their_process_and_are_never_the_same() -> None:
    marks = {holder.mark() for _ in range(100)}
    assert len(marks) == 100
    assert {m.rpartition("/")[0] for m in marks} == {holder.holder()}


@linux
def test_asking_loads_nothing_heavy() -> None:
    program = (
        "import sys; from rage_plugin.holder import holder, liveness; liveness(holder())\n"
        "print(*({'psutil', 'pydantic', 'sqlite_utils'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout == b"\n"


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
