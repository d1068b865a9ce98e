"""The one base class for errors that a person can do something about."""

from __future__ import annotations


class RageError(Exception):
    """An expected failure: what happened, what was kept, and the next command to type.

    Anything that is not a `RageError` is a bug and propagates.
    """

    def __init__(self, what: str, *, kept: str = "", next: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.kept = kept
        self.next = next

    def line(self) -> str:
        """The whole error as one line for a person."""
        parts = [self.what.rstrip(".")]
        if self.kept:
            parts.append(self.kept.rstrip("."))
        if self.next:
            parts.append(f"Next: {self.next}")
        return ". ".join(parts)


class Refused(RageError):
    """The request was understood and will not be carried out; nothing was changed."""


class UsageError(RageError):
    """The words typed are not a command; exit code 2."""


class IllegalTransition(RageError):
    """An edge that the tables in `core/phases.py` do not have; no row is written."""


class StaleWrite(RageError):
    """Another process wrote to the run first; nothing of this write was kept."""
