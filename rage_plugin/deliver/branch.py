"""The run's branch: made and switched to without touching a file, where the current is protected.

Separate because where RAGE may commit is one decision, asked at the start and at every commit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from rage_plugin.core.errors import RageError
from rage_plugin.repository import GitFailed, Repository, shown

_HEADS = "refs/heads/"


def current(git: Repository) -> str:
    """The branch HEAD is on, also an unborn one; empty when detached."""
    return git.run("symbolic-ref", "-q", "HEAD", ok=(0, 1)).text.removeprefix(_HEADS)


def is_protected(git: Repository, branch: str, protected: Sequence[str]) -> bool:
    """Whether the profile protects a branch.

    A remote's default branch is protected too, unless the profile protects nothing at all.
    """
    if any(fnmatchcase(branch, pattern) for pattern in protected):
        return True
    return bool(protected) and branch in _remote_defaults(git)


def open_branch(git: Repository, protected: Sequence[str]) -> str:
    """The branch HEAD is on; `RageError` where that may not be committed to."""
    branch = current(git)
    if not branch:
        raise RageError(
            "HEAD moved: it is detached now, and a commit there would belong to no branch",
            kept="Nothing was changed",
            next="git switch to the run's branch, then /rage resume",
        )
    if is_protected(git, branch, protected):
        raise RageError(
            f"HEAD moved: {shown(branch)} is a protected branch",
            kept="Nothing was changed",
            next="git switch to the run's branch, then /rage resume",
        )
    return branch


def begin(git: Repository, run: str, target: str, title: str, protected: Sequence[str]) -> str:
    """Stay on an ordinary branch, else make and switch to one of the run's own; its name."""
    now = current(git)
    if now and not is_protected(git, now, protected):
        return now
    head = git.head()
    wanted = name(target, title)
    mark = re.sub(r"[^A-Za-z0-9]+", "", run)[:8] or "run"
    for candidate in (wanted, f"{wanted}-{mark}", f"{wanted.replace('/', '-')}-{mark}"):
        if _take(git, candidate, head):
            # symbolic-ref and not switch: no file, no index and no post-checkout hook is involved.
            git.run("symbolic-ref", "-m", f"rage: run {run}", "HEAD", _HEADS + candidate)
            return candidate
    raise RageError(
        f"No branch could be made for this run: {wanted} and its alternatives are taken",
        kept="Nothing was changed",
        next=f"git branch -m {wanted} OTHER, or git switch -c NAME",
    )


def name(target: str, title: str) -> str:
    """`rage/<id>-<slug>` for a target such as `#5`, `epic:5`, `backlog/5-title.md`, `backlog`."""
    _, _, last = target.strip().rpartition(":")
    ident = _slug(PurePosixPath(last.rstrip("/")).stem, 30) or "run"
    words = _slug(title, 40).removeprefix(ident).strip("-")
    if words and not ident.endswith(words):
        return f"rage/{ident}-{words}"
    return f"rage/{ident}"


def _slug(text: str, limit: int) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:limit].strip("-")


def _take(git: Repository, branch: str, head: str) -> bool:
    """Make a branch at `head`; False where the name is taken or cannot exist beside others."""
    ref = _HEADS + branch
    there = git.run("for-each-ref", "--format=%(objectname) %(worktreepath)", ref).text
    if there:
        # Left by a start that was killed here, or a twin without a commit of its own.
        return there == f"{head} "
    if not head:
        return git.run("show-ref", "-q", "--verify", _HEADS + "rage", ok=(0, 1)).code == 1
    try:
        git.run("update-ref", "-m", "rage: begin", ref, head, "")
    except GitFailed:  # a branch named `rage` leaves no room for `rage/…`
        return False
    return True


def _remote_defaults(git: Repository) -> set[str]:
    out = git.run("for-each-ref", "--format=%(symref:lstrip=3)", "refs/remotes/*/HEAD").text
    return set(out.split("\n")) - {""}
