"""Trees compared, composed, written and restored."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rage_plugin.core.errors import RageError
from rage_plugin.verify.tree import Trees

from .repositories import fingerprint, git, make, write

NAMES = ("a", "b", "a/x", "a/y", "b/x/z", "ü n\n")
CONTENT = st.sampled_from([b"", b"1", b"2\n", b"\xff\x00"])


def _fits_on_a_disk(files: dict[str, bytes]) -> bool:
    """No name is a file and a folder at once."""
    return not any(other.startswith(f"{name}/") for name in files for other in files)


FILES = st.dictionaries(st.sampled_from(NAMES), CONTENT, max_size=5).filter(_fits_on_a_disk)


class Model:
    """A repository whose work tree can be made to hold any files, and their tree."""

    def __init__(self, folder: Path) -> None:
        self.root = make(folder / "w", {"base": "0"})
        self.trees = Trees(self.root, folder / "state")

    def hold(self, files: dict[str, bytes]) -> str:
        for path in sorted(self.root.rglob("*"), reverse=True):
            if ".git" in path.relative_to(self.root).parts:
                continue
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        write(self.root, dict(files))
        return self.trees.snapshot()

    def held(self) -> dict[str, bytes]:
        paths = (p for p in self.root.rglob("*") if p.is_file())
        relative = ((p.relative_to(self.root), p) for p in paths)
        return {str(r): p.read_bytes() for r, p in relative if r.parts[0] != ".git"}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with tempfile.TemporaryDirectory() as folder:
        patch = pytest.MonkeyPatch()
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield Model(Path(folder))
        patch.undo()


SETTINGS = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@SETTINGS
@given(before=FILES, after=FILES)
def test_any_tree_can_be_restored_from_any_other(
    model: Model, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    wanted = model.hold(before)
    current = model.hold(after)
    assert {c.path for c in model.trees.changes(current, wanted)} == {
        name for name in {*before, *after} if before.get(name) != after.get(name)
    }
    assert model.trees.restore(current, wanted) == ()
    assert model.held() == before
    assert model.trees.snapshot() == wanted
    # A repetition after an interruption finds nothing to do and nothing in its way.
    assert model.trees.restore(current, wanted) == ()


@SETTINGS
@given(base=FILES, other=FILES, taken=st.sets(st.sampled_from(NAMES)))
def test_a_composed_tree_is_base_with_paths_of_another(
    model: Model, base: dict[str, bytes], other: dict[str, bytes], taken: set[str]
) -> None:
    a, b = model.hold(base), model.hold(other)
    expected = {k: v for k, v in base.items() if k not in taken}
    for path in sorted(taken & set(other)):
        for name in list(expected):  # a file and a folder cannot share a name: the taken one wins
            if name.startswith(f"{path}/") or path.startswith(f"{name}/"):
                del expected[name]
        expected[path] = other[path]
    composed = model.trees.compose(a, {path: b if path in other else None for path in taken})
    got = model.trees.read_many(composed, model.trees.paths(composed))
    assert got == expected


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "w", {"a": "base\n", "gone": "g", "d/e": "e", "run": "#!/bin/sh\n"})


@pytest.fixture
def trees(root: Path) -> Trees:
    return Trees(root, root / ".git" / "rage")


def test_restore_touches_nothing_else(root: Path, trees: Trees) -> None:
    base = trees.snapshot()
    write(root, {"a": "new\n", "added/deep/f": "1"})
    (root / "gone").unlink()
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("a")
    current = trees.snapshot()
    before = fingerprint(root)
    assert trees.restore(current, base) == ()
    assert trees.snapshot() == base
    after = fingerprint(root)
    assert {p for p in {*before, *after} if before.get(p) != after.get(p)} == {
        *("a", "gone", "run", "link", "added/deep/f")
    }
    assert not (root / "added").exists()
    assert after["a"][2] > before["a"][2]


def test_restore_leaves_alone_what_someone_wrote_since(root: Path, trees: Trees) -> None:
    base = trees.snapshot()
    write(root, {"a": "agent\n", "added": "agent", "d/e": "agent"})
    (root / "gone").unlink()
    current = trees.snapshot()
    write(root, {"a": "person\n", "gone": "person", "added": "person"})
    assert set(trees.restore(current, base)) == {"a", "gone", "added"}
    assert (root / "a").read_text() == "person\n"
    assert (root / "gone").read_text() == "person"
    assert (root / "added").read_text() == "person"
    assert (root / "d/e").read_text() == "e"


def test_restore_writes_through_no_symlink(root: Path, trees: Trees, tmp_path: Path) -> None:
    base = trees.snapshot()
    (root / "d/e").unlink()
    (root / "d").rmdir()
    current = trees.snapshot()
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "d").symlink_to(outside)
    assert trees.restore(current, base) == ("d/e",)
    assert list(outside.iterdir()) == []


def test_restore_keeps_a_folder_that_holds_something_else(root: Path, trees: Trees) -> None:
    write(root, {".gitignore": "*.tmp\n"})
    base = trees.snapshot()
    (root / "gone").unlink()
    write(root, {"new/f": "1", "new/x.tmp": "kept", "gone/y": "2", "gone/x.tmp": "kept"})
    current = trees.snapshot()
    assert trees.restore(current, base) == ("gone",)
    assert (root / "new/x.tmp").exists()
    assert (root / "gone/x.tmp").exists()
    assert not (root / "new/f").exists()


def test_a_delta_is_written_as_a_checkout_would(root: Path, trees: Trees, tmp_path: Path) -> None:
    git(root, "config", "filter.up.smudge", "tr a-z A-Z")
    git(root, "config", "filter.up.clean", "tr A-Z a-z")
    write(root, {".gitattributes": "*.up filter=up\n*.dos text eol=crlf\n"})
    write(root, {"x.up": "ABC", "y.dos": b"1\r\n", "bin/run": "r", "ü\n": "odd"})
    (root / "bin/run").chmod(0o755)
    (root / "link").symlink_to("nowhere")
    wanted = trees.snapshot()
    assert trees.read(wanted, "x.up") == b"abc"
    assert trees.read(wanted, "link") == b"nowhere"
    # The work tree has other attributes now: those of the wanted tree count.
    (root / ".gitattributes").unlink()
    into = tmp_path / "into"
    written, removed = trees.write_delta(trees.head_tree(), wanted, into)
    assert set(written) == {".gitattributes", "x.up", "y.dos", "bin/run", "ü\n", "link"}
    assert removed == ()
    assert (into / "x.up").read_text() == "ABC"
    assert (into / "y.dos").read_bytes() == b"1\r\n"
    assert (into / "bin/run").stat().st_mode & 0o111
    assert (into / "link").readlink() == Path("nowhere")
    written, removed = trees.write_delta(wanted, trees.head_tree(), tmp_path / "back")
    assert (written, set(removed)) == ((), {".gitattributes", *removed})
    assert not (tmp_path / "back/a").exists()


def test_submodules_are_left_where_they_are(tmp_path: Path) -> None:
    inner = make(tmp_path / "inner", {"i": "1"})
    root = make(tmp_path / "w", {"a": "1"})
    trees = Trees(root, root / ".git" / "rage")
    base = trees.snapshot()
    git(root, "submodule", "add", "-q", str(inner), "sub")
    current = trees.snapshot()
    assert trees.write_delta(current, base, tmp_path / "i")[1] == (".gitmodules",)
    assert trees.restore(current, base) == ("sub",)
    assert (root / "sub/i").exists()
    assert trees.read(current, "sub") is None


def test_a_candidate_is_published_for_a_commit(root: Path, trees: Trees) -> None:
    write(root, {"d/new": "candidate"})
    tree = trees.snapshot()
    missing = git(root, "cat-file", "-t", tree, check=False)
    assert missing == ""
    trees.publish(tree)
    commit = git(root, "commit-tree", "-m", "x", tree)
    git(root, "fsck", "--strict", commit)
    assert git(root, "show", f"{commit}:d/new") == "candidate"


def test_a_store_is_renewed_with_the_trees_of_live_runs(root: Path, trees: Trees) -> None:
    write(root, {"a": "live"})
    live = trees.snapshot()
    write(root, {"a": "dead", "big": os.urandom(100_000)})
    dead = trees.snapshot()
    store = trees.objects
    assert not trees.rotate([live])
    assert trees.rotate([live], limit=1000)
    assert not store.exists()
    assert trees.read(live, "a") == b"live"
    other = Trees(root, root / ".git" / "rage")
    with pytest.raises(Exception, match="git ls-tree failed"):
        other.paths(dead)
    assert other.paths(live) == trees.paths(live)
    # The work tree still holds it, so its hash can be had again.
    assert other.snapshot() == dead
    assert other.read(dead, "a") == b"dead"


def test_a_store_that_was_deleted_is_one_line(tmp_path: Path) -> None:
    """Somebody removes `.git/rage` while checks run: no fault, and what is left to do is said."""
    model = Model(tmp_path)
    tree = model.hold({"a": b"1"})
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(RageError, match="is gone"):
        model.trees.changes(model.trees.empty_tree, tree)
