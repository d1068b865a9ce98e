"""What a run keeps alive beside the branch: the tree it began with, and candidates that failed.

Separate because nothing here touches the branch, the index or a file: only `refs/rage/<run>/…`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from rage_plugin.core.model import Base
from rage_plugin.repository import Repository

from . import objects

# These commits are RAGE's notes, not work of a person: no identity and no signature is needed.
_AUTHOR = {
    "GIT_AUTHOR_NAME": "RAGE",
    "GIT_AUTHOR_EMAIL": "rage@localhost",
    "GIT_COMMITTER_NAME": "RAGE",
    "GIT_COMMITTER_EMAIL": "rage@localhost",
}


def ref(run: str, name: str) -> str:
    """`refs/rage/<run>/<name>`; ids are encoded so that any text is one legal part of a ref."""
    return f"refs/rage/{_part(run)}/{_part(name)}"


def base_ref(run: str) -> str:
    """Where a run's base is kept; no item's ref can have this name."""
    return f"refs/rage/{_part(run)}/base"


def pin(git: Repository, state: Path, run: str, base: Base) -> None:
    """Keep the base alive against `git gc`; the first base of a run stays."""
    if resolve(git, base_ref(run)):
        return
    commit = base.commit
    if not commit:  # unborn: a commit without a parent holds the tree
        objects.bring(git, state, base.tree, "")
        commit = _commit(git, base.tree, [], f"Base of run {run}")
    git.run("update-ref", base_ref(run), commit, "")


def keep(git: Repository, state: Path, run: str, item: str, tree: str) -> str:
    """Keep a candidate as a commit on top of HEAD; the ref.

    A candidate kept there before stays reachable as the second parent.
    """
    name, head = ref(run, item), git.head()
    before = resolve(git, name)
    if before and git.tree_of(before) == tree:
        return name
    objects.bring(git, state, tree, head)
    parents = [commit for commit in (head, before) if commit]
    commit = _commit(git, tree, parents, f"Candidate of {item!r} in run {run}, not delivered")
    git.run("update-ref", name, commit, before)
    return name


def resolve(git: Repository, name: str) -> str:
    """The commit a ref points to, empty where there is none."""
    return git.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}", ok=(0, 1)).text


def _commit(git: Repository, tree: str, parents: Sequence[str], message: str) -> str:
    flags = [part for parent in parents for part in ("-p", parent)]
    text = message.encode("utf-8", "replace")
    return git.run("commit-tree", *flags, tree, stdin=text, env=_AUTHOR).text


def _part(text: str) -> str:
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="")
    for character in ".~":  # `.lock`, `..`, a leading dot and `~` are not legal
        encoded = encoded.replace(character, f"%{ord(character):02X}")
    return {"": "%", "base": "%62ase"}.get(encoded, encoded)
