"""What the review of an item records of the workspace, on a real repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rage_plugin.review import WorkspaceSurvey


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folder = tmp_path / "ein ort ü"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Somebody")
    git(folder, "config", "user.email", "somebody@example.invalid")
    return folder


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_review_names_what_a_person_would_look_at(root: Path) -> None:
    """F009: head, branch, dirty paths, instruction files, branches of the item, prior attempts."""
    for name in ("AGENTS.md", "old name", "a\nb.txt", "kept.txt"):
        (root / name).write_text("x\n", "utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "start")
    head = git(root, "rev-parse", "HEAD")
    for branch in ("fix/5-sums", "fix/15-other", "issue-5"):
        git(root, "branch", branch)
    git(root, "update-ref", "refs/rage/run1/5", head)
    git(root, "update-ref", "refs/rage/run1/15", head)
    (root / "a\nb.txt").write_text("y\n", "utf-8")
    git(root, "mv", "old name", "new name")
    (root / "untracked.txt").write_text("x\n", "utf-8")
    found = WorkspaceSurvey(root).review("5", ["tests/test_add.py"])
    assert found == {
        "head": head,
        "branch": "main",
        "dirty": ["a\nb.txt", "new name", "old name"],
        "dirty_count": 3,
        "instructions": ["AGENTS.md"],
        "branches": ["fix/5-sums", "issue-5"],
        "prior_attempts": ["refs/rage/run1/5"],
        "gates": ["tests/test_add.py"],
    }


def test_an_unborn_branch_has_no_head(root: Path) -> None:
    found = WorkspaceSurvey(root).review("5", [])
    assert (found["head"], found["branch"], found["dirty"]) == ("", "main", [])


def test_a_git_of_somebody_elses_is_not_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of a surrounding hook point to another repository."""
    (root / "x").write_text("x", "utf-8")
    git(root, "add", "x")
    git(root, "commit", "-q", "-m", "start")
    head = git(root, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(root / "nowhere"))
    assert WorkspaceSurvey(root).review("5", [])["head"] == head
