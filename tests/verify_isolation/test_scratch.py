"""What is special about a copy elsewhere: source roots, the guard, and its documented limits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rage_plugin.verify.isolation import Isolation
from tests.verify_tree.repositories import git, write

from .conftest import Workspace, isolation


@pytest.fixture
def scratch(space: Workspace) -> Isolation:
    return isolation(space, "scratch")


def test_the_original_root_is_named_for_the_guard(scratch: Isolation, space: Workspace) -> None:
    done = space.run(scratch, "sh", "-c", 'printf %s "$RAGE_GUARD_ROOT"')
    assert done.output == str(space.root)


def test_source_roots_come_first(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "w", tmp_path)
    write(space.root, {"src/pkg.py": "", "lib/other.py": ""})
    space.base = space.now = space.trees.snapshot(space.before)
    given = f"{space.root}/lib:/elsewhere"
    program = "import sys; print(sys.path[1:5])"
    env = {"PYTHONPATH": given}
    done = space.run(isolation(space, "scratch"), sys.executable, "-c", program, env=env)
    lib, src, root, elsewhere = eval(done.output)
    assert (lib, src, elsewhere) == (f"{root}/lib", f"{root}/src", "/elsewhere")
    assert Path(root).name == "w" and root != str(space.root)


def test_dependency_folders_are_links_and_so_not_discarded(
    scratch: Isolation, space: Workspace
) -> None:
    """The documented limit, so that a change of it is noticed."""
    space.run(scratch, "sh", "-c", "echo x > .venv/new; echo x > x.log")
    assert (space.root / ".venv/new").exists()
    assert (space.root / "x.log").read_text() == "ignored"


def test_the_copy_has_a_repository_of_its_own(scratch: Isolation, space: Workspace) -> None:
    done = space.run(scratch, "sh", "-c", "git log --format=%s && git diff --exit-code HEAD")
    assert (done.exit_code, done.output) == (0, "base\n")


def test_nothing_is_left_elsewhere(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    done = space.run(isolation(space, "scratch"), "sh", "-c", "pwd; mkdir -m 000 x; chmod 500 sub")
    assert done.output.startswith(str(place))
    assert list(place.iterdir()) == []
    assert git(space.root, "status", "--porcelain") != ""
