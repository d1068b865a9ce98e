"""What one run of a command showed, before it is recorded; every kind of command says it so."""

from __future__ import annotations

from dataclasses import dataclass, field

from rage_plugin.core.judgement import Outcome, Verdict
from rage_plugin.verify.command import Completed

NOT_STARTED = Completed(None, False, False, "", False, 0.0)
"""Stands for the end of a command that was never started."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A verdict with everything that it was read from; the fields are those of `Cell`."""

    verdict: Verdict
    completed: Completed = NOT_STARTED
    per_test: bool = False
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    duplicates: tuple[str, ...] = ()
    messages: dict[str, str] = field(default_factory=dict)
    note: str = ""
