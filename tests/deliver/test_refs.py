"""What a run keeps alive beside the branch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.model import Base
from rage_plugin.deliver.refs import base_ref, ref

from .conftest import RUN, Repo


def test_base_outlives_a_gc_and_a_rewritten_branch(repo: Repo) -> None:
    base = repo.base()
    repo.room.pin(RUN, base)
    repo.git("switch", "-q", "--orphan", "elsewhere")
    repo.git("branch", "-q", "-D", "work")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("rev-parse", f"refs/rage/{RUN}/base") == base.commit
    repo.git("ls-tree", "-r", base.tree)


def test_first_base_of_a_run_stays(repo: Repo) -> None:
    base = repo.base()
    repo.room.pin(RUN, base)
    repo.deliver({"a.py": "a = 2\n"})
    repo.room.pin(RUN, repo.base())
    assert repo.git("rev-parse", f"refs/rage/{RUN}/base") == base.commit
    assert repo.room.find(RUN, "5") != ""


def test_base_of_an_unborn_branch_is_a_commit_without_parent(make: Callable[..., Repo]) -> None:
    repo = make()
    tree = repo.work({"a.py": "a\n"})
    repo.room.pin(RUN, Base(tree, ""))
    name = f"refs/rage/{RUN}/base"
    assert repo.git("rev-parse", f"{name}^{{tree}}") == tree
    assert len(repo.git("rev-list", "--parents", name).split()) == 1
    assert repo.git("for-each-ref", "refs/heads") == ""


def test_failed_candidate_is_kept_without_moving_anything(repo: Repo) -> None:
    head = repo.room.head()
    tree = repo.work({"a.py": "a = 'wrong'\n", "n.py": "n\n"})
    before = repo.status()
    name = repo.room.keep(RUN, "5", tree)
    shutil.rmtree(repo.state / "trees")
    assert name == f"refs/rage/{RUN}/5"
    assert repo.git("rev-parse", f"{name}^{{tree}}", f"{name}^").split() == [tree, head]
    assert repo.git("diff", "--name-only", "HEAD", name) == "a.py\nn.py"
    assert (repo.room.head(), repo.status()) == (head, before)
    repo.git("fsck", "--strict")


def test_second_candidate_does_not_lose_the_first(repo: Repo) -> None:
    first = repo.work({"a.py": "a = 'wrong'\n"})
    name = repo.room.keep(RUN, "5", first)
    assert repo.room.keep(RUN, "5", first) == name
    once = repo.git("rev-parse", name)
    repo.room.keep(RUN, "5", repo.work({"a.py": "a = 'wrong again'\n"}))
    assert repo.git("rev-parse", f"{name}^2") == once
    assert repo.git("rev-parse", f"{name}^1") == repo.room.head()


def test_keeping_needs_no_identity_and_no_hook(repo: Repo) -> None:
    repo.git("config", "--unset", "user.name")
    repo.git("config", "user.useConfigOnly", "true")
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", "false")
    repo.hook("reference-transaction", "exit 1")
    repo.room.keep(RUN, "5", repo.work({"a.py": "x\n"}))
    repo.room.pin(RUN, repo.base())


@pytest.mark.parametrize(
    "ident", ["5", "base", "..", "a/b", "x.lock", "@{u}", "ü ~^:?*[\\\n", "-f", "@", ".", ""]
)
def test_odd_ids_are_kept_apart(repo: Repo, ident: str) -> None:
    repo.room.pin(RUN, repo.base())
    name = repo.room.keep(RUN, ident, repo.work({"a.py": "x\n"}))
    assert name != f"refs/rage/{RUN}/base"
    assert name.count("/") == 3
    assert repo.git("rev-parse", f"refs/rage/{RUN}/base") == repo.room.head()


@given(st.text(max_size=30), st.text(max_size=30))
def test_two_ids_never_share_a_ref(one: str, other: str) -> None:
    assert (ref("r", one) == ref("r", other)) == (one == other)
    assert ref("r", one) != base_ref("r")


def test_encoded_ids_are_legal_refs() -> None:
    for code in range(0x100):
        name = ref("r", chr(code))
        assert subprocess.run(["git", "check-ref-format", name], check=False).returncode == 0, name
