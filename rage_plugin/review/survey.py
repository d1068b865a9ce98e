"""What the review of an item records: head, dirty paths, instructions, branches, prior attempts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rage_plugin.repository import Repository

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md")


class WorkspaceSurvey:
    """Implements `core.ports.Survey` with git's read-only subcommands."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._git = Repository(root)

    def review(self, item: str, gates: Sequence[str]) -> dict[str, object]:
        """Everything F009 asks for that git and the work tree can tell."""
        command = ("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        dirty = [line[3:] for line in self._git.run(*command).names]
        return {
            "head": self._git.head(),
            "branch": self._git.run("symbolic-ref", "-q", "--short", "HEAD", ok=(0, 1)).text,
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
        names = self._refs("refname:short", "refs/heads", "refs/remotes")
        return [name for name in names if _names(name, item)][:10]

    def _prior(self, item: str) -> list[str]:
        """Refs under which earlier runs kept a failed candidate of this item."""
        refs = self._refs("refname", "refs/rage")
        return [ref for ref in refs if ref.rsplit("/", 1)[-1] == item][:10]

    def _refs(self, field: str, *below: str) -> list[str]:
        return self._git.run("for-each-ref", f"--format=%({field})", *below).text.split("\n")


def _names(branch: str, item: str) -> bool:
    """Whether a branch's name holds the item's id as a word of its own (5, not 15)."""
    words = "".join(c if c.isalnum() or c == "." else " " for c in branch).split()
    return item in words
