"""An item's commit is taken back by a new commit, only where nothing changed since."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rage_plugin.core.errors import RageError

from .conftest import RUN, Repo, an_item


def test_revert_takes_back_exactly_the_paths_of_the_item(repo: Repo) -> None:
    before = repo.base()
    bad = repo.deliver(
        {"a.py": "a = 2\n", "b.py": None, "new/ü\n.py": "n\n"}, an_item("5"), "unverified"
    )
    good = repo.deliver({"dir/c.py": "c = 2\n"}, an_item("6"))
    repo.write({"untracked.txt": "u\n", "dir/c.py": "c = 'mine'\n"})
    repo.git("add", "dir/c.py")
    made = repo.room.revert(RUN, "5", bad)
    assert repo.git("rev-parse", "HEAD", "HEAD^").split() == [made, good]
    assert repo.git("diff", "--name-only", before.commit, "HEAD") == "dir/c.py"
    assert (repo.path / "a.py").read_text() == "a = 1\n"
    assert (repo.path / "b.py").read_text() == "b = 1\n"
    assert not (repo.path / "new").exists()
    assert repo.status().split("\n") == ["M  dir/c.py", "?? untracked.txt"]
    assert repo.git("show", "--no-patch", "--format=%s", made) == "Take back (#5)"


def test_reverted_item_is_not_found_and_may_be_committed_again(repo: Repo) -> None:
    bad = repo.deliver({"a.py": "a = 2\n"})
    made = repo.room.revert(RUN, "5", bad)
    assert repo.room.find(RUN, "5") == ""
    again = repo.deliver({"a.py": "a = 2\n"})
    assert again not in {bad, made}
    assert repo.room.find(RUN, "5") == again


def test_second_call_returns_the_first_revert(repo: Repo) -> None:
    bad = repo.deliver({"a.py": "a = 2\n"})
    made = repo.room.revert(RUN, "5", bad)
    assert repo.room.revert(RUN, "5", bad) == made
    repo.commit_all({"a.py": "a = 'later'\n"})
    assert repo.room.revert(RUN, "5", bad) == made
    assert (repo.path / "a.py").read_text() == "a = 'later'\n"


def test_call_after_a_kill_brings_files_and_index_along(repo: Repo) -> None:
    given = {"a.py": "a = 2\n", "b.py": None, "n.py": "n\n"}
    bad = repo.deliver(given)
    made = repo.room.revert(RUN, "5", bad)
    repo.write(given)  # as if killed before the files followed
    repo.git("read-tree", f"{bad}^{{tree}}")
    assert repo.room.revert(RUN, "5", bad) == made
    assert repo.status() == ""
    assert not (repo.path / "n.py").exists()


@pytest.mark.parametrize(
    ("how", "path"),
    [
        ("later commit", "a.py"),
        ("modified", "a.py"),
        ("staged", "a.py"),
        ("deleted", "a.py"),
        ("file where one was deleted", "b.py"),
        ("folder where a file was", "b.py"),
        ("symlink instead of a folder", "n/n.py"),
    ],
)
def test_path_that_changed_since_is_named_and_nothing_happens(
    repo: Repo, how: str, path: str
) -> None:
    bad = repo.deliver({"a.py": "a = 2\n", "b.py": None, "n/n.py": "n\n"})
    if how == "later commit":
        repo.deliver({"a.py": "a = 3\n"}, an_item("6"))
    elif how in {"modified", "staged"}:
        repo.write({"a.py": "a = 'mine'\n"})
        if how == "staged":
            repo.git("add", "a.py")
            repo.write({"a.py": "a = 2\n"})
    elif how == "deleted":
        repo.write({"a.py": None})
    elif how == "file where one was deleted":
        repo.write({"b.py": "mine\n"})
    elif how == "folder where a file was":
        repo.write({"b.py/mine.txt": "mine\n"})
    else:
        outside = repo.path.parent / "outside"
        (repo.path / "n").rename(outside)
        (repo.path / "n").symlink_to(outside)
    before = (repo.room.head(), repo.status(), _files(repo))
    with pytest.raises(RageError, match=f"cannot be taken back: {path}"):
        repo.room.revert(RUN, "5", bad)
    assert (repo.room.head(), repo.status(), _files(repo)) == before


def _files(repo: Repo) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in repo.path.parent.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_folder_and_file_change_places_again(repo: Repo) -> None:
    repo.write({"a.py": None, "dir/c.py": None})
    (repo.path / "dir").rmdir()
    bad = repo.deliver({"a.py/inner.py": "i\n", "dir": "file\n"})
    repo.room.revert(RUN, "5", bad)
    assert (repo.path / "a.py").read_text() == "a = 1\n"
    assert (repo.path / "dir/c.py").read_text() == "c = 1\n"
    assert repo.status() == ""


def test_modes_symlinks_and_line_ends_come_back(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    (repo.path / "link").symlink_to("a.py")
    repo.commit_all({"run.sh": "#!/bin/sh\r\n"})
    (repo.path / "run.sh").chmod(0o755)
    repo.git("add", "run.sh")
    repo.git("commit", "-q", "-m", "mode")
    bad = repo.deliver({"run.sh": "changed\r\n", "link": None})
    repo.room.revert(RUN, "5", bad)
    assert (repo.path / "run.sh").read_bytes() == b"#!/bin/sh\r\n"
    assert (repo.path / "run.sh").stat().st_mode & 0o111
    assert (repo.path / "link").is_symlink()
    assert repo.status() == ""


def test_root_commit_can_be_taken_back(make: Callable[..., Repo]) -> None:
    repo = make()
    bad = repo.deliver({"a.py": "a\n"})
    repo.room.revert(RUN, "5", bad)
    assert repo.git("ls-tree", "HEAD") == "" and repo.status() == ""
    assert not (repo.path / "a.py").exists()


def test_failing_pre_commit_hook_does_not_hold_up_a_revert(repo: Repo) -> None:
    bad = repo.deliver({"a.py": "a = 2\n"})
    repo.hook("pre-commit", "exit 1")
    assert repo.room.revert(RUN, "5", bad) == repo.room.head()


def test_only_the_runs_own_commit_of_the_item(repo: Repo) -> None:
    bad = repo.deliver({"a.py": "a = 2\n"})
    with pytest.raises(RageError, match="is not this run's commit of 6"):
        repo.room.revert(RUN, "6", bad)
    with pytest.raises(RageError, match="is not this run's"):
        repo.room.revert("another", "5", bad)


def test_never_on_a_protected_branch(repo: Repo) -> None:
    """F115."""
    bad = repo.deliver({"a.py": "a = 2\n"})
    repo.git("branch", "-m", "main")
    with pytest.raises(RageError, match="protected"):
        repo.room.revert(RUN, "5", bad)
