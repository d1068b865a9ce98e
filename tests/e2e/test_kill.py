"""`rage kill` at real processes: nothing of the run is left, and nothing else is touched."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from rage_plugin import holder, hunt, kill

from .project import ENVIRONMENT, FIX, Project, reply, shell

RUN = "0123abcd"
DAEMON = """import os, sys

if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
null = os.open(os.devnull, os.O_RDWR)
for fd in (0, 1, 2):
    os.dup2(null, fd)
os.execvp("sleep", ["sleep", sys.argv[1]])
"""
HANG = """sleep {n} &
setsid sleep {n} &
(setsid sh -c 'sleep {n} & sleep {n} &' &)
{python} daemon.py {n}
env -i {sleep} {n} &
trap '' TERM INT HUP
sleep {n}
"""
"""Children, sessions of their own, orphans, a daemon, a cleared environment: seven processes."""
TEST_HANG = """import subprocess
import sys
import time


def test_hang():
    subprocess.run([sys.executable, "daemon.py", "{n}"], check=True)
    subprocess.Popen(["sleep", "{n}"], start_new_session=True)
    subprocess.run(["sleep", "{n}"])
"""
KILL = """import json, sys
from dataclasses import asdict
from pathlib import Path
from rage_plugin import kill
state = Path(sys.argv[1])
kill.order(state, sys.argv[2])
print(json.dumps(asdict(kill.end_processes(state, sys.argv[2]))))
"""


@dataclass
class Hosted:
    """A host that works on a project, and what it hangs in: `sleep` with an argument of its own."""

    project: Project
    n: str
    output: Path
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def environment(self) -> dict[str, str]:
        home = self.project.home
        return {**ENVIRONMENT, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}

    def said(self) -> str:
        return self.output.read_text("utf-8")

    def status(self) -> str:
        """The status of the newest run."""
        return str(json.loads(self.project.rage("status", "--json").stdout)["status"])

    @property
    def state(self) -> Path:
        return self.project.root / ".git" / "rage"

    def left(self) -> list[psutil.Process]:
        return sleeping(self.n)

    @property
    def driver(self) -> kill.Driver:
        """As the host itself wrote it."""
        found = kill.driver(self.state)
        assert found is not None
        return found

    def killed(self) -> dict[str, Any]:
        """What `rage kill` comes to in another terminal."""
        done = self.project.rage("kill", "--json")
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result


def killed(state: Path, run: str = RUN) -> dict[str, Any]:
    """What the processes of a run come to where no host is, from another process."""
    done = subprocess.run(
        [sys.executable, "-c", KILL, state, run],
        env={k: v for k, v in os.environ.items() if k not in (holder.TOOL, holder.CHECK)},
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def sleeping(n: str) -> list[psutil.Process]:
    """The living `sleep n`, whosever they are."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if (process.info["cmdline"] or [])[:2] in (["sleep", n], [SLEEP, n]):
            found += [process] if process.info["status"] != psutil.STATUS_ZOMBIE else []
    return found


def unique() -> str:
    return f"{2000 + int.from_bytes(os.urandom(4)) / 2**32:.9f}"


