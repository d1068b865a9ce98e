"""A process tree within its limits: time, memory, and nobody left behind."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rage_plugin.verify import command
from rage_plugin.verify.command import Completed, run

HERE = Path("/")


def sh(script: str, timeout_s: float = 20.0, **more: object) -> Completed:
    return run(["sh", "-c", script], cwd=HERE, env=os.environ, timeout_s=timeout_s, **more)  # type: ignore[arg-type]


def living(argument: str) -> list[int]:
    """Processes with this argument in their command line."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        if argument in (process.info["cmdline"] or []) and process.info["status"] != "zombie":
            found.append(process.info["pid"])
    return found


def unique() -> str:
    """A duration for `sleep` that nobody else uses: a name that shows in the process list."""
    return f"{100 + int.from_bytes(os.urandom(4)) / 2**32:.9f}"


def test_exit_code_and_both_streams() -> None:
    """F105: stdout and stderr come as one, in order, with the exit code."""
    done = sh("echo out; echo err >&2; exit 3")
    assert (done.exit_code, done.output, done.truncated) == (3, "out\nerr\n", False)
    assert not done.killed and not done.timed_out and done.note == ""


def test_a_signal_is_no_exit_code() -> None:
    done = sh("kill -9 $$")
    assert (done.exit_code, done.killed, done.timed_out) == (None, True, False)
    assert "SIGKILL" in done.note


def test_a_missing_program_is_no_exit_code() -> None:
    done = run(["no-such-program"], cwd=HERE, env=os.environ, timeout_s=1)
    assert (done.exit_code, done.killed) == (None, False)
    assert "no-such-program could not be started" in done.note
    assert run(["true"], cwd=HERE / "nowhere", env={}, timeout_s=1).exit_code is None
    assert run(["a\0b"], cwd=HERE, env={}, timeout_s=1).exit_code is None


def test_stdin_is_empty_and_the_session_its_own() -> None:
    done = sh("cat; ps -o sid= -p $$; echo $$")
    sid, pid = done.output.split()
    assert sid == pid


@pytest.mark.parametrize(
    "script",
    [
        "sleep {n}",
        "setsid sleep {n} & sleep {n}",
        "setsid sh -c 'setsid sleep {n} & sleep {n}' & wait",
        "exec >&- 2>&-; sleep {n}",
        "trap '' TERM INT HUP; sleep {n} & wait; sleep {n}; sleep {n}",
    ],
)
def test_a_hung_tree_is_ended_within_a_second(script: str) -> None:
    """F105: back at limit + 1 s; no survivor, in whatever session."""
    n = unique()
    began = time.monotonic()
    done = sh(script.format(n=n), timeout_s=0.5)
    assert time.monotonic() - began < 1.5
    assert (done.exit_code, done.timed_out, done.killed) == (None, True, True)
    assert "limit of 0.5 s" in done.note
    assert living(n) == []


@pytest.mark.parametrize(
    "script",
    ["setsid sleep {n} & exit 0", "(setsid sleep {n} &) & exit 0", "nohup sleep {n} & exit 0"],
)
def test_a_grandchild_that_holds_the_pipe_holds_nobody(script: str) -> None:
    n = unique()
    done = sh(script.format(n=n))
    assert done.exit_code == 0
    assert done.seconds < 2
    assert living(n) == []


def test_a_daemon_is_found_by_its_mark() -> None:
    n = unique()
    daemon = (
        "import os, sys\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "null = os.open('/dev/null', os.O_RDWR)\n"
        "for fd in (0, 1, 2): os.dup2(null, fd)\n"
        "os.execvp('sleep', ['sleep', sys.argv[1]])"
    )
    argv = [sys.executable, "-c", daemon, n]
    assert run(argv, cwd=HERE, env=os.environ, timeout_s=10).exit_code == 0
    deadline = time.monotonic() + 2
    while living(n) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert living(n) == []


def test_a_check_that_runs_checks_does_not_end_its_caller() -> None:
    program = (
        "import os; from pathlib import Path; from rage_plugin.verify.command import run\n"
        "print(run(['true'], cwd=Path('/'), env=os.environ, timeout_s=5).exit_code, 'alive')"
    )
    argv = [sys.executable, "-c", program]
    assert run(argv, cwd=HERE, env=os.environ, timeout_s=20).output == "0 alive\n"


def test_what_a_killed_caller_left_is_ended_by_its_mark() -> None:
    n, mark = unique(), os.urandom(8).hex()
    left = subprocess.Popen(["sleep", n], env={**os.environ, command.MARK: mark})
    other = subprocess.Popen(["sleep", n], env={**os.environ, command.MARK: "another"})
    command.kill_marked(mark)
    assert left.wait(5) == -9
    assert living(n) == [other.pid]
    other.kill()
    other.wait()


def test_a_gigabyte_is_bounded_in_memory() -> None:
    """1 GB of output: at most 8 MB over idle; head and tail are kept."""
    sh("head -c 1000000 /dev/zero")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = sh("echo BEGIN; head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo THE END; exit 1")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) / 1024 <= 8
    assert (done.exit_code, done.truncated) == (1, True)
    assert done.output.startswith("BEGIN\n")
    assert done.output.endswith("THE END\n")
    assert len(done.output) == 20_000
    assert "cut: 1000000015 bytes in all" in done.output


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 399, 400, 401, 799, 800, 801, 5000])
def test_output_around_the_limit(size: int) -> None:
    program = f"import sys; sys.stdout.write('ä' * {size})"
    argv = [sys.executable, "-X", "utf8", "-c", program]
    done = run(argv, cwd=HERE, env=os.environ, timeout_s=10, output_limit=100)
    assert done.truncated == (size > 100)
    assert len(done.output) <= 100
    if size <= 100:
        assert done.output == "ä" * size


def test_undecodable_output_is_replaced() -> None:
    assert sh("printf 'a\\377b'").output == "a\ufffdb"


def test_passed_descriptors_and_the_process_id() -> None:
    reader, writer = os.pipe()
    seen: list[int] = []
    program = f"import os; print(os.getpid()); os.write({writer}, b'hello')"
    argv = [sys.executable, "-c", program]
    more = {"pass_fds": [writer], "on_start": seen.append}
    done = run(argv, cwd=HERE, env=os.environ, timeout_s=10, **more)  # type: ignore[arg-type]
    os.close(writer)
    assert os.read(reader, 100) == b"hello"
    os.close(reader)
    assert [int(done.output)] == seen


def test_an_interrupt_ends_the_tree_too() -> None:
    n = unique()

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sh(f"sleep {n} & sleep {n}", on_start=interrupt)
    assert living(n) == []
