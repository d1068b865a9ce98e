"""Makes commits: exactly a given tree, with the person's hooks and signing, then a check.

Separate because this is the one place that moves the person's branch.

`git commit` is not used: it moves the branch before anybody can look at what its hooks made of the
content, and stepping a branch back is a rewrite, which RAGE never does. Instead the hooks run by
themselves (`git hook run`) on a private index that holds the tree, the commit object is written
(`git commit-tree`, which signs), read back and compared; only then one compare-and-set moves the
branch.
Whatever goes wrong before that leaves at most an unreferenced object.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from rage_plugin.core.errors import RageError
from rage_plugin.repository import Entry, GitFailed, GitTimeout, Repository, listed, shown

from . import history, index, objects, preflight

KEPT = "The branch, the index and the checked tree are as they were"
LOCK_S = 60.0
"""Seconds to wait for another RAGE process that writes to this repository."""

WITH_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")
AS_REVERT = ("prepare-commit-msg",)
"""What `git revert` runs by itself: a commit taken back is not held up by a failing check."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A commit to be made."""

    branch: str
    parent: str
    """Empty for a root commit."""
    tree: str
    message: str
    trailers: Mapping[str, str]
    hooks: Sequence[str] = WITH_HOOKS
    staged: Mapping[str, Entry] = field(default_factory=dict)
    """What the person's index held where the commit was made from the person's own changes."""


@contextlib.contextmanager
def exclusive(git: Repository) -> Iterator[None]:
    """Hold the repository against other RAGE processes; `RageError` after a minute."""
    folder = git.common_dir / "rage"
    folder.mkdir(exist_ok=True)
    lock = FileLock(str(folder / "deliver.lock"), timeout=LOCK_S)
    try:
        lock.acquire()
    except Timeout as error:
        raise RageError(
            "Another RAGE process is committing to this repository",
            kept="Nothing was changed",
            next="/rage resume",
        ) from error
    try:
        yield
    finally:
        lock.release()


def refuse_moved(git: Repository, expected: str, tree: str) -> None:
    """Raise `RageError` unless HEAD is the expected commit and holds the expected tree."""
    preflight.refuse_unfinished(git)
    preflight.refuse_locked(git)
    head = git.head()
    if head != expected:
        raise RageError(
            f"HEAD moved from {_short(expected)} to {_short(head)} while the item was worked on",
            kept="The checked tree is kept",
            next=f"git switch to the run's branch at {_short(expected)}, then /rage resume",
        )
    if git.tree_of(head) != tree:
        raise RageError(
            f"HEAD {_short(head)} does not hold the tree {tree[:12]} that the item started from",
            kept="The checked tree is kept",
            next="/rage stop and start again",
        )


def make(git: Repository, wanted: Wanted) -> str:
    """Make the commit, move the branch to it and bring the person's index up to date; its id."""
    before = git.tree_of(wanted.parent)
    commit = _checked(git, wanted)
    subject = wanted.message.split("\n", 1)[0]
    # With the person's reference-transaction hook; the old value makes it a compare-and-set.
    result = git.run_as_person(
        *("update-ref", "-m", f"commit: {subject}"),
        *(f"refs/heads/{wanted.branch}", commit, wanted.parent),
    )
    if result.code:
        raise RageError(
            f"{shown(wanted.branch)} could not be moved to the new commit: {result.last_line()}",
            kept=KEPT,
            next="/rage resume",
        )
    changed = objects.changes(git, before, wanted.tree)
    index.follow(git, changed, wanted.staged)
    with contextlib.suppress(GitTimeout):  # as with git, it can no longer refuse anything
        git.run_as_person("hook", "run", "--ignore-missing", "post-commit")
    return commit


def _checked(git: Repository, wanted: Wanted) -> str:
    """The commit object, compared with what was wanted; no ref points to it yet."""
    with index.holding(git, wanted.tree) as private:
        text = private.with_name("COMMIT_EDITMSG")
        text.write_text(wanted.message, "utf-8")
        for hook in wanted.hooks:
            arguments = {"prepare-commit-msg": [str(text), "message"], "commit-msg": [str(text)]}
            _run_hook(git, private, wanted.tree, hook, arguments.get(hook, []))
        clean = git.run("stripspace", stdin=text.read_bytes()).out
        text.write_bytes(clean)
        commit = _write(git, wanted, text)
    told = history.told_by(git, commit)
    if told.tree != wanted.tree:
        raise RageError("The commit holds another tree than the checked one", kept=KEPT)
    if told.trailers != dict(wanted.trailers):
        raise RageError(
            "A hook changed the trailers that RAGE finds its commits by",
            kept=KEPT,
            next="let commit-msg and prepare-commit-msg keep lines that begin with Rage-",
        )
    return commit


def _run_hook(
    git: Repository, private: Path, tree: str, hook: str, arguments: Sequence[str]
) -> None:
    result = git.run_as_person(
        *("hook", "run", "--ignore-missing", hook, "--", *arguments),
        env={"GIT_INDEX_FILE": str(private)},
    )
    if result.code:
        said = result.last_line() or f"exit code {result.code}"
        raise RageError(
            f"The {hook} hook refused the commit: {said}",
            kept=KEPT,
            next="fix what it says, then /rage resume",
        )
    try:
        now = git.run("write-tree", index=private).text
    except GitFailed as error:
        raise RageError(f"The {hook} hook broke the index: {error.what}", kept=KEPT) from error
    if now != tree:
        changed = [change.path for change in objects.changes(git, tree, now)]
        raise RageError(
            f"The {hook} hook changes what was checked: {listed(changed)}",
            kept=KEPT,
            next=f"run git hook run {hook} before the checks, or turn that part of it off, "
            "then /rage resume",
        )


def _write(git: Repository, wanted: Wanted, text: Path) -> str:
    # commit-tree signs when told to, and does not read commit.gpgSign itself.
    sign = ["-S"] if git.setting("commit.gpgSign") else []
    parent = ["-p", wanted.parent] if wanted.parent else []
    result = git.run_as_person(
        *("-c", "i18n.commitEncoding=UTF-8", "commit-tree", *sign, *parent),
        *("-F", os.fspath(text), wanted.tree),
    )
    if result.code:
        what = "could not be signed" if sign else "could not be written"
        raise RageError(
            f"The commit {what}: {result.last_line()}",
            kept=KEPT,
            next="unlock the signing key (there is no terminal here), then /rage resume"
            if sign
            else "/rage resume",
        )
    return result.text


def _short(commit: str) -> str:
    return commit[:12] or "no commit"
