"""What a candidate adds, line by line, and how big it is: for markers and for the scope breaker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.errors import RageError
from rage_plugin.core.markers import READ
from rage_plugin.verify.patch import ADDED_LIMIT, added_text
from rage_plugin.verify.tree import Trees

from .repositories import git, make, write
from .test_trees import SETTINGS, Model, model

__all__ = ["model"]

MARKER = "[SPEC_DEVIATION] two users are one"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {f"kept{n}": f"{n}\n" for n in range(3)}
    return make(tmp_path / "w ü", {**files, "a.py": "one\ntwo\nthree\nfour\n", "gone": "g\n"})


@pytest.fixture
def trees(root: Path) -> Trees:
    return Trees(root, root / ".git" / "rage")


def added(trees: Trees, base: str) -> str:
    return trees.added(base, trees.snapshot())


def test_only_lines_that_are_new(root: Path, trees: Trees) -> None:
    """F063: changed, inserted and new; neither removed lines nor what stands around them."""
    base = trees.snapshot()
    write(root, {"a.py": "one\n2\nthree\nfour\nfive", "new/b.md": "x\n\ny\n"})
    (root / "gone").unlink()
    assert added(trees, base) == "2\n\f\nfive\n\f\nx\n\ny\n"
    assert trees.size(base, trees.snapshot()) == (3, 2 + 1 + 3 + 1)
    assert trees.added(base, base) == ""
    assert trees.size(base, base) == (0, 0)


def test_content_that_looks_like_a_patch(root: Path, trees: Trees) -> None:
    """A line of a file is never taken for git's own."""
    base = trees.snapshot()
    fake = "@@ -0,0 +1,99 @@\n+++ b/x\n--- a/x\ndiff --git a/x b/x\n\\ No newline at end of file\n"
    write(root, {"a.py": fake + MARKER, "gone": f"-- {fake}", "z": "last\n"})
    text = added(trees, base)
    assert text == f"{fake}{MARKER}\n\f\n-- {fake}\f\nlast\n"
    assert trees.size(base, trees.snapshot()) == (3, (4 + 6) + (1 + 5) + 1)


@pytest.mark.parametrize("rule", ["* binary", "* -diff", "* -text", "* diff=odd", "* -crlf -merge"])
def test_attributes_hide_nothing(root: Path, trees: Trees, tmp_path: Path, rule: str) -> None:
    """An agent may write .gitattributes: what is text is not for it to say."""
    (tmp_path / "attributes").write_text("* binary\n")
    git(root, "config", "core.attributesFile", str(tmp_path / "attributes"))
    git(root, "config", "diff.odd.textconv", "true")
    git(root, "config", "diff.odd.command", "true")
    git(root, "config", "diff.external", "true")
    base = trees.snapshot()
    write(root, {".gitattributes": f"{rule}\n", "a.py": f"one\n{MARKER}\n"})
    assert MARKER in added(trees, base)
    assert trees.size(base, trees.snapshot()) == (2, 1 + 1 + 3)


def test_configuration_of_the_person_changes_nothing(root: Path, trees: Trees) -> None:
    for name, value in {
        "color.ui": "always",
        "color.diff": "always",
        "diff.context": "9",
        "diff.interHunkContext": "9",
        "diff.noprefix": "true",
        "diff.renames": "copies",
        "diff.wsErrorHighlight": "all",
        "diff.relative": "true",
        "diff.submodule": "log",
        "diff.orderFile": "nowhere",
        "diff.ignoreSubmodules": "all",
    }.items():
        git(root, "config", name, value)
    base = trees.snapshot()
    (root / "gone").rename(root / "moved")
    write(root, {"a.py": "ONE\ntwo\nTHREE\nfour\n"})
    assert added(trees, base) == "ONE\n\f\nTHREE\n\f\ng\n"
    assert trees.size(base, trees.snapshot()) == (3, 2 + 2 + 1 + 1)


