"""Takes one item's commit back by a new commit: exactly its paths, only where they still hold it.

Separate from `commit.py` because it is the only place here that writes files of the work tree.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rage_plugin.core.errors import RageError
from rage_plugin.repository import GITLINK, Repository, joined, listed, prune

from . import commit, history, index, message, objects, preflight
from .objects import Changed


def revert(git: Repository, run: str, item: str, bad: str, base: str, branch: str) -> str:
    """The id of the new commit; `RageError` names the paths that changed since, and stops.

    The files follow the commit. Killed in between and called again, it only brings them along.
    """
    preflight.refuse_unfinished(git)
    preflight.refuse_locked(git)
    told = history.told_by(git, bad)
    named = {"Rage-Run": message.token(run), "Rage-Item": message.token(item)}
    if not named.items() <= told.trailers.items():
        raise RageError(
            f"{bad[:12]} is not this run's commit of {item}", kept="Nothing was changed"
        )
    back = objects.changes(git, told.tree, git.tree_of(parent_of(git, bad)))
    head = git.head()
    if (done := history.find_revert(git, run, bad, base)) is not None:
        if head == done.commit:
            with index.holding(git, told.tree) as private:
                held = set(_differing(git, private))
            index.follow(git, back, {})
            _bring_files(git, [c for c in back if c.path not in held], done.tree)
        return done.commit
    _refuse_changed(git, told.tree, back)
    trailers = message.trailers(run, item, status="reverted", reverts=bad)
    wanted = commit.Wanted(
        branch=branch,
        parent=head,
        tree=_without(git, head, back),
        message=message.compose(
            message.subject("Take back", item), f"This reverts commit {bad}.", trailers
        ),
        trailers=trailers,
        hooks=commit.AS_REVERT,
    )
    made = commit.make(git, wanted)
    _bring_files(git, back, wanted.tree)
    return made


def parent_of(git: Repository, commit: str) -> str:
    """The first parent as the commit names it: in a shallow clone rev-parse would say none."""
    header, _, _ = git.run("cat-file", "commit", commit).out.partition(b"\n\n")
    parents = [line[7:] for line in header.split(b"\n") if line.startswith(b"parent ")]
    return parents[0].decode("ascii") if parents else ""


def _refuse_changed(git: Repository, given: str, back: Sequence[Changed]) -> None:
    """Raise unless HEAD, the index and the files all still hold what the commit gave."""
    paths = {change.path for change in back}
    now = index.entries(git)
    moved = {c.path for c in objects.changes(git, given, git.tree_of("HEAD"))} & paths
    moved |= {c.path for c in back if now.get(c.path) != c.old}
    with index.holding(git, given) as private:
        moved |= set(_differing(git, private)) & paths
    moved |= {path for path in paths - moved if _in_the_way(git.root, path, back)}
    if moved:
        raise RageError(
            f"Changed since the commit, so it cannot be taken back: {listed(sorted(moved))}",
            kept="Nothing was changed",
            next="git revert by hand, or undo those changes and try again",
        )


def _in_the_way(top: Path, path: str, back: Sequence[Changed]) -> bool:
    """Whether writing `path` would overwrite something that the commit did not give."""
    leaving = {top / c.path for c in back if c.new is None}
    writing = next(c for c in back if c.path == path)
    if writing.new is None:
        return False
    target = top / path
    for parent in target.parents:
        if parent == top:
            break
        if parent.is_symlink() or parent.is_file():
            return parent not in leaving
    if target.is_dir() and not target.is_symlink():
        inside = (Path(folder) / name for folder, _, names in os.walk(target) for name in names)
        return writing.new.mode != GITLINK and any(file not in leaving for file in inside)
    return writing.old is None and os.path.lexists(target)


def _without(git: Repository, head: str, back: Sequence[Changed]) -> str:
    """HEAD's tree with the paths as they were before the commit."""
    ordered = sorted(back, key=lambda change: change.new is not None)  # removals first
    lines = (
        f"{c.new.mode} {c.new.oid}\t{c.path}\0" if c.new else f"0 {'0' * len(head)}\t{c.path}\0"
        for c in ordered
    )
    with index.holding(git, git.tree_of(head)) as private:
        git.run(
            *("update-index", "--add", "--replace", "-z", "--index-info"),
            stdin=os.fsencode("".join(lines)),
            index=private,
        )
        return git.run("write-tree", index=private).text


def _bring_files(git: Repository, back: Sequence[Changed], tree: str) -> None:
    """Write the files of these paths as `tree` has them; a submodule's content is its own."""
    files = [c for c in back if GITLINK not in {e.mode for e in (c.old, c.new) if e}]
    for change in files:
        if change.new is None:
            (git.root / change.path).unlink(missing_ok=True)
            prune(git.root, change.path)
    written = [c for c in files if c.new and not _in_the_way(git.root, c.path, back)]
    with index.holding(git, tree) as private:
        git.run(
            *("checkout-index", "--force", "-z", "--stdin"),
            stdin=joined([c.path for c in written]),
            index=private,
        )
    git.run("update-index", "-q", "--refresh", ok=(0, 1, 128))


def _differing(git: Repository, private: Path) -> list[str]:
    return git.run("diff-files", "--name-only", "-z", index=private).names
