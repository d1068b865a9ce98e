"""The journaled swap: a kill at any moment, and what it cannot put back."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rage_plugin.verify.isolation import CouldNotRun, Isolation, recover
from tests.verify_tree.repositories import fingerprint, git, write

from .conftest import Workspace, isolation
from .test_command import living, unique
from .test_overlay import wait_until
from .test_views import VANDAL


@pytest.fixture
def swap(space: Workspace) -> Isolation:
    return isolation(space, "swap")


# Kills itself at the n-th change of a file below the workspace, wherever in the product it is.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from rage_plugin.verify.tree import Trees
from rage_plugin.verify.isolation import ladder, recover, ViewSpec

root, state, base, now, fatal, what, script = sys.argv[1:]
count = 0
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.chmod", "os.symlink"}

def hook(event, args):
    global count
    written = event == "open" and isinstance(args[1], str) and "w" in args[1]
    # What git is asked and answers lies in nameless files elsewhere.
    if event in CHANGES or (written and str(args[0]).startswith(root)):
        count += 1
        if count == int(fatal):
            os.kill(os.getpid(), signal.SIGKILL)

trees, state = Trees(Path(root), Path(state)), Path(state)
sys.addaudithook(hook)
if what == "recover":
    recover(trees, state)
else:
    ladder(trees, state, "swap").run(
        ViewSpec(base, now, hidden=("old notes",), files={"extra/f": b"e"}), ["sh", "-c", script],
        cwd=".", env={"PATH": "/usr/bin:/bin"}, timeout_s=60)
print(count)
"""


def command(space: Workspace, fatal: int, what: str, script: str) -> list[str]:
    known = [str(space.root), str(space.state), space.base, space.now]
    return [sys.executable, "-c", PROGRAM, *known, str(fatal), what, script]


