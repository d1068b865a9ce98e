"""What a check sees and what it leaves behind, the same on every rung of the ladder."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from rage_plugin.verify.isolation import CouldNotRun, Isolation, ladder
from tests.verify_tree.repositories import fingerprint, git, write

from .conftest import Workspace, isolation
from .test_command import living, unique

VANDAL = """
echo changed > code; rm sub/x; rmdir sub; echo file > sub; mkdir -p made/deep; echo x > made/deep/f
echo more >> .gitignore; chmod 000 'only base'; mv .gitignore moved; ln -s /etc link; mkfifo pipe
rm -f x.log; mkdir x.log; touch 'new
line' ; mkdir -m 000 locked
"""


def test_a_check_sees_the_tree_and_nothing_else(rung: Isolation, space: Workspace) -> None:
    """F103: base code without what the agent added and without what was untracked before."""
    spec = space.view(files={"extra/deep.py": b"E", "code": b"other"})
    done = space.run(
        rung, "sh", "-c", "cat code; find . -name .git -prune -o -type f -print", spec=spec
    )
    assert done.exit_code == 0, done
    assert set(done.output.removeprefix("other").split("\n")) == {
        *("./code", "./only base", "./sub/x", "./.gitignore", "./extra/deep.py", "./x.log", ""),
        *(["./.venv/lib"] if rung.name != "scratch" else []),
    }
    assert space.run(rung, "cat", ".venv/lib").output == "installed"
    assert space.run(rung, "test", "-x", "sub/x").exit_code == 1


def test_the_candidate_is_seen_when_the_work_tree_holds_it(
    rung: Isolation, space: Workspace
) -> None:
    spec = replace(space.view(), tree=space.now)
    assert space.run(rung, "cat", "code", "new/file", spec=spec).output == "candidate\nn"


def test_what_a_check_writes_is_gone(rung: Isolation, space: Workspace) -> None:
    """The work tree is byte-identical afterwards, modes and mtimes included."""
    before = fingerprint(space.root)
    done = space.run(rung, "sh", "-c", f"set -e\n{VANDAL}")
    assert done.exit_code == 0, done
    assert fingerprint(space.root) == before
    assert not (space.root / "made").exists()
    assert not (space.root / "locked").exists()
    assert space.trees.snapshot(space.before) == space.now


def test_a_commit_by_a_check_is_not_in_the_repository(rung: Isolation, space: Workspace) -> None:
    identity = "-c user.name=x -c user.email=x@example.invalid"
    script = f"""
        echo evil > code && git add -A && git {identity} commit -qm evil && git log --format=%s -1
        git tag evil; git checkout -q -b evil; git config evil.x 1; git stash
        echo 'exit 1' > .git/hooks/pre-commit; echo evil > .git/info/exclude
    """
    before = fingerprint(space.root / ".git")
    refs = git(space.root, "for-each-ref", "--exclude=refs/rage-found", check=False)
    done = space.run(rung, "sh", "-c", script)
    assert done.output.startswith("evil\n"), done
    after = fingerprint(space.root / ".git")
    if rung.name == "swap":
        # Documented: objects and reflogs stay, and a commit stays reachable under refs/rage-found.
        assert "refs/heads/main" in done.note
        kept = ("objects/", "logs", "refs/")
        before, after = (
            {p: v for p, v in f.items() if not p.startswith(kept)} for f in (before, after)
        )
        assert git(space.root, "for-each-ref", "--format=%(refname)", "refs/rage-found")
    assert after == before
    assert git(space.root, "for-each-ref", "--exclude=refs/rage-found", check=False) == refs
    assert git(space.root, "log", "--format=%s") == "base"
    assert git(space.root, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_exit_codes_signals_and_missing_programs_are_told_apart(
    rung: Isolation, space: Workspace
) -> None:
    assert space.run(rung, "sh", "-c", "exit 7").exit_code == 7
    killed = space.run(rung, "sh", "-c", "kill -SEGV $$")
    assert (killed.exit_code, killed.killed) == (None, True)
    assert "SIGSEGV" in killed.note
    missing = space.run(rung, "no-such-program")
    assert (missing.exit_code, missing.killed) == (None, False)
    assert "no-such-program could not be started" in missing.note


def test_a_hung_check_ends_with_its_grandchildren(rung: Isolation, space: Workspace) -> None:
    n = unique()
    before = fingerprint(space.root)
    script = f"echo half > code; setsid sh -c 'setsid sleep {n} & sleep {n}' & sleep {n}"
    done = space.run(rung, "sh", "-c", script, timeout_s=1.0)
    assert (done.exit_code, done.timed_out) == (None, True)
    assert done.seconds < 2
    assert living(n) == []
    assert fingerprint(space.root) == before


def test_nothing_runs_on_after_a_check(rung: Isolation, space: Workspace) -> None:
    n = unique()
    assert space.run(rung, "sh", "-c", f"setsid sleep {n} & exit 0").exit_code == 0
    assert living(n) == []


def test_prepare_runs_in_the_same_view(rung: Isolation, space: Workspace) -> None:
    prepare = ["sh", "-c", "cat code > '{root}/built'"]
    done = space.run(rung, "cat", "built", prepare=prepare)
    assert done.output == "base\n"
    assert not (space.root / "built").exists()
    with pytest.raises(CouldNotRun, match=r"prepare step failed .*7.*: no compiler"):
        space.run(rung, "true", prepare=["sh", "-c", "echo no compiler; exit 7"])


def test_root_is_what_the_check_sees(rung: Isolation, space: Workspace) -> None:
    done = space.run(
        rung, "sh", "-c", 'echo "$1|$W|$PWD"', "-", "{root}/x", env={"W": "{root}/y"}, cwd="sub"
    )
    arg, variable, here = done.output.rstrip("\n").split("|")
    root = here.removesuffix("/sub")
    assert (arg, variable) == (f"{root}/x", f"{root}/y")
    assert (root == str(space.root)) == (rung.name != "scratch")


def test_a_folder_that_the_tree_lacks_could_not_run(rung: Isolation, space: Workspace) -> None:
    before = fingerprint(space.root)
    with pytest.raises(CouldNotRun, match="no folder"):
        space.run(rung, "true", cwd="new")
    assert fingerprint(space.root) == before


@pytest.mark.parametrize("place", ["outside", "in the state", "in home"])
def test_reports_below_tmpdir_stay(
    rung: Isolation, space: Workspace, place: str, tmp_path: Path
) -> None:
    folder = {
        "outside": tmp_path / "t m p\n,",
        "in the state": space.state / "artifacts" / "t",
        "in home": space.home / "t",
    }[place]
    folder.mkdir(parents=True)
    done = space.run(rung, "sh", "-c", 'echo r > "$TMPDIR/report"', env={"TMPDIR": str(folder)})
    assert done.exit_code == 0, done
    assert (folder / "report").read_text() == "r\n"


def test_descriptors_reach_the_check(rung: Isolation, space: Workspace) -> None:
    reader, writer = os.pipe()
    program = f"import os; os.write({writer}, b'event')"
    space.run(rung, sys.executable, "-c", program, pass_fds=[writer])
    os.close(writer)
    assert os.read(reader, 100) == b"event"
    os.close(reader)


def test_the_environment_is_the_callers_alone(rung: Isolation, space: Workspace) -> None:
    done = space.run(rung, "env", env={"GIVEN": "x\ny"})
    assert "GIVEN=x\ny" in done.output
    for name in ("GIT_CONFIG_GLOBAL", "PYTEST_CURRENT_TEST", "VIRTUAL_ENV"):
        assert f"{name}=" not in done.output


@pytest.mark.parametrize("name", ["overlay", "swap", "scratch"])
def test_an_editable_install_imports_the_tree(name: str, tmp_path: Path) -> None:
    """The trap: base code and a new test must not meet the candidate's code."""
    # A line of a .pth file holds no newline, and PATH no colon.
    space = Workspace(tmp_path / "wörk space", tmp_path)
    write(space.root, {"src/pkg/__init__.py": "v = 'base'\n"})
    base = space.trees.snapshot(space.before)
    write(space.root, {"src/pkg/__init__.py": "v = 'candidate'\n"})
    now = space.trees.snapshot(space.before)
    (space.root / ".venv/lib").unlink()
    venv.create(space.root / ".venv", symlinks=True)
    (site,) = (space.root / ".venv").glob("lib/python*/site-packages")
    (site / "__editable__.pkg.pth").write_text(f"{space.root}/src\n")
    rung = isolation(space, name)
    argv = [str(space.root / ".venv/bin/python"), "-c", "import pkg; print(pkg.v, end='')"]
    for tree, code in ((base, "base"), (now, "candidate")):
        done = space.run(rung, *argv, spec=replace(space.view(), tree=tree, current=now))
        assert done.output == code


