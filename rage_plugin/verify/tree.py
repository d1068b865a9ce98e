"""The work tree as git trees: hash, compare, compose, write and restore.

Separate because it alone says what a tree is to RAGE; the private index and object store that keep
the user's own index, objects and mtimes identical are in `private.py`.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO

from rage_plugin.core.errors import RageError
from rage_plugin.core.model import Change
from rage_plugin.repository import GITLINK, Entry, GitFailed, Repository, Result, joined, prune

from .patch import added_text, size_of
from .private import STORE_LIMIT, NoHash, Private

__all__ = ["Entry", "NoHash", "Trees", "real_parents", "rebuilt"]

# Content that tools rebuild: neither evidence of a change nor worth a walk.
CACHES = frozenset(
    {
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".cache"),
        *(".tox", ".nox", ".eggs", ".gradle", ".next", ".nuxt", ".parcel-cache", ".turbo"),
        *("build", "dist", "target", "htmlcov", ".ipynb_checkpoints"),
    }
)
DEPENDENCIES = frozenset({".venv", "venv", "node_modules", "bower_components", ".direnv", ".pixi"})


class Trees:
    """The trees of one workspace; `state` is the folder beside `rage.db`.

    Tree names are 40 (or 64) hexadecimal digits. Paths are relative to `root` with `/`, and hold
    undecodable bytes as surrogates (`os.fsdecode`).
    """

    place: Repository
    """The repository itself, for what is no tree."""
    root: Path
    """Top level of the work tree (real path)."""
    git_dir: Path
    """This work tree's own git directory (real path)."""
    common_dir: Path
    """The git common directory (real path), shared by all worktrees of the repository."""
    state: Path
    """RAGE's state folder (real path)."""

    def __init__(self, workspace: Path, state: Path) -> None:
        """Open the repository that `workspace` (any folder inside it) belongs to."""
        self.place = place = Repository(workspace)
        self.root, self.git_dir, self.common_dir = place.root, place.git_dir, place.common_dir
        self.state = state.resolve()
        self._private = Private(place, self.state)
        self._entries: dict[str, dict[str, Entry]] = {}

    # --- reading -------------------------------------------------------------------------------

    def head_tree(self) -> str:
        """The tree of HEAD; the empty tree on an unborn branch."""
        ask = self._private.git
        try:
            return ask("rev-parse", "--verify", "--quiet", "HEAD^{tree}").text
        except GitFailed:
            branch = ask("symbolic-ref", "--quiet", "HEAD").text
            if branch in ask("for-each-ref", "--format=%(refname)", branch).text.split("\n"):
                raise  # the branch exists, so its tree is unreadable, not absent
            return self.empty_tree

    @cached_property
    def empty_tree(self) -> str:
        """The tree without any path, in this repository's hash."""
        return self._private.git("hash-object", "-t", "tree", "-w", "--stdin").text

    def untracked(self) -> tuple[str, ...]:
        """Files that are neither ignored nor tracked now, sorted."""
        command = ("ls-files", "-z", "--others", "--exclude-standard")
        with self._private.user_index() as index:
            return tuple(sorted(self._private.git(*command, index=index).names))

    def changes(self, a: str, b: str) -> tuple[Change, ...]:
        """What leads from tree `a` to tree `b`: no renames, sorted by path."""
        fields = self._private.git("diff-tree", "-r", "-z", "--raw", "--no-renames", a, b).names
        pairs = zip(fields[::2], fields[1::2], strict=True)
        found = (Change(status=meta.split(" ")[4][0], path=path) for meta, path in pairs)
        return tuple(sorted(found, key=lambda change: change.path))

    def added(self, a: str, b: str) -> str:
        """The lines that tree `b` adds to tree `a`, text files only; `RageError` above 15 MB.

        Places that do not touch are apart by a line with a form feed.
        """
        with tempfile.TemporaryFile() as out:
            self._compare(a, b, "--patch", "--unified=0", stdout=out)
            out.seek(0)
            return added_text(out)

    def size(self, a: str, b: str) -> tuple[int, int]:
        """Files that differ between two trees, and lines added or removed in them."""
        return size_of(self._compare(a, b, "--numstat", "-z").names)

    def _compare(self, a: str, b: str, *how: str, stdout: IO[bytes] | None = None) -> Result:
        """`git diff-tree`, where what is text does not depend on attributes or configuration."""
        plain = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        submodules = ("--ignore-submodules=none", "--submodule=short")
        with tempfile.TemporaryDirectory(dir=self._private.folder) as empty:
            # An agent may write `* binary` into .gitattributes, which are read from the work tree.
            place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": empty}
            return self.place.run(
                *("-C", empty, "-c", "core.attributesFile=/dev/null"),
                *("diff-tree", "-r", *how, *plain, *submodules, a, b),
                stdout=stdout,
                index=self._private.folder / "none",
                env=self.environment() | place,
            )

    def entries(self, tree: str) -> Mapping[str, Entry]:
        """Mode and object of every path of a tree."""
        if tree not in self._entries:
            found = {}
            for line in self._private.git("ls-tree", "-r", "-z", "--full-tree", tree).names:
                meta, path = line.split("\t", 1)
                mode, _, oid = meta.split(" ")
                found[path] = Entry(mode, oid)
            # Trees never change, but four whole ones are as many as a judgement looks at.
            while len(self._entries) >= 4:
                del self._entries[next(iter(self._entries))]
            self._entries[tree] = found
        return self._entries[tree]

    def not_as_stored(self, tree: str, sizes: Mapping[str, int]) -> list[str]:
        """Files of `tree` whose bytes on disk are not the blob's, `sizes` being those on disk.

        Line ends and the like change the size; a file with a filter is taken to differ.
        """
        differing = set()
        for line in self._private.git("ls-tree", "-r", "-l", "-z", "--full-tree", tree).names:
            meta, path = line.split("\t", 1)
            if path in sizes and meta.split()[3] != str(sizes[path]):
                differing.add(path)
        known = [path for path in self.entries(tree) if path in sizes]
        fields = self._private.git(
            *("check-attr", "-z", "--stdin", "filter"), stdin=joined(known)
        ).out.split(b"\0")  # a value may be empty
        for name, value in zip(fields[::3], fields[2::3], strict=False):
            if value not in (b"unspecified", b"unset"):
                differing.add(os.fsdecode(name))
        return sorted(differing)

    def paths(self, tree: str) -> tuple[str, ...]:
        """Every path of a tree, sorted."""
        return tuple(sorted(self.entries(tree)))

    def read(self, tree: str, path: str) -> bytes | None:
        """The blob at `path` as stored (a symlink's target); None if there is no file."""
        return self.read_many(tree, [path]).get(path)

    def read_many(self, tree: str, paths: Sequence[str]) -> dict[str, bytes]:
        """The blobs at `paths`, those that exist, through one process."""
        entries = self.entries(tree)
        wanted = [p for p in paths if p in entries and entries[p].mode != GITLINK]
        asked = "".join(f"{entries[p].oid}\n" for p in wanted).encode()
        out = self._private.git("cat-file", "--batch", stdin=asked).out if wanted else b""
        found, at = {}, 0
        for path in wanted:
            head, _, _ = out[at : at + 200].partition(b"\n")
            if head.endswith(b"missing"):
                raise RageError(f"The content of {path!r} in tree {tree} is gone")
            begin = at + len(head) + 1
            end = begin + int(head.rsplit(b" ", 1)[1])
            found[path] = out[begin:end]
            at = end + 1
        return found

    def ignored_fingerprint(self) -> Mapping[str, str]:
        """`size:mtime_ns` by path of git-ignored files, without dependency folders and caches."""
        found = {}
        for path in self.ignored_files():
            try:
                info = (self.root / path).lstat()
            except FileNotFoundError:
                continue
            found[path] = f"{info.st_size}:{info.st_mtime_ns}"
        return found

    def ignored(self) -> tuple[str, ...]:
        """What git ignores, whole folders as one path that ends with `/`, sorted."""
        command = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        with self._private.user_index() as index:
            return tuple(sorted(self._private.git(*command, index=index).names))

    def ignored_files(self) -> tuple[str, ...]:
        """Git-ignored files one by one, without dependency folders and caches, sorted."""
        found: list[str] = []
        for path in self.ignored():
            if any(rebuilt(part) for part in path.rstrip("/").split("/")):
                continue
            if not path.endswith("/"):
                found.append(path)
                continue
            for folder, folders, files in os.walk(self.root / path):
                folders[:] = [f for f in folders if f != ".git" and not rebuilt(f)]
                links = [f for f in folders if (Path(folder) / f).is_symlink()]
                below = Path(folder).relative_to(self.root)
                found += [(below / name).as_posix() for name in (*files, *links)]
        return tuple(sorted(found))

    # --- hashing -------------------------------------------------------------------------------

    def snapshot(self, exclude: Sequence[str] = ()) -> str:
        """The tree of the work tree now, without the paths in `exclude`; raises `NoHash`."""
        return self._private.snapshot(exclude)

    # --- composing and writing -----------------------------------------------------------------

    def compose(self, base: str, overrides: Mapping[str, str | None]) -> str:
        """Tree `base` in which each path is taken from the tree named.

        With None, or where the named tree has no such path, the path is absent.
        """
        removed, added = [], []
        absent = "0" * len(base)
        for path, tree in overrides.items():
            entry = self.entries(tree).get(path) if tree is not None else None
            if entry is None:
                removed.append(f"0 {absent}\t{path}\0")
            else:
                added.append(f"{entry.mode} {entry.oid}\t{path}\0")
        with self._private.temporary_index(base) as index:
            # Removals first, so that a file can take the place of a folder and the reverse.
            command = ("update-index", "--add", "--replace", "-z", "--index-info")
            lines = os.fsencode("".join([*removed, *added]))
            self._private.git(*command, stdin=lines, index=index)
            return self._private.git("write-tree", index=index).text

    def write_delta(
        self, current: str, wanted: str, into: Path
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write the files of `wanted` that differ from `current` below `into`.

        Modes and symlinks are kept and filters applied as `git checkout` would. Returns the paths
        written and the paths to remove. Submodules are left out of both: their content is not in
        the tree.
        """
        changes = self.changes(current, wanted)
        old, new = self.entries(current), self.entries(wanted)
        written = tuple(c.path for c in changes if c.path in new and new[c.path].mode != GITLINK)
        removed = tuple(
            c.path for c in changes if c.path not in new and old[c.path].mode != GITLINK
        )
        into.mkdir(parents=True, exist_ok=True)
        if written:
            with self._private.temporary_index(wanted) as index:
                # An empty work tree, so that .gitattributes come from `wanted` and not from disk.
                place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(into)}
                command = ("-C", str(into), "checkout-index", "--force", "-z", "--stdin")
                self._private.git(*command, stdin=joined(written), index=index, env=place)
        return written, removed

    def restore(self, current: str, wanted: str) -> tuple[str, ...]:
        """Take the work tree from `current` to `wanted`, touching only paths that differ.

        A path that no longer holds what `current` says is left alone and returned. Folders that
        became empty are removed. The user's index and every other file stay as they are.
        """
        changed = [c.path for c in self.changes(current, wanted)]
        old, new = self.entries(current), self.entries(wanted)
        links = {p for p in changed if GITLINK in {e[p].mode for e in (old, new) if p in e}}
        now = self._on_disk(current, [p for p in changed if p not in links])
        mine = [p for p in changed if p not in links and now.get(p) == old.get(p)]
        done = {p for p in changed if p not in links and now.get(p) == new.get(p)}
        with tempfile.TemporaryDirectory(dir=self._private.folder) as folder:
            stage = Path(folder)
            written, removed = self.write_delta(current, wanted, stage)
            for path in sorted(set(removed) & set(mine)):
                (self.root / path).unlink()
                prune(self.root, path)
            blocked = {p for p in written if p in mine and not self._place(stage, p)}
        return tuple(p for p in changed if p in blocked or (p not in mine and p not in done))

    def _place(self, stage: Path, path: str) -> bool:
        """Move one staged file into the work tree; False where something else is in the way."""
        target = self.root / path
        if not real_parents(self.root, path) or (target.is_dir() and not target.is_symlink()):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        # Across file systems a plain rename fails, so the copy is made beside the target first.
        beside = target.with_name(f".rage-{os.getpid()}")
        shutil.move(stage / path, beside)
        beside.replace(target)
        return True

    def _on_disk(self, tree: str, paths: Sequence[str]) -> dict[str, Entry]:
        """What the work tree holds at `paths`, hashed as `git add` would on top of `tree`.

        Absent from the result is what is no file, or lies behind a symlink.
        """
        present = []
        for path in paths:
            try:
                mode = (self.root / path).lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue
            if real_parents(self.root, path) and (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                present.append(path)
        if not present:
            return {}
        with self._private.temporary_index(tree) as index:
            command = ("update-index", "--add", "--replace", "-z", "--stdin")
            self._private.git(*command, stdin=joined(present), index=index)
            listed = self._private.git("ls-files", "--stage", "-z", index=index).names
        found, wanted = {}, set(present)
        for line in listed:
            meta, path = line.split("\t", 1)
            if path in wanted:
                mode_text, oid, _ = meta.split(" ")
                found[path] = Entry(mode_text, oid)
        return found

    # --- the private store ---------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """Variables with which git sees the private store beside the user's."""
        return self._private.environment()

    @property
    def objects(self) -> Path:
        """The private object store, shared by all worktrees; its alternate is the user's."""
        return self._private.objects

    def publish(self, tree: str) -> None:
        """Copy what the user's object store lacks of `tree` into it, for a commit to hold."""
        self._private.publish(tree)

    def rotate(self, keep: Sequence[str], limit: int = STORE_LIMIT) -> bool:
        """Renew a private store above `limit` bytes, with the trees in `keep`; see `private.py`."""
        return self._private.rotate(keep, limit)


def rebuilt(name: str) -> bool:
    """Whether a folder of this name holds dependencies or a cache, which tools rebuild."""
    return name in CACHES or name in DEPENDENCIES or name.endswith(".egg-info")


def real_parents(root: Path, path: str) -> bool:
    """Whether no folder above `path`, up to `root`, is a symlink or a file; missing ones are."""
    parents = [p for p in (root / path).parents if p != root and root in p.parents]
    for parent in reversed(parents):
        try:
            mode = parent.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return True
        if not stat.S_ISDIR(mode):
            return False
    return True
