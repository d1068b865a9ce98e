"""How git is asked: what it may inherit, what it may take, and what a person is told."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from rage_plugin.core.errors import Refused
from rage_plugin.repository import (
    GitFailed,
    GitTimeout,
    Repository,
    Result,
    environment,
    joined,
    quoted,
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folder = tmp_path / 'a "place":\nü'
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    return folder


def test_places_with_a_newline_are_found_from_below(root: Path) -> None:
    below = root / "x" / "y"
    below.mkdir(parents=True)
    place = Repository(below)
    assert (place.root, place.git_dir) == (root.resolve(), (root / ".git").resolve())
    assert place.common_dir == place.git_dir


def test_only_what_says_who_a_person_is_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GPG_TTY"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    monkeypatch.setenv("LANGUAGE", "de")
    plumbing = environment({"GIT_INDEX_FILE": "mine"}, plumbing=True)
    assert plumbing["GIT_INDEX_FILE"] == "mine"
    assert not {"GIT_DIR", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GPG_TTY", "LANGUAGE"} & set(
        plumbing
    )
    person = environment({}, plumbing=False)
    assert (person["GIT_AUTHOR_NAME"], person["LANGUAGE"]) == ("Somebody", "de")
    assert "GIT_LITERAL_PATHSPECS" not in person


def test_a_failure_is_the_line_that_names_the_cause(root: Path) -> None:
    with pytest.raises(GitFailed, match=r"^git rev-parse failed \(128\): fatal: ") as caught:
        Repository(root).run("rev-parse", "--verify", "nothing")
    assert "\n" not in caught.value.what


def test_a_command_ends_with_all_it_started(root: Path) -> None:
    """A git that waits for its child is ended with it, within the limit."""
    mark = f"sleep 3{time.time_ns() % 10**8}"
    began = time.monotonic()
    with pytest.raises(GitTimeout, match=r"did not end within 0\.5 seconds"):
        Repository(root, limit_s=0.5).run("-c", f"alias.slow=!{mark}", "slow")
    assert time.monotonic() - began < 20
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert mark not in listed.stdout.splitlines()


def test_no_work_tree_is_one_line(tmp_path: Path, root: Path) -> None:
    with pytest.raises(Refused, match="not a git repository"):
        _ = Repository(tmp_path).root
    with pytest.raises(Refused, match="inside a git directory"):
        _ = Repository(root / ".git").root
    with pytest.raises(Refused, match="There is no folder"):
        _ = Repository(tmp_path / "gone").root


def test_names_are_read_as_they_were_written() -> None:
    names = ["a\nb", "ü", os.fsdecode(b"\xff")]
    assert Result(0, joined(names), b"").names == names
    assert quoted(Path('a"b\\c\nd')) == '"a\\"b\\\\c\\nd"'
