"""Whether a command comes from a tool of the run: then it is not a person's word.

The guard refuses what it recognises in a tool call. This is the second line: a script that the
agent wrote and that calls `rage accept` is recognised by a process above it which a host started as
a tool. A program that hides its ancestry (its own session, a cleared environment) is not found; see
SECURITY.md.
"""

from __future__ import annotations

import os

from rage_plugin.holder import TOOL as MARK

CONTROL = frozenset(
    {"start", "resume", "adopt", "stop", "kill", "correct", "answer", "resolve", "accept"}
    | {"reject", "run"}
)
"""Verbs that only a person may say. Reading, and pausing, harms nobody."""


def called_by_a_tool() -> bool:
    """Whether this process, or one above it, is part of a tool call."""
    if MARK in os.environ:
        return True
    import psutil  # noqa: PLC0415

    for parent in psutil.Process().parents():
        try:
            if MARK in parent.environ():
                return True
        except (psutil.Error, OSError):
            continue  # another user's process, or one that is gone
    return False
