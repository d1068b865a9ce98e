"""What only an overlay can do: HOME, git folders elsewhere, mounts, and no trace after a kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import rage_plugin
from rage_plugin.verify.isolation import Isolation, recover
from tests.verify_tree.repositories import fingerprint, git, write

from .conftest import Workspace, isolation
from .test_command import living, unique


@pytest.fixture
def overlay(space: Workspace) -> Isolation:
    return isolation(space, "overlay")


def test_writes_to_home_are_discarded_unless_they_are_wanted(
    overlay: Isolation, space: Workspace
) -> None:
    write(space.home, {".cache/tool": "kept"})
    script = "cat ~/.cache/tool; echo x > ~/counter; echo y > ~/.cache/tool"
    assert space.run(overlay, "sh", "-c", script).output == "kept"
    assert [p.name for p in space.home.rglob("*")] == [".cache", "tool"]
    assert (space.home / ".cache/tool").read_text() == "kept"
    space.run(overlay, "sh", "-c", script, spec=space.view(discard_home=False))
    assert (space.home / "counter").exists()


def test_a_workspace_inside_home(tmp_path: Path) -> None:
    home = tmp_path / "hom e"
    space = Workspace(home / "projects" / "w", home)
    before = fingerprint(home)
    overlay = isolation(space, "overlay")
    done = space.run(
        overlay, "sh", "-c", "cat code; echo z > code; echo z > ~/z; cat ~/projects/w/code"
    )
    assert done.output == "base\nz\n"
    assert fingerprint(home) == before


def test_a_workspace_below_tmpdir(overlay: Isolation, space: Workspace, tmp_path: Path) -> None:
    script = 'cat code; echo z > code; echo z > "$TMPDIR/report"'
    done = space.run(overlay, "sh", "-c", script, env={"TMPDIR": str(tmp_path)})
    assert done.output == "base\n"
    assert (space.root / "code").read_text() == "candidate\n"
    assert (tmp_path / "report").exists()


def test_rages_own_state_cannot_be_written(overlay: Isolation, space: Workspace) -> None:
    write(space.state, {"rage.db": "rows"})
    space.run(overlay, "sh", "-c", "echo forged > .git/rage/rage.db; rm -rf .git/rage/trees")
    assert (space.state / "rage.db").read_text() == "rows"
    assert space.trees.snapshot(space.before) == space.now


def test_a_state_folder_elsewhere_is_covered_too(space: Workspace, tmp_path: Path) -> None:
    from rage_plugin.verify.isolation.overlay import Overlay

    state = tmp_path / "state elsewhere"
    write(state, {"rage.db": "rows"})
    done = space.run(Overlay(space.trees, state), "sh", "-c", f"echo forged > '{state}/rage.db'")
    assert done.exit_code == 0
    assert (state / "rage.db").read_text() == "rows"


def test_a_linked_worktree_keeps_its_repository(space: Workspace, tmp_path: Path) -> None:
    """Its git folders lie outside the workspace."""
    git(space.root, "worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
    linked = tmp_path / "linked"
    write(linked, {"code": "candidate\n"})
    trees = type(space.trees)(linked, space.state)
    before = fingerprint(space.root / ".git")
    other = Workspace.__new__(Workspace)
    other.root, other.home, other.trees, other.state = linked, space.home, trees, space.state
    other.base, other.now, other.before = trees.head_tree(), trees.snapshot(), ()
    script = (
        "cat code && git add -A && git -c user.name=x -c user.email=x@example.invalid "
        "commit -q --allow-empty -m evil && git log --format=%s -1"
    )
    done = other.run(isolation(other, "overlay"), "sh", "-c", script)
    assert done.output == "base\nevil\n"
    assert fingerprint(space.root / ".git") == before


def test_the_check_cannot_reach_under_the_overlay(overlay: Isolation, space: Workspace) -> None:
    script = (
        "umount . ; umount -l . ; unshare -rm sh -c 'umount .; umount -l .; echo x > code';"
        "cat /proc/1/environ; readlink /proc/1/fd/*; ls /proc/1/root; echo done"
    )
    before = fingerprint(space.root)
    done = space.run(overlay, "sh", "-c", script)
    assert done.exit_code == 0
    assert done.output.endswith("done\n")
    assert fingerprint(space.root) == before


def test_it_sees_its_own_processes_and_ids(overlay: Isolation, space: Workspace) -> None:
    program = (
        "import os; print(os.getuid(), os.getgid(), os.readlink('/proc/self') == str(os.getpid()),"
        "len([n for n in os.listdir('/proc') if n.isdigit()]) < 5)"
    )
    done = space.run(overlay, sys.executable, "-c", program)
    assert done.output == f"{os.getuid()} {os.getgid()} True True\n"


def test_a_signal_to_itself_is_not_swallowed(overlay: Isolation, space: Workspace) -> None:
    """As process 1 of its namespace a check would ignore its own SIGTERM."""
    done = space.run(overlay, "sh", "-c", "kill -TERM $$; sleep 5")
    assert (done.killed, done.note) == (True, "ended by SIGTERM")


def test_nested_mounts_are_bound_back(mounted: Path) -> None:
    root = mounted / "w"
    space = Workspace(root, mounted)
    write(root, {".gitignore": ".venv\n*.log\nmnt é\n", "mnt é/hidden by the mount": ""})
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(root / "mnt é")], check=True)
    write(root, {"mnt é/inside": "data"})
    spec = replace(space.view(), current=space.trees.snapshot(space.before))
    done = space.run(isolation(space, "overlay"), "cat", "mnt é/inside", "code", spec=spec)
    assert done.output == "database\n"


def test_a_killed_rage_leaves_no_process_no_mount_and_no_folder(
    overlay: Isolation, space: Workspace
) -> None:
    """An interrupted run: kill -9 while a check runs."""
    n = unique()
    program = """