def killed(space: Workspace, fatal: int, what: str = "run") -> bool:
    argv = command(space, fatal, what, VANDAL)
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_a_kill_at_any_change_is_recovered(space: Workspace) -> None:
    """kill -9 at every change that the swap makes, then recovery: byte-identical."""
    total = int(
        subprocess.run(
            command(space, 0, "run", VANDAL), check=True, capture_output=True, text=True
        ).stdout
    )
    assert total > 60
    before = fingerprint(space.root)
    recovered = 0
    for fatal in range(1, total, 1 + total // 12):
        assert killed(space, fatal)
        recovered += recover(space.trees, space.state) is not None
        assert fingerprint(space.root) == before, fatal
        assert space.trees.snapshot(space.before) == space.now
    assert recovered > 3


def test_a_kill_within_the_recovery_is_recovered(space: Workspace, swap: Isolation) -> None:
    before = fingerprint(space.root)
    n = unique()
    for fatal in (2, 9, 20):
        script = f"{VANDAL}\nsetsid sleep {n} & sleep {n}"
        rage = subprocess.Popen(command(space, 0, "run", script))
        wait_until(lambda: len(living(n)) >= 2)
        rage.kill()
        rage.wait()
        killed(space, fatal, "recover")
        recover(space.trees, space.state)
        assert living(n) == []
        assert fingerprint(space.root) == before, fatal


def test_recovery_says_so_once_and_ends_what_still_runs(space: Workspace, swap: Isolation) -> None:
    n = unique()
    script = f"echo x > code; (setsid sleep {n} &) ; sleep {n}"
    rage = subprocess.Popen(command(space, 0, "run", script))
    wait_until(lambda: len(living(n)) >= 2)
    assert recover(space.trees, space.state) is None, "its owner lives"
    rage.kill()
    rage.wait()
    line = recover(space.trees, space.state)
    assert line is not None and "put back" in line and "\n" not in line
    assert living(n) == []
    assert recover(space.trees, space.state) is None
    assert (space.root / "code").read_text() == "candidate\n"


def test_an_unfinished_swap_is_finished_before_the_next(space: Workspace, swap: Isolation) -> None:
    n = unique()
    rage = subprocess.Popen(command(space, 0, "run", f"echo x > code; sleep {n}"))
    wait_until(lambda: living(n))
    rage.kill()
    rage.wait()
    assert space.run(swap, "cat", "code").output == "base\n"
    assert (space.root / "code").read_text() == "candidate\n"


def test_inodes_and_mtimes_of_what_was_there_come_back(space: Workspace, swap: Isolation) -> None:
    paths = [space.root / name for name in ("code", "old notes", "sub/x", "x.log", "new/file")]
    before = [(p.stat().st_ino, p.stat().st_mtime_ns) for p in paths]
    assert space.run(swap, "true").exit_code == 0
    assert [(p.stat().st_ino, p.stat().st_mtime_ns) for p in paths] == before


def test_bytes_that_git_would_not_give_back(space: Workspace, swap: Isolation) -> None:
    """Line ends on disk that a checkout would write otherwise."""
    git(space.root, "config", "core.autocrlf", "true")
    write(space.root, {"mixed": b"1\n2\r\n3\n", "unix": b"1\n"})
    spec = replace(space.view(), tree=space.trees.snapshot(space.before))
    spec = replace(spec, current=spec.tree)
    before = fingerprint(space.root)
    space.run(swap, "sh", "-c", "echo > mixed; echo > unix; echo > code", spec=spec)
    assert fingerprint(space.root) == before


def test_bytes_behind_a_filter(space: Workspace, swap: Isolation) -> None:
    git(space.root, "config", "filter.turn.smudge", "tr a-z n-za-m")
    git(space.root, "config", "filter.turn.clean", "tr a-z n-za-m")
    write(space.root, {".gitattributes": "turned filter=turn\n", "turned": "abc"})
    now = space.trees.snapshot(space.before)
    assert space.trees.read(now, "turned") == b"nop"
    before = fingerprint(space.root)
    spec = replace(space.view(), tree=now, current=now)
    space.run(swap, "sh", "-c", "echo > turned", spec=spec)
    assert fingerprint(space.root) == before


def test_what_cannot_be_put_back_is_named(space: Workspace, swap: Isolation) -> None:
    """Dependency folders are watched and not copied."""
    done = space.run(swap, "sh", "-c", "echo broken > .venv/lib; touch .venv/new")
    assert ".venv/lib" in done.note
    assert not (space.root / ".venv/new").exists()


def test_a_workspace_that_moved_is_not_swapped(space: Workspace, swap: Isolation) -> None:
    write(space.root, {"code": "edited by a person\n"})
    with pytest.raises(CouldNotRun, match="changed before"):
        space.run(swap, "true")
    assert (space.root / "code").read_text() == "edited by a person\n"


def test_a_folder_in_the_way_could_not_run(space: Workspace, swap: Isolation) -> None:
    write(space.root, {"only base/x.log": "ignored, where base has a file"})
    before = fingerprint(space.root)
    with pytest.raises(CouldNotRun, match="could not be made"):
        space.run(swap, "true")
    assert fingerprint(space.root) == before


def test_an_interrupt_puts_everything_back(space: Workspace, swap: Isolation) -> None:
    n = unique()
    before = fingerprint(space.root)
    rage = subprocess.Popen(
        command(space, 0, "run", f"echo x > code; sleep {n}"), stderr=subprocess.DEVNULL
    )
    wait_until(lambda: living(n))
    rage.send_signal(signal.SIGINT)
    rage.wait()
    assert living(n) == []
    assert fingerprint(space.root) == before
    assert recover(space.trees, space.state) is None


def test_a_branch_of_another_worktree_may_move(space: Workspace, tmp_path: Path) -> None:
    git(space.root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    identity = "-c user.name=x -c user.email=x@example.invalid"
    script = (
        f"git -C '{tmp_path}/other' {identity} commit -q --allow-empty -m theirs;"
        f"git {identity} commit -q --allow-empty -m evil"
    )
    done = space.run(isolation(space, "swap"), "sh", "-c", script)
    assert done.exit_code == 0, done
    assert git(space.root, "log", "-1", "--format=%s", "other") == "theirs"
    assert git(space.root, "log", "-1", "--format=%s", "main") == "base"
