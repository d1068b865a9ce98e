"""What the review of an item records: head, dirty paths, instructions, branches, prior attempts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md")


class WorkspaceSurvey:
    """Implements `core.ports.Survey` with git's read-only subcommands."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def review(self, item: str, gates: Sequence[str]) -> dict[str, object]:
        """Everything F009 asks for that git and the work tree can tell."""
        status = self._git("status", "--porcelain", "-z", "--untracked-files=no").split("\0")
        dirty = [line[3:] for line in status if line]
        return {
            "head": self._git("rev-parse", "-q", "--verify", "HEAD").strip(),
            "branch": self._git("symbolic-ref", "-q", "--short", "HEAD").strip(),
            "dirty": dirty[:10],
            "dirty_count": len(dirty),
            "instructions": list(self.pointers()),
            "branches": self._branches(item),
            "prior_attempts": self._prior(item),
            "gates": list(gates)[:20],
        }

    def pointers(self) -> Sequence[str]:
        """The instruction files that exist."""
        return [name for name in INSTRUCTIONS if (self._root / name).is_file()]

    def _branches(self, item: str) -> list[str]:
        names = self._git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes")
        return [n for n in names.splitlines() if _names(n, item)][:10]

    def _prior(self, item: str) -> list[str]:
        """Refs under which earlier runs kept a failed candidate of this item."""
        refs = self._git("for-each-ref", "--format=%(refname)", "refs/rage")
        return [r for r in refs.splitlines() if r.rsplit("/", 1)[-1] == item][:10]

    def _git(self, *args: str) -> str:
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        done = subprocess.run(
            ["git", "--no-optional-locks", *args],
            cwd=self._root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else ""


def _names(branch: str, item: str) -> bool:
    """Whether a branch's name holds the item's id as a word of its own (5, not 15)."""
    words = "".join(c if c.isalnum() or c == "." else " " for c in branch).split()
    return item in words
