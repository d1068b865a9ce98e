"""The person's own modifications as a commit of their own, before a run begins (`--snapshot`).

Separate because it is the only commit that holds something nobody checked, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from rage_plugin.repository import Repository, joined, listed

from . import commit, index, message, preflight


def take(git: Repository, run: str, branch: str) -> str:
    """Commit every modified tracked file as it is on disk; a line about it, or empty."""
    modified = preflight.read_status(git).modified + preflight.hidden_modified(git)
    if not modified:
        return ""
    head = git.head()
    preflight.refuse_unfinished(git)
    preflight.refuse_locked(git)
    named = {"Rage-Run": message.token(run), "Rage-Status": "snapshot"}
    body = "Modified files as they were when the run began; not checked."
    wanted = commit.Wanted(
        branch=branch,
        parent=head,
        tree=_tree(git, head, modified),
        message=message.compose(f"Snapshot before run {message.token(run)}", body, named),
        trailers=named,
        staged=index.entries(git),
    )
    made = commit.make(git, wanted)
    return f"Commit {made[:12]} holds what was modified: {listed(modified)}."


def _tree(git: Repository, head: str, modified: Sequence[str]) -> str:
    """HEAD's tree with these paths as they are on disk, or gone where the index lacks them."""
    tracked = set(git.run("ls-files", "-z").names)
    there = [path for path in modified if path in tracked]
    gone = [path for path in modified if path not in tracked]
    with index.holding(git, git.tree_of(head)) as private:
        for mode, paths in (("--force-remove", gone), ("--remove", there)):
            git.run(
                *("update-index", "--add", "--replace", mode, "-z", "--stdin"),
                stdin=joined(paths),
                index=private,
            )
        return git.run("write-tree", index=private).text
