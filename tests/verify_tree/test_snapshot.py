"""The hash of a work tree: right in odd repositories, and without a trace in the user's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rage_plugin.core.errors import RageError
from rage_plugin.verify.tree import NoHash, Trees

from .repositories import fingerprint, git, make, what_git_would_add, write


def _plain(tmp: Path) -> Path:
    return make(tmp / "w", {"a": "1", "b/c": "2"})


def _unborn(tmp: Path) -> Path:
    root = tmp / "w"
    root.mkdir()
    git(root, "init", "-q")
    write(root, {"a": "1"})
    return root


def _linked_worktree(tmp: Path) -> Path:
    main = make(tmp / "main", {"a": "1", "b": "2"})
    git(main, "worktree", "add", "-q", "-b", "linked", str(tmp / "linked tree"))
    write(main, {"a": "changed in the other one"})
    return tmp / "linked tree"


def _split_index(tmp: Path) -> Path:
    root = make(tmp / "w", {"a": "1", "b": "2"})
    git(root, "update-index", "--split-index")
    write(root, {"c": "3"})
    git(root, "add", "c")
    return root


def _unmerged(tmp: Path) -> Path:
    root = make(tmp / "w", {"a": "1"})
    git(root, "checkout", "-q", "-b", "other")
    write(root, {"a": "2"})
    git(root, "commit", "-qam", "2")
    git(root, "checkout", "-q", "main")
    write(root, {"a": "3"})
    git(root, "commit", "-qam", "3")
    git(root, "merge", "other", check=False)
    return root


def _detached(tmp: Path) -> Path:
    root = make(tmp / "w", {"a": "1"})
    git(root, "checkout", "-q", "--detach")
    return root


def _shallow(tmp: Path) -> Path:
    source = make(tmp / "source", {"a": "1"})
    write(source, {"a": "2"})
    git(source, "commit", "-qam", "2")
    git(tmp, "clone", "-q", "--depth", "1", source.as_uri(), "w")
    return tmp / "w"


def _submodule(tmp: Path) -> Path:
    inner = make(tmp / "inner", {"i": "1"})
    root = make(tmp / "w", {"a": "1"})
    git(root, "submodule", "add", "-q", str(inner), "sub")
    git(root, "commit", "-qm", "sub")
    write(root, {"sub/new": "inside"})
    return root


def _inside_a_submodule(tmp: Path) -> Path:
    return _submodule(tmp) / "sub"


def _nested_repository(tmp: Path) -> Path:
    root = make(tmp / "w", {"a": "1"})
    make(root / "nested", {"n": "1"})
    return root


def _odd_names(tmp: Path) -> Path:
    names = ["with space", "new\nline", "ümlaut", 'quo"te', "back\\slash", "-dash", ":(top)magic"]
    root = make(tmp / "w r\nü", {name: name for name in names})
    bad = os.fsdecode(b"latin-\xe4")
    write(root, {bad: "x", "dir with space/" + names[1]: "y", "*": "glob", "tab\t": "z"})
    return root


def _tracked_but_ignored(tmp: Path) -> Path:
    root = make(tmp / "w", {"kept.log": "1"})
    write(root, {".gitignore": "*.log\n", "other.log": "ignored", "kept.log": "2"})
    return root


def _hidden_bits(tmp: Path) -> Path:
    root = make(tmp / "w", {"assumed": "1", "skipped": "1"})
    git(root, "update-index", "--assume-unchanged", "assumed")
    git(root, "update-index", "--skip-worktree", "skipped")
    return root


def _autocrlf(tmp: Path) -> Path:
    root = make(tmp / "w", {"crlf-in-git": b"a\r\nb\r\n", "a": "1\n"})
    git(root, "config", "core.autocrlf", "true")
    git(root, "config", "core.safecrlf", "true")
    write(root, {"new": b"1\r\n2\r\n", "mixed": b"1\n2\r\n", "crlf-in-git": b"a\r\nc\r\n"})
    return root


def _modes(tmp: Path) -> Path:
    root = make(tmp / "w", {"run": "#!/bin/sh\n", "empty": "", "a": "1"})
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("a")
    (root / "dangling").symlink_to("nowhere/ü")
    return root


def _intent_to_add(tmp: Path) -> Path:
    root = make(tmp / "w", {"a": "1"})
    write(root, {"later": "x"})
    git(root, "add", "-N", "later")
    return root


def _sparse(tmp: Path) -> Path:
    root = make(tmp / "w", {"in/a": "1", "out/b": "2"})
    git(root, "sparse-checkout", "set", "in")
    write(root, {"in/a": "2"})
    return root


def _sha256(tmp: Path) -> Path:
    root = tmp / "w"
    root.mkdir()
    git(root, "init", "-q", "--object-format=sha256")
    write(root, {"a": "1"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "1")
    write(root, {"a": "2"})
    return root


def _info_exclude_and_staged_deletion(tmp: Path) -> Path:
    root = make(tmp / "w", {"a": "1", "gone": "2"})
    git(root, "rm", "-q", "--cached", "gone")
    write(root, {".git/info/exclude": "secret*\n", "secret.txt": "x"})
    return root


def _file_becomes_folder(tmp: Path) -> Path:
    root = make(tmp / "w", {"a": "1", "d/e": "2"})
    (root / "a").unlink()
    (root / "d/e").unlink()
    (root / "d").rmdir()
    write(root, {"a/b": "1", "d": "2"})
    return root


KINDS: list[Callable[[Path], Path]] = [
    *(_plain, _unborn, _linked_worktree, _split_index, _unmerged, _detached, _shallow),
    *(_submodule, _inside_a_submodule, _nested_repository, _odd_names, _tracked_but_ignored),
    *(_hidden_bits, _autocrlf, _modes, _intent_to_add, _sparse, _sha256),
    *(_info_exclude_and_staged_deletion, _file_becomes_folder),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_it_is_the_tree_that_git_would_add_and_leaves_no_trace(
    kind: Callable[[Path], Path], tmp_path: Path
) -> None:
    """F146: the hash is right from any kind of work tree; index, objects and mtimes stay."""
    root = kind(tmp_path)
    common = Path(git(root, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    before = fingerprint(tmp_path)
    trees = Trees(root, common / "rage")
    base = trees.snapshot()
    write(root, {"agent new": "x", "a.py": "y"})
    (root / "a.py").unlink()
    after = trees.snapshot()
    assert [(c.status, c.path) for c in trees.changes(base, after)] == [("A", "agent new")]
    assert trees.read(after, "agent new") == b"x"
    assert "agent new" in trees.untracked()
    assert trees.compose(after, {"agent new": base}) == base
    trees.ignored_fingerprint()
    trees.head_tree()
    (root / "agent new").unlink()
    assert trees.snapshot() == base
    assert fingerprint(tmp_path) == before
    if kind is _hidden_bits:
        git(root, "update-index", "--no-assume-unchanged", "assumed")
        git(root, "update-index", "--no-skip-worktree", "skipped")
    assert what_git_would_add(root, tmp_path) == base


def test_assumed_and_skipped_files_are_looked_at(tmp_path: Path) -> None:
    root = _hidden_bits(tmp_path)
    trees = Trees(root, tmp_path / "state")
    base = trees.snapshot()
    write(root, {"assumed": "2", "skipped": "2"})
    assert {c.path for c in trees.changes(base, trees.snapshot())} == {"assumed", "skipped"}


def test_a_sparse_checkout_keeps_what_is_not_on_disk(tmp_path: Path) -> None:
    trees = Trees(_sparse(tmp_path), tmp_path / "state")
    assert trees.paths(trees.snapshot()) == ("in/a", "out/b")


def test_the_same_state_from_any_folder_inside(tmp_path: Path) -> None:
    """F146: the answer does not depend on the folder it is asked from."""
    root = _plain(tmp_path)
    top, below = Trees(root, tmp_path / "s"), Trees(root / "b", tmp_path / "s")
    assert (top.root, top.snapshot()) == (below.root, below.snapshot())


def test_excluded_paths_are_literal_and_stay_out_even_when_staged(tmp_path: Path) -> None:
    root = _plain(tmp_path)
    trees = Trees(root, tmp_path / "state")
    base = trees.snapshot()
    odd = ["*", "x y ", " lead", "new\nline", "d[e]/f", "!bang", "#hash", "b\\s", "ü", "tab\t"]
    write(root, dict.fromkeys(odd, "1") | {"seen": "1", "de": "1"})
    make(root / "nested", {"n": "1"})
    exclude = [*odd, "nested/"]
    assert set(trees.untracked()) == {*exclude, "seen", "de"}
    seen = trees.snapshot(exclude)
    assert {c.path for c in trees.changes(base, seen)} == {"seen", "de"}
    git(root, "add", "--", "x y ")
    assert trees.snapshot(exclude) == seen
    assert "x y " in trees.paths(trees.snapshot())


def test_an_excluded_file_stays_out_though_a_rule_wants_it(tmp_path: Path) -> None:
    root = make(tmp_path / "w", {".gitignore": "*.x\n!keep.x\n"})
    trees = Trees(root, tmp_path / "state")
    base = trees.snapshot()
    write(root, {"keep.x": "1"})
    assert trees.snapshot(["keep.x"]) == base != trees.snapshot()


def test_the_ignore_file_of_the_person_counts_in_both_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"config": f"[core]\nexcludesFile = {tmp_path}/mine\n", "mine": "*.swp"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    root = _plain(tmp_path)
    trees = Trees(root, tmp_path / "state")
    base = trees.snapshot()
    write(root, {"x.swp": "1", "old": "2"})
    assert trees.snapshot(["old"]) == base


def test_a_write_within_the_same_tick_and_size_is_seen(tmp_path: Path) -> None:
    root = _plain(tmp_path)
    trees = Trees(root, tmp_path / "state")
    seen = set()
    for number in range(30):
        (root / "a").write_text(str(number % 10))
        if number % 3 == 0:
            git(root, "add", "a")
        seen.add((str(number % 10), trees.read(trees.snapshot(), "a")))
    assert seen == {(str(n), str(n).encode()) for n in range(10)}


def test_a_restored_mtime_hides_nothing(tmp_path: Path) -> None:
    root = _plain(tmp_path)
    git(root, "config", "core.trustctime", "false")
    os.utime(root / "a", (1, 1))
    git(root, "status")
    trees = Trees(root, tmp_path / "state")
    base = trees.snapshot()
    time.sleep(1.1)  # git may be built to compare the seconds of a ctime alone
    (root / "a").write_text("9")
    os.utime(root / "a", (1, 1))
    assert [c.path for c in trees.changes(base, trees.snapshot())] == ["a"]


def test_replace_refs_and_inherited_variables_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = _plain(tmp_path)
    tree = Trees(root, tmp_path / "state").head_tree()
    blob = git(root, "rev-parse", "HEAD:a")
    other = git(root, "rev-parse", "HEAD:b/c")
    git(root, "replace", blob, other)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    trees = Trees(root, tmp_path / "state")
    assert trees.read(tree, "a") == b"1"
    assert trees.snapshot() == tree


def test_what_cannot_be_hashed_has_no_hash(tmp_path: Path) -> None:
    """Law 5: an error is never read as "the same"."""
    root = _plain(tmp_path)
    trees = Trees(root, tmp_path / "state")
    base = trees.snapshot()
    (root / "empty repo").mkdir()
    git(root / "empty repo", "init", "-q")
    with pytest.raises(NoHash, match="could not be hashed") as caught:
        trees.snapshot()
    assert caught.value.next
    (root / "empty repo" / ".git").rename(tmp_path / "aside")
    assert trees.snapshot() == base


def test_a_failing_filter_is_no_hash(tmp_path: Path) -> None:
    root = make(tmp_path / "w", {"a": "1", ".gitattributes": "*.x filter=broken\n"})
    git(root, "config", "filter.broken.clean", "false")
    git(root, "config", "filter.broken.required", "true")
    write(root, {"b.x": "1"})
    with pytest.raises(NoHash):
        Trees(root, tmp_path / "state").snapshot()


def test_leftovers_of_a_kill_are_overcome(tmp_path: Path) -> None:
    root = _plain(tmp_path)
    trees = Trees(root, tmp_path / "state")
    base = trees.snapshot()
    (index,) = (tmp_path / "state").glob("trees/*/index")
    Path(f"{index}.lock").touch()
    assert trees.snapshot() == base
    index.write_bytes(b"torn")
    assert trees.snapshot() == base


def test_an_object_that_was_pruned_is_hashed_again(tmp_path: Path) -> None:
    root = _plain(tmp_path)
    write(root, {"a": "staged and unstaged"})
    git(root, "add", "a")
    trees = Trees(root, tmp_path / "state")
    tree = trees.snapshot()
    git(root, "reset", "-q")
    git(root, "gc", "-q", "--prune=now")
    assert trees.snapshot() == tree
    assert trees.read(tree, "a") == b"staged and unstaged"


def test_processes_side_by_side_agree(tmp_path: Path) -> None:
    root = make(tmp_path / "w", {f"f{n}": str(n) for n in range(50)})
    write(root, {"f1": "changed"})
    program = (
        "import sys; from pathlib import Path; from rage_plugin.verify.tree import Trees\n"
        "t = Trees(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print({t.snapshot() for _ in range(5)})"
    )
    command = [sys.executable, "-c", program, str(root), str(tmp_path / "state")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    expected = f"{ {Trees(root, tmp_path / 'other').snapshot()} }\n".encode()
    assert [process.communicate()[0] for process in started] == [expected] * 4


def test_head_tree(tmp_path: Path) -> None:
    root = _unborn(tmp_path)
    trees = Trees(root, tmp_path / "state")
    assert trees.head_tree() == trees.empty_tree
    assert trees.paths(trees.head_tree()) == ()
    git(root, "add", "-A")
    git(root, "commit", "-qm", "1")
    assert trees.head_tree() == git(root, "rev-parse", "HEAD^{tree}")
    (root / ".git/refs/heads/main").write_text("0123456789" * 4 + "\n")
    with pytest.raises(RageError):
        trees.head_tree()


def test_no_repository_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(RageError) as caught:
        Trees(tmp_path, tmp_path / "state")
    assert caught.value.next == "git init"


def test_ignored_files_are_listed_without_what_tools_rebuild(tmp_path: Path) -> None:
    root = make(tmp_path / "w", {".gitignore": "*.cfg\nout/\n.venv\nnode_modules\n__pycache__\n"})
    seen = {"a.cfg": "1", "out/deep/x": "2", "sub/b.cfg": "3"}
    rebuilt = [".venv/lib/x.py", "node_modules/y", "out/__pycache__/z", "out/p.egg-info/PKG"]
    write(root, {**seen, **dict.fromkeys(rebuilt, "r"), "not ignored": "n"})
    trees = Trees(root, tmp_path / "state")
    before = trees.ignored_fingerprint()
    assert set(before) == set(seen)
    write(root, {"a.cfg": "longer"})
    assert {p for p, v in trees.ignored_fingerprint().items() if before[p] != v} == {"a.cfg"}