def test_binary_files_are_files_without_lines(root: Path, trees: Trees) -> None:
    base = trees.snapshot()
    write(root, {"image": b"\x89PNG\0" + MARKER.encode(), "latin": "Größe\n".encode("latin-1")})
    assert added(trees, base) == "Gr\ufffd\ufffde\n"
    assert trees.size(base, trees.snapshot()) == (2, 1)


def test_odd_paths_modes_and_links(root: Path, trees: Trees) -> None:
    base = trees.snapshot()
    names = ["new\nline", '"quoted"', "tab\t", "@@ -1 +1 @@", "-dash", os.fsdecode(b"\xe4"), "ü ü"]
    write(root, {name: f"in {n}\n" for n, name in enumerate(names)})
    (root / "a.py").chmod(0o755)
    (root / "link").symlink_to("nowhere")
    lines = [line for line in added(trees, base).split("\n") if line not in ("", "\f")]
    assert sorted(lines) == [*(f"in {n}" for n in range(len(names))), "nowhere"]
    assert trees.size(base, trees.snapshot()) == (len(names) + 2, len(names) + 1)


def test_a_submodule_that_is_told_to_be_ignored_still_counts(tmp_path: Path) -> None:
    inner = make(tmp_path / "inner", {"i": "1"})
    root = make(tmp_path / "w", {"a": "1\n"})
    git(root, "submodule", "add", "-q", str(inner), "sub")
    git(root, "config", "-f", ".gitmodules", "submodule.sub.ignore", "all")
    git(root, "commit", "-qam", "sub")
    trees = Trees(root, root / ".git" / "rage")
    base = trees.snapshot()
    git(root / "sub", "commit", "-q", "--allow-empty", "-m", "more")
    assert trees.size(base, trees.snapshot()) == (1, 2)


def test_too_much_text_is_refused_and_never_cut(root: Path, trees: Trees) -> None:
    """A marker could stand in what is cut off, so there is no half answer."""
    base = trees.snapshot()
    line = b"0123456789abcde\n"
    (root / "data").write_bytes(line * 2**20 + MARKER.encode())
    with pytest.raises(RageError, match="adds more than 15 MB of text") as caught:
        added(trees, base)
    assert caught.value.kept and ".gitignore" in caught.value.next
    (root / "data").write_bytes(line * (7 * 2**17) + MARKER.encode())
    assert added(trees, base).endswith(f"{MARKER}\n")
    assert ADDED_LIMIT < READ, "what is handed on is read whole"


LINES = st.lists(st.sampled_from([b"", b"a", b"+", b"-", b"@@ -1 +1 @@", b"\\ No", b"\xff", b"\f"]))


@given(before=LINES, after=LINES, ends=st.booleans())
@SETTINGS
def test_every_line_that_is_new_is_there(
    model: Model, before: list[bytes], after: list[bytes], ends: bool
) -> None:
    """Whatever the lines hold: nothing new is missing, and nothing is there that is not new."""
    old, new = b"".join(line + b"\n" for line in before), b"\n".join(after) + b"\n" * ends
    a, b = model.hold({"a": old}), model.hold({"a": new})
    text = model.trees.added(a, b)
    files, size = model.trees.size(a, b)
    assert files == (old != new)
    lines = [line.decode("utf-8", "replace") for line in new.removesuffix(b"\n").split(b"\n")]
    lines = lines if new else []
    told = text.split("\n")[:-1]
    assert {line for line in lines if line.encode() not in before} - {"\ufffd"} <= set(told)
    assert set(told) <= {*lines, "\f"}
    assert size >= len([line for line in told if line != "\f"])


def test_what_is_read_ends_at_the_limit() -> None:
    """A file that grows without end costs no more memory than the limit."""

    def endless():  # type: ignore[no-untyped-def]
        yield b"@@ -0,0 +1,99999999999 @@\n"
        while True:
            yield b"+a line\n"

    with pytest.raises(RageError, match="too much to look through"):
        added_text(endless(), limit=2**20)
