"""Whether commits can be made here: asked before a run begins and before anything is changed.

Separate because every answer is one line for a person, with the command that helps.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rage_plugin.core.errors import Refused
from rage_plugin.repository import Repository, joined, listed, shown

OLDEST = (2, 36)
"""The first git that can run a person's hooks by themselves (`git hook run`)."""

_UNFINISHED = (
    ("MERGE_HEAD", "a merge", "git merge --continue, or git merge --abort"),
    ("rebase-merge", "a rebase", "git rebase --continue, or git rebase --abort"),
    ("rebase-apply", "a rebase or git am", "git rebase --abort, or git am --abort"),
    ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue, or --abort"),
    ("REVERT_HEAD", "a revert", "git revert --continue, or git revert --abort"),
    ("sequencer", "a cherry-pick or revert", "git cherry-pick --abort, or git revert --abort"),
    ("BISECT_LOG", "a bisect", "git bisect reset"),
)


@dataclass(frozen=True, slots=True)
class Status:
    """What `git status` says, path by path."""

    modified: tuple[str, ...]
    """Tracked paths that differ from HEAD, in the index or on disk."""
    unmerged: tuple[str, ...]
    submodules: tuple[str, ...]
    """Submodules with changes of their own, which no commit here can hold."""
    untracked: tuple[str, ...]
    """Untracked files; whole folders as one path that ends with `/`."""


def check(git: Repository, *, snapshot: bool) -> str:
    """A line for the person, or empty; `Refused` where a run could not commit."""
    refuse_old_git(git)
    refuse_unfinished(git)
    refuse_locked(git)
    status = read_status(git)
    if status.unmerged:
        raise Refused(
            f"Unmerged paths: {listed(status.unmerged)}",
            next="resolve them and git commit, or git merge --abort",
        )
    if status.submodules:
        raise Refused(
            f"Submodules with changes of their own: {listed(status.submodules)}",
            next="commit or undo them inside the submodule",
        )
    modified = status.modified + hidden_modified(git)
    if modified and not snapshot:
        count = f"{len(modified)} tracked file{'s are' if len(modified) > 1 else ' is'} modified"
        raise Refused(
            f"{count}: {listed(modified)}",
            next="commit them, or add --snapshot to have them committed first",
        )
    if status.untracked and not git.head() and not modified:
        # They would stay outside every tree, so an agent's work on them would never be seen.
        raise Refused(
            f"Nothing is committed yet, and there are untracked files: {listed(status.untracked)}",
            next="git add the project's files, and git commit",
        )
    refuse_nameless(git)
    return " ".join(_notes(git, status, modified))


def refuse_old_git(git: Repository) -> None:
    """Raise `Refused` where git cannot run hooks by themselves, or there is no work tree."""
    said = git.run("version").text
    found = re.search(r"(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        raise Refused(f"{said} is too old", next="install git 2.36 or newer")


def refuse_unfinished(git: Repository) -> None:
    """Raise `Refused` while a merge, rebase, cherry-pick, revert or bisect is in progress."""
    for mark, what, way_out in _UNFINISHED:
        if (git.git_dir / mark).exists():
            raise Refused(f"There is {what} in progress", next=way_out)


def refuse_locked(git: Repository) -> None:
    """Raise `Refused` while another git, or a killed one's leftover, locks the index."""
    lock = git.git_dir / "index.lock"
    if lock.exists():
        raise Refused(
            f"The index is locked by {shown(str(lock))}",
            kept="Nothing was changed",
            next="wait for the other git, or remove that file if none is running",
        )


def refuse_nameless(git: Repository) -> None:
    """Raise `Refused` where git could not say who commits."""
    for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if git.run("var", who, ok=(0, 1, 128)).code:
            raise Refused(
                "git does not know who commits here",
                next='git config user.name "NAME" and git config user.email "ADDRESS"',
            )


def read_status(git: Repository) -> Status:
    """The state of the work tree; nothing is written, not even refreshed times."""
    lines = git.run(
        *("status", "--porcelain=v2", "-z", "--untracked-files=normal", "--no-renames"),
        "--ignore-submodules=untracked",
    ).names
    found: dict[str, list[str]] = {"1": [], "u": [], "s": [], "?": []}
    for line in lines:
        kind = line[0]
        if kind == "1":
            _, _, sub, *_, path = line.split(" ", 8)
            # `SC..` is another commit of the submodule, which a commit here can hold; `S.M.` not.
            found["s" if sub[0] == "S" and sub[2] == "M" else "1"].append(path)
        elif kind == "u":
            found["u"].append(line.split(" ", 10)[10])
        elif kind == "?":
            found["?"].append(line[2:])
    return Status(tuple(found["1"]), tuple(found["u"]), tuple(found["s"]), tuple(found["?"]))


def hidden_modified(git: Repository) -> tuple[str, ...]:
    """Modified files that `assume-unchanged` or `skip-worktree` keeps out of `git status`.

    A check sees them, so a commit that leaves them out would not be what was checked.
    """
    hidden = git.hidden()
    if not hidden:
        return ()
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        shutil.copy2(git.git_dir / "index", index)
        for option, paths in hidden.items():
            git.run("update-index", option, "-z", "--stdin", stdin=joined(paths), index=index)
        git.run("update-index", "-q", "--refresh", index=index, ok=(0, 1))
        differing = set(git.run("diff-files", "--name-only", "-z", index=index).names)
    return tuple(path for paths in hidden.values() for path in paths if path in differing)


def _notes(git: Repository, status: Status, modified: tuple[str, ...]) -> list[str]:
    notes = []
    if modified:
        notes.append(f"Modified files get a commit of their own first: {listed(modified)}.")
    if status.untracked:
        notes.append(
            f"Untracked before the run and never committed by it: {listed(status.untracked)}."
        )
    if git.run("for-each-ref", "--count=1", "refs/replace").out:
        notes.append("Replace refs exist and are not followed.")
    if (git.common_dir / "info" / "grafts").exists():
        notes.append("A grafts file exists; parents it invents are not the commits' own.")
    return notes
