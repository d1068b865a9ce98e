"""Whether commits can be made is said before anything is changed, in one line that helps."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rage_plugin.core.config import GitConfig
from rage_plugin.core.errors import RageError, Refused
from rage_plugin.deliver import DeliverRoom

from .conftest import RUN, Repo


def refusal(repo: Repo, *, snapshot: bool = False) -> str:
    with pytest.raises(Refused) as caught:
        repo.room.preflight(snapshot=snapshot)
    line = caught.value.line()
    assert "\n" not in line
    return line


def test_clean_repository_needs_no_word(repo: Repo) -> None:
    assert repo.room.preflight(snapshot=False) == ""


def test_no_git_says_git_init(tmp_path: Path) -> None:
    room = DeliverRoom(tmp_path, tmp_path / "state", GitConfig())
    with pytest.raises(Refused, match="not a git repository") as caught:
        room.preflight(snapshot=False)
    assert caught.value.next == "git init"


def test_no_such_folder(tmp_path: Path) -> None:
    room = DeliverRoom(tmp_path / "none", tmp_path / "state", GitConfig())
    with pytest.raises(Refused, match="no folder"):
        room.preflight(snapshot=False)


def test_git_that_is_missing_or_too_old(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.check_output(["sh", "-c", "command -v git"], text=True).strip()
    old = tmp_path / "bin"
    old.mkdir()
    fake = old / "git"
    fake.write_text(
        f'#!/bin/sh\nfor a; do [ "$a" = version ] && echo git version 2.30.1 && exit\ndone\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old}:{os.environ['PATH']}")
    assert "2.30.1 is too old. Next: install git 2.36" in refusal(repo)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert "git was not found" in refusal(repo)


def test_bare_repository(make: Callable[..., Repo]) -> None:
    assert "bare repository" in refusal(make("--bare"))


def test_inside_the_git_directory(repo: Repo) -> None:
    repo.room = DeliverRoom(repo.path / ".git", repo.state, GitConfig())
    assert "inside a git directory" in refusal(repo)


def test_subfolder_of_a_work_tree_works_on_the_whole(repo: Repo) -> None:
    repo.room = DeliverRoom(repo.path / "dir", repo.state, GitConfig())
    repo.deliver({"a.py": "a = 2\n"})
    assert repo.status() == ""


def test_repository_of_another_user(repo: Repo) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(repo.path, 12345, 12345)
    os.chown(repo.path / ".git", 12345, 12345)
    assert "git config --global --add safe.directory" in refusal(repo)


@pytest.mark.parametrize(
    ("mark", "advice"),
    [
        ("MERGE_HEAD", "git merge --abort"),
        ("rebase-merge/x", "git rebase --abort"),
        ("rebase-apply/x", "git am --abort"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "git revert --abort"),
        ("BISECT_LOG", "git bisect reset"),
    ],
)
def test_something_in_progress(repo: Repo, mark: str, advice: str) -> None:
    repo.write({f".git/{mark}": f"{repo.room.head()}\n"})
    assert advice in refusal(repo, snapshot=True)


def test_merge_in_progress_in_a_linked_worktree_alone(repo: Repo) -> None:
    other = repo.path.parent / "other"
    repo.git("worktree", "add", "-q", "-b", "side", str(other))
    repo.write({".git/MERGE_HEAD": f"{repo.room.head()}\n"})
    assert "a merge" in refusal(repo)
    assert DeliverRoom(other, repo.state, GitConfig()).preflight(snapshot=False) == ""


def test_unmerged_index(repo: Repo) -> None:
    blob = repo.git("rev-parse", "HEAD:a.py")
    lines = "".join(f"100644 {blob} {stage}\ta.py\n" for stage in (1, 2, 3))
    repo.git("update-index", "--index-info", stdin=f"0 {'0' * 40}\ta.py\n{lines}".encode())
    assert "Unmerged paths: a.py" in refusal(repo, snapshot=True)


def test_locked_index(repo: Repo) -> None:
    repo.write({".git/index.lock": ""})
    assert "index.lock" in refusal(repo)


def test_modified_and_staged_files_are_listed(repo: Repo) -> None:
    repo.write({"a.py": "a = 2\n", "dir/c.py": None, "new\nline ü.py": "n\n"})
    repo.git("add", "new\nline ü.py")
    line = refusal(repo)
    assert "3 tracked files are modified" in line and "--snapshot" in line
    assert all(name in line for name in ("a.py", "dir/c.py", "new\\nline ü.py"))


def test_long_list_of_modified_files_is_cut(repo: Repo) -> None:
    many = {f"f{number:02}.py": "x\n" for number in range(14)}
    repo.commit_all(many)
    repo.write(dict.fromkeys(many, "y\n"))
    line = refusal(repo)
    assert "14 tracked files" in line and "f09.py and 4 more" in line and "f10.py" not in line


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_modified_file_that_git_was_told_not_to_look_at(repo: Repo, flag: str) -> None:
    repo.git("update-index", flag, "a.py", "b.py")
    assert repo.room.preflight(snapshot=False) == ""
    repo.write({"a.py": "a = 'hidden'\n"})
    assert repo.status() == ""
    assert "1 tracked file is modified: a.py" in refusal(repo)


def test_modified_files_with_snapshot_are_announced(repo: Repo) -> None:
    repo.write({"a.py": "a = 2\n"})
    assert "commit of their own first: a.py" in repo.room.preflight(snapshot=True)


def test_untracked_files_are_listed_and_not_refused(repo: Repo) -> None:
    repo.write({"notes ü.txt": "n\n", "scratch/x": "x\n"})
    line = repo.room.preflight(snapshot=False)
    assert "notes ü.txt" in line and "scratch/" in line


def test_missing_identity_gives_the_two_commands(repo: Repo) -> None:
    repo.git("config", "--unset", "user.name")
    repo.git("config", "--unset", "user.email")
    repo.git("config", "user.useConfigOnly", "true")
    line = refusal(repo)
    assert 'git config user.name "NAME"' in line and 'git config user.email "ADDRESS"' in line


def test_identity_from_the_environment_is_enough(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.git("config", "--unset", "user.name")
    repo.git("config", "--unset", "user.email")
    repo.git("config", "user.useConfigOnly", "true")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Env")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "env@example.org")
    assert repo.room.preflight(snapshot=False) == ""


def test_dirty_submodule_is_named(repo: Repo, make: Callable[..., Repo]) -> None:
    inner = make(name="inner")
    inner.commit_all({"i.py": "i\n"})
    add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"]
    repo.git(*add, str(inner.path), "lib sub")
    repo.git("commit", "-q", "-m", "submodule")
    assert repo.room.preflight(snapshot=False) == ""
    repo.write({"lib sub/i.py": "changed\n"})
    assert "Submodules with changes of their own: lib sub" in refusal(repo, snapshot=True)


def test_submodule_stays_in_the_commit(repo: Repo, make: Callable[..., Repo]) -> None:
    inner = make(name="inner")
    inner.commit_all({"i.py": "i\n"})
    add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"]
    repo.git(*add, str(inner.path), "lib sub")
    repo.git("commit", "-q", "-m", "submodule")
    before = repo.git("ls-tree", "HEAD", "lib sub")
    repo.deliver({"a.py": "a = 2\n"})
    assert repo.git("ls-tree", "HEAD", "lib sub") == before and repo.status() == ""


def test_unborn_detached_and_case_only_names_work(make: Callable[..., Repo], repo: Repo) -> None:
    assert make(name="unborn").room.preflight(snapshot=False) == ""
    repo.commit_all({"Readme": "1\n", "README": "2\n"})
    repo.git("switch", "-q", "--detach")
    assert repo.room.preflight(snapshot=False) == ""


def test_replace_refs_and_grafts_are_named(repo: Repo) -> None:
    first = repo.room.head()
    repo.git("replace", first, repo.git("commit-tree", "-m", "f", "HEAD^{tree}"))
    repo.write({".git/info/grafts": f"{first}\n"})
    line = repo.room.preflight(snapshot=False)
    assert "Replace refs" in line and "grafts" in line


def test_preflight_writes_nothing(repo: Repo) -> None:
    os.utime(repo.path / "a.py", (1, 1))  # `git status` would refresh its times in the index
    index = (repo.path / ".git/index").read_bytes()
    repo.room.preflight(snapshot=False)
    assert (repo.path / ".git/index").read_bytes() == index
    assert not (repo.path / ".git/rage").exists()


# --- the snapshot -------------------------------------------------------------------------------


def test_snapshot_commits_tracked_modifications_alone(repo: Repo) -> None:
    """F076: untracked files stay out, every modified path is named one by one."""
    repo.write({"a.py": "a = 2\n", "b.py": None, "new.py": "n\n", "untracked.txt": "u\n"})
    repo.git("add", "new.py")
    repo.write({"new.py": "n 2\n"})
    line = repo.room.snapshot(RUN)
    assert repo.room.head()[:12] in line
    assert repo.status() == "?? untracked.txt"
    assert repo.git("show", "HEAD:new.py") == "n 2"
    assert "Rage-Status: snapshot" in repo.git("log", "-1", "--format=%(trailers)")
    assert repo.room.snapshot(RUN) == ""


def test_snapshot_respects_a_file_taken_out_of_the_index(repo: Repo) -> None:
    repo.git("rm", "-q", "--cached", "a.py")
    repo.room.snapshot(RUN)
    assert repo.git("ls-tree", "--name-only", "HEAD") == "b.py\ndir"
    assert repo.status() == "?? a.py"


def test_a_project_that_was_never_committed_is_refused(make: Callable[..., Repo]) -> None:
    """Untracked files are nobody's candidate: with nothing else there, the run would be blind."""
    unborn = make(name="unborn")
    (unborn.path / "code.py").write_text("x = 1\n")
    with pytest.raises(Refused, match=r"Nothing is committed yet.*code\.py"):
        unborn.room.preflight(snapshot=False)