def until(true: Callable[[], bool], what: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + 150
    while not true():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


SLEEP = subprocess.run(
    ["sh", "-c", "command -v sleep"], check=True, capture_output=True, text=True
).stdout.strip()


@pytest.fixture
def begin(project: Project) -> Iterator[Callable[..., Hosted]]:
    """Hosts that hang in a tool or in a check; whatever a test leaves of them is ended."""
    begun: list[Hosted] = []

    def begin(
        words: list[str],
        stdin: bytes = b"",
        *,
        isolation: str = "",
        tool: str = "sh hang.sh",
        expected: int = 7,
        project: Project = project,
    ) -> Hosted:
        n = unique()
        hang = HANG.format(n=n, python=shlex.quote(sys.executable), sleep=SLEEP)
        files = {"daemon.py": DAEMON, "hang.sh": hang}
        if isolation:
            files |= {
                "rage.yaml": f"verification: {{isolation: {isolation}}}\n",
                "tests/test_hang.py": TEST_HANG.format(n=n),
            }
        project.write(files)
        project.commit("what hangs")
        tools = [FIX] if isolation else [FIX, shell(tool.format(n=n))]
        model = project.script([reply("", *tools), reply("Done.")])
        hosted = Hosted(project, n, project.home / "output")
        with hosted.output.open("wb") as file:
            hosted.process = subprocess.Popen(
                [sys.executable, "-m", "rage_plugin", *words, "--model", model],
                cwd=project.root,
                env=hosted.environment,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
            )
        begun.append(hosted)
        assert hosted.process.stdin is not None
        hosted.process.stdin.write(stdin)
        hosted.process.stdin.flush()
        until(
            lambda: len(hosted.left()) == expected or hosted.process.poll() is not None,
            hosted.said,
        )
        assert hosted.process.poll() is None, hosted.said()
        return hosted

    yield begin
    for hosted in begun:
        hosted.process.kill()
        hosted.process.communicate()
        for process in hosted.left():
            with contextlib.suppress(psutil.Error):
                process.kill()


@pytest.fixture
def other(tmp_path: Path) -> Project:
    return Project(tmp_path / "another" / "calc", tmp_path / "another home")


Begin = Callable[..., Hosted]


def test_nothing_of_a_run_is_left(begin: Begin) -> None:
    """F045, F142: children, other sessions, daemons and cleared environments, all within 2 s."""
    hosted = begin(["run", "#5"])
    assert hosted.driver.own_process
    result = hosted.killed()
    assert hosted.left() == []
    assert hosted.process.wait(10) == -signal.SIGKILL
    assert (result["driver"], result["survivors"], result["problem"]) == ("alive", [], "")
    assert hosted.process.pid in result["ended"]
    assert len(result["ended"]) >= 8
    assert result["seconds"] < kill.LIMIT_S
    assert hosted.status() == "stopped"
    assert kill.driver(hosted.state) is None
    assert not kill.ordered(hosted.state, result["run"])
    assert not (hosted.project.home / "state" / "rage" / "active").exists()


@pytest.mark.parametrize("isolation", ["overlay", "swap", "scratch"])
def test_a_check_that_hangs_and_its_daemon_end_in_each_isolation(
    begin: Begin, isolation: str
) -> None:
    """F045, F142: whatever the check is in; afterwards the work tree is the agent's again."""
    hosted = begin(["run", "#5"], isolation=isolation, expected=3)
    result = hosted.killed()
    assert hosted.left() == []
    assert (result["survivors"], hosted.process.wait(10)) == ([], -signal.SIGKILL)
    for verb in ("status", "report"):
        told = hosted.project.rage(verb, "--json")
        assert json.loads(told.stdout)["status"] == "stopped", told.stderr
    code = (hosted.project.root / "calc/__init__.py").read_text("utf-8")
    assert "a + b" in code
    assert hosted.project.git("status", "--porcelain") == " M calc/__init__.py\n"
    assert hosted.left() == []


def test_a_stopped_driver_ends_too(begin: Begin) -> None:
    """F045: a process that hangs answers nobody, and is asked nothing."""
    hosted = begin(["run", "#5"])
    hosted.process.send_signal(signal.SIGSTOP)
    for process in hosted.left():
        process.suspend()
    result = hosted.killed()
    assert hosted.left() == []
    assert (result["survivors"], hosted.process.wait(10)) == ([], -signal.SIGKILL)


def test_the_orphans_of_a_driver_that_died_are_ended(begin: Begin) -> None:
    """F045, bug row orphan-worker: a driver that was killed is gone, and what it began is not."""
    hosted = begin(["run", "#5"])
    hosted.process.kill()
    hosted.process.wait()
    assert len(hosted.left()) == 7
    result = hosted.killed()
    assert hosted.left() == []
    assert (result["driver"], result["survivors"]) == ("dead", [])
    assert len(result["ended"]) >= 7
    assert hosted.status() == "stopped"
    assert kill.driver(hosted.state) is None


def test_what_a_killed_driver_left_is_reaped_and_a_living_one_is_not(begin: Begin) -> None:
    """Bug row orphan-worker: no process of the old life lives next to a new one."""
    hosted = begin(["run", "#5"])
    assert kill.reap(hosted.state) == kill.Killed("none")
    assert (len(hosted.left()), hosted.process.poll()) == (7, None)
    hosted.process.kill()
    hosted.process.wait()
    reaped = kill.reap(hosted.state)
    assert (reaped.driver, reaped.survivors, hosted.left()) == ("dead", (), [])
    assert kill.reap(hosted.state) == kill.Killed("none")


def test_no_lock_is_waited_for(begin: Begin) -> None:
    """F045: another process holds the database; the run ends, and never goes on."""
    hosted = begin(["run", "#5"])
    with contextlib.closing(sqlite3.connect(hosted.state / "rage.db")) as database:
        database.isolation_level = None
        database.execute("BEGIN EXCLUSIVE")
        word = subprocess.Popen(
            [sys.executable, "-m", "rage_plugin", "kill", "--json"],
            cwd=hosted.project.root,
            env=hosted.environment,
            stdout=subprocess.PIPE,
        )
        # Gone while the word still waits for the database, or at most a moment after.
        until(lambda: hosted.left() == [] and hosted.process.poll() is not None)
        result = json.loads(word.communicate(timeout=100)[0])
        assert (result["driver"], result["survivors"]) == ("alive", [])
        assert result["seconds"] < kill.LIMIT_S
        assert result["problem"]
        assert kill.ordered(hosted.state, result["run"])
        database.execute("ROLLBACK")
    again = hosted.project.rage("run", "#5", "--model", hosted.project.script([reply("Done.")]))
    assert f"run {result['run']} started" not in again.stdout
    report = json.loads(hosted.project.rage("report", "--json").stdout)
    assert report["run"] != result["run"] or report["status"] == "stopped"
    assert not kill.ordered(hosted.state, result["run"])


def test_a_chat_lives_on_while_its_tools_end(begin: Begin) -> None:
    """F045, F142: the process in which a person types is not the run's, and nothing goes on."""
    hosted = begin(["chat"], b"/rage start #5\n")
    assert not hosted.driver.own_process
    result = hosted.killed()
    assert hosted.left() == []
    assert (result["driver"], result["survivors"]) == ("alive", [])
    assert hosted.process.pid not in result["ended"]
    assert result["seconds"] < kill.LIMIT_S
    assert hosted.process.poll() is None
    assert psutil.Process(hosted.process.pid).status() != psutil.STATUS_STOPPED
    assert hosted.process.stdin is not None
    hosted.process.stdin.close()
    assert hosted.process.wait(100) == 0, hosted.said()
    assert hosted.status() == "stopped"
    assert kill.driver(hosted.state) is None


def test_a_chat_whose_check_was_killed_begins_no_other(begin: Begin) -> None:
    """F045, F142: the runs of a judgement that are left are not made."""
    hosted = begin(["chat"], b"/rage start #5\n", isolation="scratch", expected=3)
    result = hosted.killed()
    assert (result["survivors"], hosted.process.poll()) == ([], None)
    for _ in range(30):
        assert hosted.left() == []
        time.sleep(0.1)
    assert hosted.process.stdin is not None
    hosted.process.stdin.close()
    assert hosted.process.wait(100) == 0, hosted.said()
    assert hosted.left() == []
    assert hosted.status() == "stopped"


CHAT = """import os, subprocess, sys
from rage_plugin.holder import CHECK, TOOL, holder, mark
sleep, n, keep = sys.argv[1:]
subprocess.Popen([sleep, keep])
subprocess.Popen([sleep, n], env={**os.environ, TOOL: "a mark of the host's own"})
subprocess.Popen([sleep, n], env={**os.environ, CHECK: mark()}, start_new_session=True)
subprocess.Popen(["sh", "-c", f"env -i {sleep} {n}; true"], env={**os.environ, TOOL: "x"})
print(holder(), flush=True)
input()
"""


def test_a_chat_that_a_tool_of_something_else_began_keeps_its_own(tmp_path: Path) -> None:
    """An inherited mark marks nothing; a mark that another host chose does."""
    n, keep = unique(), unique()
    with subprocess.Popen(
        [sys.executable, "-c", CHAT, SLEEP, n, keep],
        env={**os.environ, holder.TOOL: "of an agent above"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as chat:
        assert chat.stdout is not None
        name = chat.stdout.readline().strip()
        until(lambda: (len(sleeping(n)), len(sleeping(keep))) == (3, 1))
        kill.driving(tmp_path, RUN, False, name)
        assert killed(tmp_path)["survivors"] == []
        assert (len(sleeping(n)), len(sleeping(keep)), chat.poll()) == (0, 1, None)
        for process in sleeping(keep):
            process.kill()
        chat.kill()


def test_another_repositorys_run_is_untouched(begin: Begin, other: Project) -> None:
    """F045: two runs of one user at one time; the word is for one of them."""
    one, two = begin(["run", "#5"]), begin(["run", "#5"], project=other)
    theirs = psutil.Process(two.process.pid)
    assert one.killed()["survivors"] == []
    assert one.left() == []
    assert (len(two.left()), two.process.poll()) == (7, None)
    assert {p.status() for p in [theirs, *two.left()]}.isdisjoint({psutil.STATUS_STOPPED})
    two.process.kill()
    two.process.wait()
    assert one.project.rage("kill").returncode == 1
    assert len(two.left()) == 7
    assert two.killed()["driver"] == "dead"
    assert two.left() == []


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any run."""
    with subprocess.Popen(["sleep", unique()]) as process:
        yield process
        process.kill()


def untouched(process: subprocess.Popen[bytes]) -> bool:
    still = psutil.Process(process.pid)
    return process.poll() is None and still.status() != psutil.STATUS_STOPPED


def test_a_process_that_got_the_drivers_id_is_not_the_driver(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    """F045, bug row stale-lock: the same number, another process."""
    before = holder.name_of(bystander.pid).rsplit(":", 1)
    earlier = f"{before[0]}:{int(before[1]) - 1}"
    kill.driving(tmp_path, RUN, True, earlier)
    assert killed(tmp_path)["driver"] == "dead"
    assert untouched(bystander)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_driver_elsewhere_is_left_alone(
    tmp_path: Path, bystander: subprocess.Popen[bytes], place: int
) -> None:
    """F045: an earlier boot is over; another machine or container cannot be reached from here."""
    parts = holder.name_of(bystander.pid).split(":")
    parts[place] = parts[place][::-1]
    if place == 1:
        parts[2] = parts[2][::-1]
    kill.driving(tmp_path, RUN, True, ":".join(parts))
    result = killed(tmp_path)
    assert result["driver"] == {1: "unknown", 2: "dead", 3: "unknown"}[place]
    assert (result["ended"], result["survivors"]) == ([], [])
    assert untouched(bystander)


GARBAGE = {
    "nothing": b"",
    "no JSON": b"{",
    "bytes": b"\xff\xfe\0",
    "a list": b"[1, 2]",
    "deep": b"[" * 4000,
    "large": b" " * 10_000_000,
    "wrong types": b'{"run": 1, "holder": 2, "own_process": 3}',
    "no run": b'{"run": "../x", "holder": "PID", "own_process": true}',
    "another run": b'{"run": "ffffffff", "holder": "PID", "own_process": true}',
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_names_no_driver_names_nobody(
    tmp_path: Path, bystander: subprocess.Popen[bytes], content: bytes
) -> None:
    """F045: whatever lies in the file, nobody is ended who was not named."""
    name = holder.name_of(bystander.pid).encode()
    (tmp_path / "driver.json").write_bytes(content.replace(b"PID", name))
    assert killed(tmp_path) == {"driver": "none", "ended": [], "survivors": [], "seconds": 0.0}
    assert untouched(bystander)
    assert kill.ordered(tmp_path, RUN)


def test_a_file_that_can_never_be_read_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "driver.json")
    assert killed(tmp_path)["driver"] == "none"


def test_nobody_drives(tmp_path: Path) -> None:
    """F045: no file, or a name that is none."""
    assert killed(tmp_path)["driver"] == "none"
    for name in ("null", "", "x"):
        (tmp_path / "driver.json").write_text(
            json.dumps({"run": RUN, "holder": name, "own_process": True}), "utf-8"
        )
        assert killed(tmp_path)["ended"] == []


def test_the_first_process_and_what_called_are_never_ended(tmp_path: Path) -> None:
    """F045: a file may name init, or the shell that `rage kill` is typed in."""
    mine, child = holder.holder(), unique()
    kill.driving(tmp_path, RUN, True, holder.name_of(1))
    result = killed(tmp_path)
    assert (result["ended"], result["survivors"]) == ([], [1])
    kill.driving(tmp_path, RUN, True, mine)
    with subprocess.Popen(["sleep", child]) as process:
        result = killed(tmp_path)
        assert result["survivors"] == [os.getpid()]
        assert process.pid in result["ended"]
    assert kill.driver(tmp_path) is not None


def test_a_run_inside_a_check_ends_with_what_it_left(tmp_path: Path) -> None:
    """F045: a product that drives runs in its own tests has marks of its own, below ours."""
    n = unique()
    inner = (
        "import os, subprocess, sys\nfrom rage_plugin.holder import TOOL, mark\n"
        "environment = {**os.environ, TOOL: mark()}\n"
        "environment.pop('RAGE_CHECK')\n"
        "subprocess.run(['sh', '-c', f'setsid sleep {sys.argv[1]} &'], env=environment)\n"
        "subprocess.run(['sleep', sys.argv[1]])\n"
    )
    outer = (
        "import os, subprocess, sys\nfrom rage_plugin.holder import CHECK, holder, mark\n"
        "print(holder(), flush=True)\nenvironment = {**os.environ, CHECK: mark()}\n"
        "subprocess.run([sys.executable, '-c', *sys.argv[1:]], env=environment)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", outer, inner, n], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        until(lambda: len(sleeping(n)) == 2)
        kill.driving(tmp_path, RUN, True, name)
        assert killed(tmp_path)["survivors"] == []
        assert sleeping(n) == []


FORKS = """import os, sys, time
from rage_plugin.holder import holder
print(holder(), flush=True)
end = time.monotonic() + 20  # whatever becomes of the test, it ends by itself
while time.monotonic() < end:
    if os.fork():
        time.sleep(0.01)
        os._exit(0)
    os.setsid()
"""


def test_what_forks_faster_than_one_looks_is_stopped_first(tmp_path: Path) -> None:
    """F045: a process that is another one each time it is looked at."""
    marked = (
        "import os, subprocess, sys\nfrom rage_plugin.holder import TOOL, holder, mark\n"
        "print(holder(), flush=True)\nenvironment = {**os.environ, TOOL: mark()}\n"
        "for _ in range(3):\n"
        "    subprocess.Popen([sys.executable, '-c', *sys.argv[1:]], env=environment,\n"
        "                     stdout=subprocess.DEVNULL)\n"
        "input()\n"
    )
    n = unique()
    with subprocess.Popen(
        [sys.executable, "-c", marked, FORKS, n],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        kill.driving(tmp_path, RUN, True, process.stdout.readline().strip())
        time.sleep(0.5)
        assert named(n) != []
        result = killed(tmp_path)
        assert (result["survivors"], named(n)) == ([], [])
        assert result["seconds"] < kill.LIMIT_S


def named(n: str) -> list[psutil.Process]:
    """The living processes with this argument, whatever they are."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if n in (process.info["cmdline"] or []) and process.info["status"] != "zombie":
            found.append(process)
    return found


def test_where_there_is_no_proc_the_same_is_seen() -> None:
    """Another system is asked through psutil, and tells the same of a process."""
    mark = holder.mark()
    with subprocess.Popen(["sleep", unique()], env={**os.environ, holder.TOOL: mark}) as process:
        until(lambda: mark in (hunt._in_general(process.pid) or hunt._Seen(0, 0, "", NO)).marks)
        seen = hunt._in_general(process.pid)
        assert seen == hunt._in_proc(process.pid)
        assert seen is not None
        assert (seen.parent, mark in seen.marks) == (os.getpid(), True)
        process.kill()
        until(lambda: hunt._gone(psutil.Process(process.pid)))
        assert hunt._in_general(process.pid) is hunt._in_proc(process.pid) is None
    assert hunt._in_general(process.pid) is hunt._in_proc(process.pid) is None


NO: frozenset[str] = frozenset()
