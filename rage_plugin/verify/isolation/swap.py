"""The second rung: put the view into the work tree itself, with a journal, and undo it after.

Works on any system while the agent is stopped. What was there is renamed aside and never
rewritten, so inode, mtime and bytes come back as they were; the journal is on disk before the first
rename, so a killed process is finished by `recover`. What a check writes meanwhile is compared and
taken back.

Limits: files of dependency folders, nested repositories and ignored files beyond 64 MB that a check
rewrites cannot be put back (the note names them); HOME is not covered; a check can reach RAGE's
state; new objects and reflog lines stay in git; what a person writes into the workspace meanwhile
is taken for the check's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from rage_plugin import holder
from rage_plugin.verify import command
from rage_plugin.verify.command import Completed
from rage_plugin.verify.tree import Trees

from . import journal as journals
from . import stage
from .view import CouldNotRun, ViewSpec, prepared


class Swap:
    """Checks run in the work tree itself, which holds the view for as long as they run."""

    name = "swap"

    def __init__(self, trees: Trees, state: Path) -> None:
        self._trees = trees
        self._folder = _folder(trees, state)

    def available(self) -> bool:
        """Whether files can be renamed between the work tree and RAGE's state."""
        self._folder.mkdir(parents=True, exist_ok=True)
        root = self._trees.root
        return os.access(root, os.W_OK) and root.stat().st_dev == self._folder.stat().st_dev

    def run(
        self,
        spec: ViewSpec,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        output_limit: int = 20_000,
        prepare: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
    ) -> Completed:
        """See `Isolation.run`; raises `CouldNotRun` when the work tree could not be put back."""
        trees, mark = self._trees, holder.mark()
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(_lock(self._folder), timeout=timeout_s):
                _recover(trees, self._folder)
                if trees.snapshot(exclude=spec.hidden) != spec.current:
                    raise CouldNotRun("The workspace changed before the check began")
                delta = stage.delta(trees, spec, spec.current, self._folder / "stage")
                journal = journals.begin(trees, spec, delta, mark, self._folder)
                try:
                    journals.place(trees, journal, delta)
                    done = prepared(
                        trees.root,
                        argv,
                        prepare,
                        cwd=cwd,
                        env=env,
                        mark=mark,
                        timeout_s=timeout_s,
                        output_limit=output_limit,
                        pass_fds=pass_fds,
                    )
                except OSError as error:
                    raise CouldNotRun(f"The view could not be made: {error}") from error
                finally:
                    lost = journals.undo(trees, journal)
                    journals.finish(trees, journal)
                    _empty(self._folder)
        except Timeout as error:
            raise CouldNotRun("Another check holds the workspace") from error
        if lost:
            names = ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")
            done = replace(done, note=f"{done.note}; the check changed: {names}".lstrip("; "))
        return done


def recover(trees: Trees, state: Path) -> str | None:
    """Undo a swap that a kill interrupted, unless the process that began it still lives."""
    folder = _folder(trees, state)
    if not folder.is_dir():
        return None
    try:
        with FileLock(_lock(folder), timeout=0):
            return _recover(trees, folder)
    except Timeout:
        return None


def _recover(trees: Trees, folder: Path) -> str | None:
    journal = journals.read(folder)
    line = None
    if journal is not None:
        command.kill_marked(journal.mark)
        try:
            lost = journals.undo(trees, journal)
        except OSError as error:
            raise CouldNotRun(
                f"A check was interrupted and the workspace could not be put back: {error}",
                kept=f"What it held lies in {folder}",
                next="mend what the error names and try again",
            ) from error
        journals.finish(trees, journal)
        line = "A check was interrupted: the workspace was put back to what it held before"
        if lost:
            line += f"; see {', '.join(lost[:5])}"
    _empty(folder)
    return line


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            stage.remove(path)
        else:
            path.unlink()


def _folder(trees: Trees, state: Path) -> Path:
    """One folder a work tree; the worktrees of a repository share the state."""
    key = hashlib.sha256(os.fsencode(trees.root)).hexdigest()[:16]
    return state / "swap" / key


def _lock(folder: Path) -> Path:
    return folder.with_suffix(".lock")