def test_snapshot_of_an_unborn_branch_is_its_root(make: Callable[..., Repo]) -> None:
    repo = make(branch="main")
    repo.write({"a.py": "a\n", "u.py": "u\n"})
    repo.git("add", "a.py")
    branch = repo.room.begin(RUN, "#5", "Title")
    repo.room.snapshot(RUN)
    assert repo.git("rev-list", branch) == repo.room.head()
    assert repo.status() == "?? u.py"


def test_snapshot_holds_what_was_hidden_too(repo: Repo) -> None:
    repo.git("update-index", "--assume-unchanged", "a.py")
    repo.write({"a.py": "a = 'hidden'\n"})
    repo.room.snapshot(RUN)
    assert repo.git("show", "HEAD:a.py") == "a = 'hidden'"
    assert repo.room.preflight(snapshot=False) == ""


def test_snapshot_runs_hooks_and_never_on_a_protected_branch(repo: Repo) -> None:
    """F115."""
    repo.write({"a.py": "a = 2\n"})
    repo.hook("pre-commit", "echo no >&2; exit 1")
    with pytest.raises(RageError, match="hook refused the commit: no"):
        repo.room.snapshot(RUN)
    repo.git("symbolic-ref", "HEAD", "refs/heads/main")
    with pytest.raises(RageError, match="protected"):
        repo.room.snapshot(RUN)
