"""The run's branch is made where the current one is protected, and no file is touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.config import GitConfig
from rage_plugin.core.errors import RageError
from rage_plugin.deliver import DeliverRoom
from rage_plugin.deliver.branch import name

from .conftest import RUN, Repo, an_item


@pytest.mark.parametrize("protected", ["main", "master", "release/2.0"])
def test_protected_branch_gets_a_branch_of_the_run(repo: Repo, protected: str) -> None:
    """F115."""
    repo.git("switch", "-q", "-c", protected)
    repo.write({"a.py": "a = 'modified'\n", "u.py": "u\n"})
    repo.git("add", "a.py")
    before, index = repo.status(), (repo.path / ".git/index").read_bytes()
    head = repo.room.head()
    assert repo.room.begin(RUN, "#5", "Fix the Pärser!") == "rage/5-fix-the-parser"
    assert repo.room.branch() == "rage/5-fix-the-parser"
    assert (repo.path / ".git/index").read_bytes() == index
    assert (repo.status(), repo.room.head()) == (before, head)
    assert repo.git("rev-parse", protected) == head


def test_other_branch_is_used_as_it_is(repo: Repo) -> None:
    assert repo.room.begin(RUN, "#5", "Fix") == "work"
    assert repo.git("branch", "--format=%(refname:short)") == "work"


def test_begin_twice_stays(repo: Repo) -> None:
    repo.git("branch", "-m", "main")
    first = repo.room.begin(RUN, "#5", "Fix")
    assert repo.room.begin(RUN, "#5", "Fix") == first


def test_begin_killed_before_the_switch_takes_its_branch(repo: Repo) -> None:
    repo.git("branch", "-m", "main")
    repo.git("branch", "rage/5-fix")
    assert repo.room.begin(RUN, "#5", "Fix") == "rage/5-fix"


def test_taken_name_gets_the_run_appended(repo: Repo) -> None:
    repo.git("branch", "-m", "main")
    first = repo.room.begin("one", "#5", "Fix")
    repo.deliver({"a.py": "a = 2\n"})
    repo.git("switch", "-q", "main")
    assert repo.room.begin("two", "#5", "Fix") == f"{first}-two"


def test_branch_that_is_checked_out_elsewhere_is_not_shared(repo: Repo) -> None:
    repo.git("branch", "-m", "main")
    repo.git("worktree", "add", "-q", "-b", "rage/5-fix", str(repo.path.parent / "other"))
    assert repo.room.begin(RUN, "#5", "Fix") == f"rage/5-fix-{RUN[:8]}"


def test_branch_named_rage_leaves_no_folder(repo: Repo) -> None:
    repo.git("branch", "-m", "main")
    repo.git("branch", "rage")
    assert repo.room.begin(RUN, "#5", "Fix") == f"rage-5-fix-{RUN[:8]}"


def test_detached_head_gets_a_branch_there(repo: Repo) -> None:
    repo.commit_all({"a.py": "a = 2\n"})
    repo.git("switch", "-q", "--detach", "HEAD^")
    head = repo.room.head()
    assert repo.room.branch() == ""
    assert repo.room.begin(RUN, "backlog", "All of it") == "rage/backlog-all-of-it"
    assert repo.room.head() == head
    repo.deliver({"b.py": "b = 2\n"})


@pytest.mark.parametrize("also", [False, True])
def test_unborn_protected_branch(make: Callable[..., Repo], also: bool) -> None:
    repo = make(branch="main")
    if also:
        orphan = repo.git("commit-tree", "-m", "x", repo.git("mktree"))
        repo.git("update-ref", "refs/heads/rage/other", orphan)
    branch = repo.room.begin(RUN, "#5", "Fix")
    assert branch == "rage/5-fix"
    commit = repo.deliver({"a.py": "a\n"})
    assert repo.git("rev-parse", branch) == commit


def test_remote_default_branch_is_protected(repo: Repo) -> None:
    """F115: the default branch too, unless the profile protects nothing."""
    repo.git("update-ref", "refs/remotes/origin/work", repo.room.head())
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/work")
    allowed = DeliverRoom(repo.path, repo.state, GitConfig(protected=()))
    assert allowed.begin(RUN, "#5", "Fix") == "work"
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    with pytest.raises(RageError, match="work is a protected branch"):
        repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.room.begin(RUN, "#5", "Fix") == "rage/5-fix"


def test_linked_worktree_gets_its_own_branch(repo: Repo) -> None:
    other = repo.path.parent / "other"
    repo.git("worktree", "add", "-q", "-b", "master", str(other))
    room = DeliverRoom(other, repo.state, GitConfig())
    assert room.begin(RUN, "#5", "Fix") == "rage/5-fix"
    assert repo.room.branch() == "work"


@pytest.mark.parametrize(
    ("target", "title", "expected"),
    [
        ("#5", "Fix the parser", "rage/5-fix-the-parser"),
        ("5", "", "rage/5"),
        ("epic:7", "修正", "rage/7"),
        ("backlog/5-fix-it.md", "Fix it", "rage/5-fix-it"),
        ("backlog/", "Backlog", "rage/backlog"),
        ("../..", "--force", "rage/run-force"),
    ],
)
def test_names(target: str, title: str, expected: str) -> None:
    assert name(target, title) == expected


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_target_and_title_is_a_legal_name(target: str, title: str) -> None:
    part = name(target, title).removeprefix("rage/")
    assert part and set(part) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert part[0] != "-" and part[-1] != "-" and len(part) <= 71
