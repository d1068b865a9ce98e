"""`DeliverRoom`: the git effects of a run, as `core.ports.Deliver` asks for them.

Separate because it only says in which order the files beside it are asked, and holds the lock.
"""

from __future__ import annotations

from pathlib import Path

from rage_plugin.core.config import GitConfig
from rage_plugin.core.errors import Refused
from rage_plugin.core.model import Base, Item
from rage_plugin.repository import LIMIT_S, Repository

from . import branch, history, index, message, objects, preflight, refs, revert, snapshot
from .commit import Wanted, exclusive, make, refuse_moved


class DeliverRoom:
    """Implements `core.ports.Deliver` for one workspace.

    `state` is the folder that holds RAGE's state and the private object store; a git command, a
    hook or a signing program is ended after `limit_s` seconds.
    """

    def __init__(
        self, workspace: Path, state: Path, config: GitConfig, limit_s: float = LIMIT_S
    ) -> None:
        self._git = Repository(workspace, limit_s)
        self._state = state
        self._config = config

    def branch(self) -> str:
        """The branch HEAD is on; empty when detached."""
        return branch.current(self._git)

    def head(self) -> str:
        """The commit HEAD stands at; empty on an unborn branch."""
        return self._git.head()

    def preflight(self, snapshot: bool) -> str:
        """A line for the person, or empty; `Refused` where a run could not commit."""
        return preflight.check(self._git, snapshot=snapshot)

    def begin(self, run: str, target: str, title: str) -> str:
        """The branch to work on, made and switched to where the current one is protected."""
        with exclusive(self._git):
            return branch.begin(self._git, run, target, title, self._config.protected)

    def snapshot(self, run: str) -> str:
        """Commit modified tracked files as their own commit, after `begin`; a line about it."""
        with exclusive(self._git):
            on = branch.open_branch(self._git, self._config.protected)
            return snapshot.take(self._git, run, on)

    def pin(self, run: str, base: Base) -> None:
        """Keep the base alive under `refs/rage/<run>/base`; the first base of a run stays."""
        with exclusive(self._git):
            refs.pin(self._git, self._state, run, base)

    def find(self, run: str, item: str) -> str:
        """The commit on HEAD that carries this run's and item's trailers, else empty."""
        told = history.find(self._git, run, item, self._base(run))
        return told.commit if told else ""

    def holds(self, run: str, item: str, commit: str) -> bool:
        """Whether what a run committed for an item is part of HEAD's history.

        By the commit itself, or by its trailers where it was rewritten since (a rebase, a squash).
        """
        if not self._git.head():
            return False
        part = ("merge-base", "--is-ancestor", commit, "HEAD")
        return self._git.run(*part, ok=(0, 1, 128)).code == 0 or bool(self.find(run, item))

    def commit(
        self, run: str, item: Item, base: Base, tree: str, evidence: str, status: str
    ) -> str:
        """Commit exactly `tree` on HEAD; its id. A commit that is there already is returned.

        `RageError` where HEAD moved, a hook refuses or changes the content, or signing fails;
        the branch then stands where it stood.
        """
        if status not in {message.VERIFIED, message.UNVERIFIED}:
            raise ValueError(f"A commit is verified or unverified, not {status!r}")
        git = self._git
        with exclusive(git):
            told = history.find(git, run, item.id, self._base(run))
            if told is not None and told.tree == tree:
                # A kill may have come between the commit and the index.
                if told.commit == git.head():
                    index.follow(git, objects.changes(git, base.tree, tree), {})
                return told.commit
            if not self._config.commit:
                raise Refused("The profile says git.commit: false", next="set it to true")
            on = branch.open_branch(git, self._config.protected)
            refuse_moved(git, base.commit, base.tree)
            objects.bring(git, self._state, tree, base.commit)
            subject, body = message.of_item(run, item, tree, status)
            trailers = message.trailers(run, item.id, evidence=evidence or "none", status=status)
            text = message.compose(subject, body, trailers)
            return make(git, Wanted(on, base.commit, tree, text, trailers))

    def keep(self, run: str, item: str, tree: str) -> str:
        """Keep a failed candidate as a commit under `refs/rage/<run>/<item>`; the ref."""
        with exclusive(self._git):
            return refs.keep(self._git, self._state, run, item, tree)

    def revert(self, run: str, item: str, commit: str) -> str:
        """A new commit that takes an item's commit back; its id."""
        with exclusive(self._git):
            on = branch.open_branch(self._git, self._config.protected)
            return revert.revert(self._git, run, item, commit, self._base(run), on)

    def made(self, commit: str) -> tuple[str, str]:
        """The first parent of a commit, empty for a root commit, and its tree."""
        return revert.parent_of(self._git, commit), self._git.tree_of(commit)

    def _base(self, run: str) -> str:
        """The commit the run began at, as far as it is pinned."""
        return refs.resolve(self._git, refs.base_ref(run))
