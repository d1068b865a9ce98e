"""A commit holds exactly the checked tree and is made once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rage_plugin.core.config import GitConfig
from rage_plugin.core.errors import RageError, Refused
from rage_plugin.core.model import Base
from rage_plugin.deliver import DeliverRoom

from .conftest import RUN, Repo, an_item


def trailers(repo: Repo, commit: str) -> dict[str, str]:
    text = repo.git("log", "-1", "--format=%(trailers:only)", commit)
    return dict(line.split(": ", 1) for line in text.splitlines() if line)


def test_commit_holds_exactly_the_checked_tree(repo: Repo) -> None:
    """F058, F076, F077: the tree, the trailers, one parent, and a clean status."""
    base = repo.base()
    tree = repo.work({"a.py": "a = 2\n", "neu/ä b\nc.py": "x\n", "b.py": None})
    commit = repo.room.commit(RUN, an_item(), base, tree, "ev1,ev2", "verified")
    assert repo.git("rev-parse", "HEAD", "HEAD^{tree}", "HEAD^").split() == [
        commit,
        tree,
        base.commit,
    ]
    assert trailers(repo, commit) == {
        "Rage-Run": RUN,
        "Rage-Item": "5",
        "Rage-Evidence": "ev1,ev2",
        "Rage-Status": "verified",
    }
    assert repo.git("log", "-1", "--format=%s|%an|%ce") == (
        "Fix the parser (#5)|Una Üser|una@example.org"
    )
    assert repo.status() == ""


def test_commit_does_not_need_the_private_store(repo: Repo) -> None:
    repo.deliver({"new/deep/file.py": "x\n"})
    shutil.rmtree(repo.state / "trees")
    repo.git("fsck", "--strict", "--full")
    repo.git("clone", "-q", "--no-local", str(repo.path), str(repo.path.parent / "clone"))


def test_tree_that_is_gone_is_no_commit(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    shutil.rmtree(repo.state / "trees")
    with pytest.raises(RageError, match="not whole any more"):
        repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.room.head() == base.commit


def test_files_changed_after_the_verdict_stay_out(repo: Repo) -> None:
    """F076: what is on disk now does not matter, only what was checked."""
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    repo.write({"a.py": "a = 'later'\n", "b.py": "b = 'later'\n", "later.py": "x\n"})
    repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.git("show", "HEAD:a.py") == "a = 2"
    assert repo.status().split("\n") == [" M a.py", " M b.py", "?? later.py"]


def test_what_the_person_staged_stays_staged(repo: Repo) -> None:
    """F076: the index follows for the committed paths alone."""
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n", "n.py": "n\n"})
    repo.write({"b.py": "b = 'mine'\n", "mine.py": "m\n"})
    repo.git("add", "b.py", "mine.py")
    repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.status().split("\n") == ["M  b.py", "A  mine.py"]


def test_committed_path_that_the_person_staged_otherwise_stays_staged(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    repo.write({"a.py": "a = 'mine'\n"})
    repo.git("add", "a.py")
    repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.status() == "M  a.py"
    assert repo.git("show", ":a.py") == "a = 'mine'"


def test_folder_takes_the_place_of_a_file_and_the_reverse(repo: Repo) -> None:
    repo.write({"a.py": None, "dir/c.py": None})
    (repo.path / "dir").rmdir()
    base = repo.base()
    tree = repo.work({"a.py/inner.py": "i\n", "dir": "a file\n"})
    repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.status() == ""


def test_second_call_returns_the_first_commit(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    first = repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    repo.commit_all({"b.py": "b = 2\n"})
    again = DeliverRoom(repo.path, repo.state, GitConfig())
    assert again.commit(RUN, an_item(), base, tree, "", "verified") == first
    assert repo.room.find(RUN, "5") == first
    assert len(repo.git("rev-list", "HEAD").split()) == 3


def test_call_after_a_kill_brings_the_index_along(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n", "n.py": "n\n"})
    repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    repo.git("read-tree", base.tree)  # as if killed before the index followed
    assert repo.status() != ""
    repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.status() == ""


def test_index_that_was_locked_follows_at_the_next_call(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rage_plugin.deliver.index.PATIENCE_S", 0.2)
    repo.hook("reference-transaction", 'touch "$(git rev-parse --git-dir)/index.lock"')
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    with pytest.raises(RageError, match="The commit was made, but the index"):
        repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    (repo.path / ".git/hooks/reference-transaction").unlink()
    (repo.path / ".git/index.lock").unlink()
    commit = repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert (repo.room.head(), repo.status()) == (commit, "")


def test_items_follow_each_other(repo: Repo) -> None:
    """F058: one commit an item, the next on top."""
    repo.room.pin(RUN, repo.base())
    first = repo.deliver({"a.py": "a = 2\n"}, an_item("5"))
    second = repo.deliver({"a.py": "a = 3\n"}, an_item("6"), "unverified")
    assert (repo.room.find(RUN, "5"), repo.room.find(RUN, "6")) == (first, second)
    assert trailers(repo, second)["Rage-Status"] == "unverified"
    assert repo.git("rev-parse", f"{second}^") == first


def test_trailers_of_others_are_ignored(repo: Repo) -> None:
    body = "x\n\nRage-Run: another\nRage-Item: 5"
    repo.commit_all({"a.py": "1\n"}, body)
    repo.commit_all({"a.py": "2\n"}, f"x\n\nRage-Run: {RUN}\nRage-Item: 55")
    repo.commit_all({"a.py": "3\n"}, f"x\n\nRage-Run: {RUN}\nRage-Item: 5\n\nno trailers any more")
    repo.commit_all({"a.py": "4\n"}, f"x\n\nRage-Run: {RUN}\nRage-Run: another\nRage-Item: 5")
    assert repo.room.find(RUN, "5") == ""


def test_find_looks_no_further_than_the_base_and_the_first_parent(repo: Repo) -> None:
    told = f"x\n\nRage-Run: {RUN}\nRage-Item: 5"
    repo.commit_all({"a.py": "1\n"}, told)
    assert repo.room.find(RUN, "5") != ""
    repo.room.pin(RUN, repo.base())
    assert repo.room.find(RUN, "5") == ""
    repo.git("switch", "-q", "-c", "side")
    repo.commit_all({"s.py": "1\n"}, told)
    repo.git("switch", "-q", "work")
    repo.commit_all({"b.py": "2\n"})
    repo.git("merge", "-q", "--no-edit", "side")
    assert repo.room.find(RUN, "5") == ""


def test_head_that_moved_is_refused(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    moved = repo.commit_all({"b.py": "b = 9\n"})
    with pytest.raises(RageError, match="HEAD moved from"):
        repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.room.head() == moved


def test_head_that_does_not_hold_the_base_is_refused(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    with pytest.raises(RageError, match="does not hold the tree"):
        repo.room.commit(RUN, an_item(), Base(tree, base.commit), tree, "", "verified")


@pytest.mark.parametrize("switch", [["-c", "main"], ["-c", "release/1.0"], ["--detach"]])
def test_never_commits_to_a_protected_branch_or_a_detached_head(
    repo: Repo, switch: list[str]
) -> None:
    """F115: also when the branch was switched during the run."""
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    repo.git("switch", "-q", *switch)
    with pytest.raises(RageError, match=r"HEAD moved: .*(protected|detached)"):
        repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.room.head() == base.commit


def test_commit_during_a_merge_is_refused(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    repo.write({".git/MERGE_HEAD": f"{base.commit}\n"})
    with pytest.raises(Refused, match="a merge in progress"):
        repo.room.commit(RUN, an_item(), base, tree, "", "verified")


def test_profile_that_forbids_commits(repo: Repo) -> None:
    repo.room = DeliverRoom(repo.path, repo.state, GitConfig(commit=False))
    with pytest.raises(Refused, match=r"git\.commit: false"):
        repo.deliver({"a.py": "a = 2\n"})


def test_unborn_branch_gets_a_root_commit(make: Callable[..., Repo]) -> None:
    repo = make()
    base = repo.base()
    assert base.commit == "" and repo.room.find(RUN, "5") == ""
    repo.room.pin(RUN, base)
    commit = repo.deliver({"a.py": "a\n"})
    assert repo.git("rev-list", "--parents", "HEAD") == commit
    assert repo.room.find(RUN, "5") == commit
    assert repo.status() == ""
    assert repo.room.commit(RUN, an_item(), base, repo.git("write-tree"), "", "verified") == commit


def test_sha256_repository(make: Callable[..., Repo]) -> None:
    repo = make("--object-format=sha256")
    repo.commit_all({"a.py": "a\n", "b.py": "b\n"})
    assert len(repo.deliver({"b.py": None, "c.py": "c\n"})) == 64
    assert repo.status() == ""


def test_linked_worktree(repo: Repo) -> None:
    other = repo.path.parent / "über dort"
    repo.git("worktree", "add", "-q", "-b", "side", str(other))
    linked = Repo(other)
    linked.state = repo.state
    linked.room = DeliverRoom(other, repo.state, GitConfig())
    commit = linked.deliver({"a.py": "a = 2\n"})
    assert repo.git("rev-parse", "side") == commit
    assert linked.status() == "" and repo.status() == ""


def test_shallow_clone_with_packed_refs(repo: Repo, tmp_path: Path) -> None:
    repo.commit_all({"a.py": "a = 0\n"})
    clone = tmp_path / "shallow"
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", str(clone))
    shallow = Repo(clone)
    shallow.git("config", "user.name", "U")
    shallow.git("config", "user.email", "u@example.org")
    shallow.git("remote", "remove", "origin")
    shallow.git("pack-refs", "--all")
    shallow.room.pin(RUN, shallow.base())
    commit = shallow.deliver({"a.py": "a = 2\n"})
    assert shallow.room.find(RUN, "5") == commit
    assert shallow.status() == ""


@pytest.mark.parametrize(
    "settings",
    [
        {"core.autocrlf": "true"},
        {"core.fileMode": "false"},
        {"core.ignoreCase": "true"},
        {"core.splitIndex": "true"},
        {"core.untrackedCache": "true"},
        {"commit.template": "no such file"},
        {"commit.cleanup": "strip"},
        {"commit.status": "false"},
        {"core.commentChar": "F"},
        {"log.showSignature": "true"},
        {"trailer.separators": "="},
        {"i18n.commitEncoding": "ISO-8859-1"},
        {"core.logAllRefUpdates": "false"},
        {"extensions.worktreeConfig": "true"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_of_a_person(repo: Repo, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        repo.git("config", name, value)
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n", "A.PY": "other\n"})
    commit = repo.room.commit(RUN, an_item(title="Für Ü"), base, tree, "", "verified")
    assert repo.git("rev-parse", "HEAD^{tree}") == tree
    assert repo.room.find(RUN, "5") == commit
    log = ["-c", "i18n.logOutputEncoding=UTF-8", "log", "-1", "--no-show-signature"]
    assert repo.git(*log, "--format=%s") == "Für Ü (#5)"
    assert repo.status() == ""


def test_identity_from_an_included_file(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    extra, top = repo.path.parent / "more.cfg", repo.path.parent / "global.cfg"
    extra.write_text("[user]\n\tname = Included\n\temail = i@example.org\n")
    top.write_text(f'[includeIf "gitdir:**/"]\n\tpath = {extra}\n')
    repo.git("config", "--unset", "user.name")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(top))
    repo.deliver({"a.py": "a = 2\n"})
    assert repo.git("log", "-1", "--format=%an") == "Included"


def test_git_variables_of_a_surrounding_hook_are_not_followed(
    repo: Repo, make: Callable[..., Repo], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make(name="other")
    head = other.commit_all({"o.py": "o\n"})
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    with monkeypatch.context() as inherited:
        inherited.setenv("GIT_DIR", str(other.path / ".git"))
        inherited.setenv("GIT_WORK_TREE", str(other.path))
        inherited.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
        commit = repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.git("rev-parse", "HEAD") == commit
    assert other.git("rev-parse", "HEAD") == head


def test_replace_refs_are_not_followed(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    fake = repo.git("commit-tree", "-m", "fake", repo.git("mktree"))
    repo.git("replace", base.commit, fake)
    commit = repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.git("--no-replace-objects", "rev-parse", f"{commit}^") == base.commit


def test_nothing_changed_is_an_empty_commit_with_its_trailers(repo: Repo) -> None:
    base = repo.base()
    commit = repo.room.commit(RUN, an_item(), base, base.tree, "", "unverified")
    assert repo.git("diff", "--name-only", "HEAD^", "HEAD") == ""
    assert repo.room.commit(RUN, an_item(), base, base.tree, "", "unverified") == commit


COMMIT_IN_A_PROCESS = """
import os, sys
from pathlib import Path
from rage_plugin.core.config import GitConfig
from rage_plugin.core.model import Base, Item
from rage_plugin.deliver import DeliverRoom
os.environ["VICTIM"] = str(os.getpid())
path, state, run, tree, base_tree, base = sys.argv[1:]
item = Item(run=run, id="5", position=0, title="T")
room = DeliverRoom(Path(path), Path(state), GitConfig())
print(room.commit(run, item, Base(base_tree, base), tree, "", "verified"))
"""


def test_two_processes_make_one_commit(repo: Repo) -> None:
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    args = [str(repo.path), str(repo.state), RUN, tree, base.tree, base.commit]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMMIT_IN_A_PROCESS, *args], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    told = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert told == {repo.room.head()}
    assert repo.git("rev-parse", "HEAD^") == base.commit


@pytest.mark.parametrize(
    ("hook", "when"),
    [("pre-commit", ""), ("commit-msg", ""), ("reference-transaction", "committed")],
)
def test_kill_at_any_point_leaves_one_commit(repo: Repo, hook: str, when: str) -> None:
    """An effect is looked up before it is repeated; nothing is left locked."""
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n", "n.py": "n\n"})
    script = repo.hook(hook, f'[ "{when}" ] && [ "$1" != "{when}" ] || kill -9 "$VICTIM"')
    args = [str(repo.path), str(repo.state), RUN, tree, base.tree, base.commit]
    killed = subprocess.run([sys.executable, "-c", COMMIT_IN_A_PROCESS, *args], check=False)
    assert killed.returncode == -9
    made = repo.room.head() != base.commit
    assert made == (hook == "reference-transaction")
    script.unlink()
    commit = repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert repo.git("rev-parse", f"{commit}^", "HEAD").split() == [base.commit, commit]
    assert repo.status() == ""