def test_file_and_folder_trade_places(rung: Isolation, space: Workspace) -> None:
    (space.root / "code").unlink()
    (space.root / "sub/x").unlink()
    (space.root / "sub").rmdir()
    write(space.root, {"code/inner": "1", "sub": "now a file"})
    spec = replace(space.view(), current=space.trees.snapshot(space.before))
    before = fingerprint(space.root)
    assert space.run(rung, "cat", "code", "sub/x", spec=spec).output == "base\n1"
    assert fingerprint(space.root) == before


def test_an_untracked_repository_is_hidden(rung: Isolation, space: Workspace) -> None:
    write(space.root, {"vendored/f": "1"})
    git(space.root / "vendored", "init", "-q")
    git(space.root / "vendored", "add", "-A")
    git(space.root / "vendored", "commit", "-qm", "1")
    hidden = ("old notes", "vendored/")
    assert set(space.trees.untracked()) >= set(hidden)
    spec = replace(space.view(), hidden=hidden)
    before = fingerprint(space.root)
    assert space.run(rung, "test", "-e", "vendored", spec=spec).exit_code == 1
    assert fingerprint(space.root) == before


def test_the_ladder_says_what_it_tried(space: Workspace) -> None:
    with pytest.raises(CouldNotRun, match="nonsense") as caught:
        ladder(space.trees, space.state, "nonsense")
    assert "rage.yaml" in caught.value.next
    assert ladder(space.trees, space.state).name in ("overlay", "swap", "scratch")


def test_nothing_is_left_in_the_state(rung: Isolation, space: Workspace) -> None:
    space.run(rung, "true")
    names = {p.name for folder in ("views", "swap") for p in (space.state / folder).glob("*/*")}
    assert names == set()


def test_the_package_stays_light() -> None:
    """Starting a check's supervisor imports nothing of RAGE and nothing installed."""
    program = Path(sys.modules["rage_plugin.verify.isolation"].__path__[0]) / "namespace.py"
    listed = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", program, "0", "0"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    ).stderr
    for heavy in ("rage_plugin", "pathlib", "subprocess", "typing", "psutil"):
        assert f" {heavy}\n" not in listed