import sys; from pathlib import Path
from rage_plugin.verify.tree import Trees
from rage_plugin.verify.isolation import ladder, ViewSpec
root, state, base, now, n = sys.argv[1:]
trees = Trees(Path(root), Path(state))
ladder(trees, Path(state), "overlay").run(
    ViewSpec(base, now), ["sh", "-c", f"setsid sleep {n} & sleep {n}"],
    cwd=".", env={"PATH": "/usr/bin:/bin"}, timeout_s=60)
"""
    before = fingerprint(space.root)
    mounts = Path("/proc/self/mounts").read_text()
    now = space.trees.snapshot()
    argv = [sys.executable, "-c", program, str(space.root), str(space.state), space.base, now, n]
    rage = subprocess.Popen(argv)
    wait_until(lambda: len(living(n)) >= 2)
    rage.send_signal(signal.SIGKILL)
    rage.wait()
    wait_until(lambda: not living(n))
    assert Path("/proc/self/mounts").read_text() == mounts
    assert recover(space.trees, space.state) is None
    assert list((space.state / "views").iterdir()) == []
    assert fingerprint(space.root) == before


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_ordinary_user_has_overlays_too(tmp_path: Path) -> None:
    """Root gives up its rights; the interpreter must be readable for everybody."""
    python = shutil.which("python3", path="/usr/bin:/bin")
    if os.geteuid() != 0 or python is None or not shutil.which("setpriv"):
        pytest.skip("only root can become somebody else")
    home = Path("/tmp") / f"rage-test-{os.urandom(6).hex()}"
    packages = Path(psutil.__file__).parents[1]
    home.mkdir(mode=0o777)
    try:
        home.chmod(0o777)
        source = home / "source"
        shutil.copytree(Path(rage_plugin.__file__).parent, source / "rage_plugin")
        for name in ("psutil", "filelock", "pluggy"):
            shutil.copytree(packages / name, source / name)
        program = home / "program.py"
        program.write_text(ORDINARY)
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = subprocess.run(
            [*become, python, "-S", str(program), str(home)],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(source), "HOME": str(home)},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        if "ImportError" in done.stderr or "SyntaxError" in done.stderr:
            pytest.skip(f"{python} cannot load the packages: {done.stderr[-300:]}")
        assert done.stdout == "65534\nbase\n0 []\nbase\nTrue True\n", done.stderr
    finally:
        shutil.rmtree(home)


ORDINARY = """
import os, subprocess, sys
from pathlib import Path
from rage_plugin.verify.tree import Trees
from rage_plugin.verify.isolation import CouldNotRun, ViewSpec, ladder
home = Path(sys.argv[1])
root = home / "w"
root.mkdir()
(root / "code").write_text("base\\n")
(root / "sub").mkdir()
(root / "sub/x").write_text("x")
subprocess.run(["git", "init", "-q"], cwd=root, check=True)
trees = Trees(root, root / ".git/rage")
base = trees.snapshot()
(root / "code").write_text("candidate\\n")
env = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
overlay = ladder(trees, root / ".git/rage", "overlay")
done = overlay.run(
    ViewSpec(base, trees.snapshot()),
    ["sh", "-c", "id -u; cat code; echo x > code; echo x > ~/x; umount . 2>/dev/null; exit 0"],
    cwd=".", env=env, timeout_s=20)
print(done.output, end="")
print(done.exit_code, [p.name for p in home.iterdir() if p.name == "x"])
assert (root / "code").read_text() == "candidate\\n"
now = trees.snapshot()
swap = ladder(trees, root / ".git/rage", "swap")
done = swap.run(
    ViewSpec(base, now),
    ["sh", "-c", "cat code; mkdir -m 000 made; echo x > sub/y; chmod 000 sub; chmod 000 code"],
    cwd=".", env=env, timeout_s=20)
print(done.output, end="")
print(trees.snapshot() == now, sorted(p.name for p in root.iterdir()) == [".git", "code", "sub"])
"""
