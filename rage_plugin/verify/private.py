"""RAGE's private index and object store: git sees the work tree without touching the user's files.

Separate because it is the only place that knows how the two private parts follow the user's
repository; `tree.py` asks it and never names an index.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from rage_plugin.core.errors import RageError
from rage_plugin.repository import GitFailed, Repository, Result, joined, quoted

NEVER_IN_A_TREE = (
    *(".venv/", "venv/", "node_modules/", "bower_components/", ".direnv/", ".pixi/"),
    *("__pycache__/", "*.pyc", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/"),
    *(".tox/", ".nox/", ".ipynb_checkpoints/", "*.egg-info/"),
)
"""Dependencies and caches by the names that their tools give them; tracked files stay tracked."""
STORE_LIMIT = 256 * 1024 * 1024
"""Bytes above which a private store is renewed."""


class NoHash(RageError):
    """The work tree could not be hashed: there is no hash, which never means "the same"."""


class Private:
    """The private index of one work tree, and the private object store of its repository."""

    def __init__(self, place: Repository, state: Path) -> None:
        self.place = place
        self._stores = state / "trees" / "objects"
        key = hashlib.sha256(os.fsencode(place.git_dir)).hexdigest()[:16]
        self.folder = state / "trees" / key
        self.folder.mkdir(parents=True, exist_ok=True)
        (self._stores / "00000000").mkdir(parents=True, exist_ok=True)
        self._excludes = self._write_excludes()
        self._index = self.folder / "index"
        self._copied = self.folder / "copied"

    @property
    def objects(self) -> Path:
        """The object store in use: the newest generation."""
        try:
            return max(path for path in self._stores.iterdir() if path.name.isdigit())
        except (OSError, ValueError) as error:
            raise RageError(
                f"{self._stores} is gone or cannot be read: RAGE's trees of this run are in it",
                kept="The workspace and its commits are as they are",
                next="/rage stop and start again",
            ) from error

    def _write_excludes(self) -> Path:
        """The user's own global excludes, and what no tree should hold though nobody ignored it.

        A repository without a `.gitignore` is common; its virtual environment must be there in a
        check, and neither it nor a cache may become part of a candidate. `.gitignore` can still
        say `!venv/`, since it has the last word.
        """
        ask = ("config", "--type=path", "--get", "core.excludesFile")
        if named := self.place.run(*ask, ok=(0, 1, 128)).text:
            own = self.place.root / named
        else:
            home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
            own = Path(home) / "git" / "ignore"
        try:
            users = own.read_bytes()
        except OSError:
            users = b""
        path = self.folder / "excludes"
        lines = "".join(f"{pattern}\n" for pattern in NEVER_IN_A_TREE).encode()
        path.write_bytes(lines + b"\n" + users)
        return path

    # --- calling git ---

    def environment(self) -> dict[str, str]:
        """Variables with which git sees the private store beside the user's."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(self.place.common_dir / "objects"),
        }

    def git(
        self,
        *args: str,
        stdin: bytes | None = None,
        index: Path | None = None,
        env: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
    ) -> Result:
        """`Repository.run` with the private store; raises `GitFailed`."""
        # Some calls read the index for no reason, and with it touch a shared one.
        index = index or self.folder / "none"
        env = {**self.environment(), **(env or {})}
        excludes = ("-c", f"core.excludesFile={self._excludes}")
        return self.place.run(*excludes, *args, stdin=stdin, index=index, env=env, ok=ok)

    # --- indexes ---

    @contextmanager
    def temporary_index(self, tree: str) -> Iterator[Path]:
        """An index of its own that holds `tree`."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            index = Path(folder) / "index"
            self.git("-c", "core.sparseCheckout=false", "read-tree", tree, index=index)
            yield index

    @contextmanager
    def user_index(self) -> Iterator[Path]:
        """The user's index, for reading."""
        with self._shared_index_kept():
            yield self.place.git_dir / "index"

    @contextmanager
    def _shared_index_kept(self) -> Iterator[None]:
        """Put back the mtimes of shared indexes: git freshens them even when it only reads."""
        before = {path: path.stat() for path in self.place.git_dir.glob("sharedindex.*")}
        try:
            yield
        finally:
            for path, info in before.items():
                if path.exists():
                    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def snapshot(self, exclude: Sequence[str] = ()) -> str:
        """The tree of the work tree now, without the paths in `exclude`; raises `NoHash`."""
        with FileLock(self.folder / "lock"), self._shared_index_kept():
            # Whoever held this lock is gone, and git's own lock is a leftover of a kill.
            Path(f"{self._index}.lock").unlink(missing_ok=True)
            try:
                return self._add_and_write(exclude)
            except (GitFailed, OSError):
                # An object that the copied index names may be gone (a prune): copy it afresh.
                self._copied.unlink(missing_ok=True)
            try:
                return self._add_and_write(exclude)
            except (GitFailed, OSError) as error:
                self._copied.unlink(missing_ok=True)
                raise NoHash(
                    f"The workspace could not be hashed: {getattr(error, 'what', error)}",
                    kept="Nothing was changed",
                    next="git status",
                ) from error

    def _add_and_write(self, exclude: Sequence[str]) -> str:
        self._follow_user_index()
        self.git(*self._excluding(exclude), "add", "--all", "--", ".", index=self._index)
        if exclude:
            # What was staged by hand, and the few names that no ignore file can hold.
            drop = ("update-index", "--force-remove", "-z", "--stdin")
            paths = joined([path.rstrip("/") for path in exclude])
            self.git(*drop, stdin=paths, index=self._index)
        return self.git("write-tree", index=self._index).text

    def _excluding(self, exclude: Sequence[str]) -> list[str]:
        """Options with which `git add` does not even read what is to be dropped.

        As one more ignore file, since pathspecs are compared with every tracked file: 500 of them
        cost 300 ms at 20,000 files.
        """
        if not exclude:
            return []
        patterns = [re.sub(r"([\\*?\[ ])", r"\\\1", path) for path in exclude]
        file = self.folder / "exclude"
        lines = os.fsencode("".join(f"/{pattern}\n" for pattern in patterns))
        file.write_bytes(self._excludes.read_bytes() + b"\n" + lines)
        return ["-c", f"core.excludesFile={file}"]

    def _follow_user_index(self) -> None:
        """Make the private index a copy of the user's whenever that one was written."""
        user = self.place.git_dir / "index"
        try:
            with user.open("rb") as file:
                file.seek(-min(32, user.stat().st_size), os.SEEK_END)
                trailer = file.read().hex()
            if not trailer.strip("0"):  # index.skipHash: there is no checksum to compare
                trailer = f"{user.stat().st_mtime_ns}:{user.stat().st_size}"
        except FileNotFoundError:
            trailer = "none"
        if self._index.exists() and _read(self._copied) == trailer:
            return
        self._copied.unlink(missing_ok=True)
        if trailer == "none":
            self._index.unlink(missing_ok=True)
        else:
            # With its mtime: git compares it with each file's to know what it cannot trust.
            shutil.copy2(user, self._index)
            self._clear_hidden_bits()
        self._copied.write_text(trailer)

    def _clear_hidden_bits(self) -> None:
        """Look again at files that `git update-index` was told not to look at."""
        for option, paths in self.place.hidden(self._index).items():
            command = ("update-index", option, "-z", "--stdin")
            self.git(*command, stdin=joined(paths), index=self._index)

    # --- the store ---

    def publish(self, tree: str) -> None:
        """Copy what the user's object store lacks of `tree` into it, for a commit to hold."""
        self.place.run("unpack-objects", "-q", stdin=self._pack([tree]))

    def _pack(self, trees: Sequence[str]) -> bytes:
        """A pack of what these trees have in the private store alone."""
        command = ("pack-objects", "--revs", "--local", "--stdout", "--quiet")
        return self.git(*command, stdin="".join(f"{tree}\n" for tree in trees).encode()).out

    def store_bytes(self) -> int:
        """Size of the private object store in bytes."""
        files = (Path(d) / f for d, _, names in os.walk(self.objects) for f in names)
        return sum(file.stat().st_size for file in files)

    def rotate(self, keep: Sequence[str], limit: int = STORE_LIMIT) -> bool:
        """Begin a new store with the trees in `keep` once the old one exceeds `limit` bytes.

        Unreferenced objects never pack, so a store only grows. Call it where no check runs, with
        every tree that an unfinished run needs. True if the store was renewed.
        """
        old = self.objects
        if self.store_bytes() <= limit:
            return False
        with FileLock(self.folder / "lock"):
            pack = self._pack(keep)
            fresh = Path(tempfile.mkdtemp(dir=self._stores, prefix="new-"))
            place = {"GIT_OBJECT_DIRECTORY": str(fresh)}
            self.git("unpack-objects", "-q", stdin=pack, env=place)
            # One rename makes it the newest; a kill before it loses nothing.
            fresh.rename(self._stores / f"{int(old.name) + 1:08d}")
            # Every private index may name objects that are gone now.
            for copied in self._stores.parent.glob("*/copied"):
                copied.unlink(missing_ok=True)
            for store in self._stores.iterdir():
                if store != self.objects:
                    shutil.rmtree(store)
        return True


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
