"""What stands in the history already: an effect is looked up here before it is repeated.

Separate from `commit.py` because it only reads, and because a trailer is a claim that anybody can
write: what counts as this run's own is decided in one place.
"""

from __future__ import annotations

from dataclasses import dataclass

from rage_plugin.repository import Repository

from .message import token

DEPTH = 2_000
"""Commits along the first parents that are looked at where no base bounds the search."""

_KEYS = ("Rage-Run", "Rage-Item", "Rage-Evidence", "Rage-Status", "Rage-Reverts")
_FORMAT = "%x00".join(
    ["%H", "%T", *(f"%(trailers:key={key},valueonly,unfold,separator=%x01)" for key in _KEYS)]
)


@dataclass(frozen=True, slots=True)
class Told:
    """A commit and the trailers of it that RAGE writes; a key given twice is there as `a\\x01b`."""

    commit: str
    tree: str
    trailers: dict[str, str]


def along_head(git: Repository, base: str) -> list[Told]:
    """Commits from HEAD along first parents, newest first, down to the commit `base`."""
    if not git.head():
        return []
    return _read(git, [f"--max-count={DEPTH}", "HEAD", *([f"^{base}"] if base else [])])


def told_by(git: Repository, commit: str) -> Told:
    """One commit as its own trailers tell it."""
    return _read(git, ["--max-count=1", commit])[0]


def find(git: Repository, run: str, item: str, base: str) -> Told | None:
    """The run's newest commit for an item that the run did not take back again."""
    reverted: set[str] = set()
    for told in along_head(git, base):
        if told.trailers.get("Rage-Run") != token(run):
            continue
        if reverts := told.trailers.get("Rage-Reverts"):
            reverted.add(reverts)
        elif told.trailers.get("Rage-Item") == token(item) and told.commit not in reverted:
            return told
    return None


def find_revert(git: Repository, run: str, commit: str, base: str) -> Told | None:
    """The run's commit that takes `commit` back."""
    for told in along_head(git, base):
        wanted = {"Rage-Run": token(run), "Rage-Reverts": commit}
        if wanted.items() <= told.trailers.items():
            return told
    return None


def _read(git: Repository, revisions: list[str]) -> list[Told]:
    # rev-list and not log: log.* of a person's configuration changes what log prints.
    out = git.run(
        *("-c", "trailer.separators=:", "rev-list", "--first-parent", "--no-commit-header"),
        f"--format={_FORMAT}",
        *revisions,
        "--",
    ).text
    found = []
    for line in out.split("\n"):
        commit, _, rest = line.partition("\0")
        tree, *values = rest.split("\0")
        if commit:
            given = {key: value for key, value in zip(_KEYS, values, strict=True) if value}
            found.append(Told(commit, tree, given))
    return found
