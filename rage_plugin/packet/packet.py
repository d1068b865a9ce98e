"""The task packet: where the run stands, in at most `packet.tokens` tokens, whatever the state.

Fields of `templates/packet.j2` and the tokens that each may have (for a cap of 200):

    run, item, phase, turn   the tag; never cut further
    objective                the slice's, else the item's title, quoted
    scope                    paths that may change; left out where it is the whole workspace
    last                     the last judgement's one line, quoted
    avoid                    the newest two retired approaches, quoted
    directive                the newest two corrections that hold, quoted
    instruction              what to do in this phase; RAGE's own words
    criterion, gate          the last block (F070); never cut further

The size is O(1): at most two of anything, each bounded. Where the whole is too long, the fields
give way in the order of `STEPS`, first the ones that the agent can do without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rage_plugin.core import limits
from rage_plugin.core.judgement import Verdict
from rage_plugin.core.model import RunState
from rage_plugin.tokens import fits

from . import render
from .clip import Line

LEAST_CAP = 100
NO_GATE = "the project's own checks"
_NOMINAL = 200

FULL: Mapping[str, int] = {
    "run": 12,
    "item": 12,
    "objective": 40,
    "scope": 30,
    "last": 40,
    "avoid": 16,
    "avoid_older": 16,
    "directive": 40,
    "directive_older": 20,
    "instruction": 80,
    "criterion": 32,
    "gate": 32,
}
"""The most tokens of each field."""

STEPS: tuple[tuple[str, int], ...] = (
    ("avoid_older", 0),
    ("directive_older", 0),
    ("scope", 12),
    ("avoid", 8),
    ("last", 24),
    ("objective", 20),
    ("avoid", 0),
    ("directive", 24),
    ("scope", 0),
    ("instruction", 64),
    ("last", 14),
    ("objective", 0),
    ("directive", 14),
    ("instruction", 50),
    ("last", 0),
    ("instruction", 24),
)
"""What is shortened (0: left out) until the packet fits, in this order."""


def compose(state: RunState, instruction: str, cap: int, known: Sequence[str]) -> str:
    """The packet for a state; the same state gives the same bytes."""
    facts = _Facts(state, instruction, known)
    scale = min(cap, _NOMINAL) / _NOMINAL
    budget = {name: int(most * scale) for name, most in FULL.items()}
    text = render.packet(facts.fields(budget))
    for name, most in STEPS:
        if fits(text, cap):
            break
        budget[name] = int(most * scale)
        text = render.packet(facts.fields(budget))
    return text


class _Facts:
    """Everything that a packet may say, cleaned once and then cut to any budget."""

    def __init__(self, state: RunState, instruction: str, known: Sequence[str]) -> None:
        run, item = state.run, state.item
        self._phase = str(run.phase)
        self._turn = _turn(state)
        self._run = Line(run.id)
        self._item = Line(item.id if item else "")
        title = item.title if item else run.title
        self._objective = Line(state.slice.objective if state.slice else title, known)
        scope = _strings(state.slice.scope) if state.slice else []
        self._scope = Line("" if scope == ["**"] else ", ".join(scope[:8]), known)
        self._last = Line(state.last_failure, known)
        self._avoid = _newest(state.avoid, known)
        self._directives = _newest(state.directives, known)
        self._instruction = Line.own(instruction)
        number, gate = _gate(state)
        criteria = _strings(item.criteria) if item else []
        paired = len(criteria) == len(state.gates) and number < len(criteria)
        self._criterion = Line(criteria[number if paired else 0] if criteria else "", known)
        self._gate = Line(gate, known)

    def fields(self, budget: Mapping[str, int]) -> dict[str, str]:
        """The values for the template."""
        return {
            "run": self._run.head(budget["run"]),
            "item": self._item.head(budget["item"]),
            "phase": self._phase,
            "turn": self._turn,
            "objective": self._objective.quoted(budget["objective"]),
            "scope": self._scope.head(budget["scope"]),
            "last": self._last.quoted(budget["last"]),
            "avoid": _both(self._avoid, budget["avoid"], budget["avoid_older"]),
            "directive": _both(self._directives, budget["directive"], budget["directive_older"]),
            "instruction": self._instruction.head(budget["instruction"]),
            "criterion": self._criterion.quoted(budget["criterion"]),
            "gate": self._gate.ends(budget["gate"]) or NO_GATE,
        }


def _turn(state: RunState) -> str:
    """`3/12`: the item's third turn of twelve at most; `3` where there is no limit."""
    most = limits.read(state.run).max_iterations
    count = state.item.iteration if state.item else state.run.iteration
    return f"{count + 1}" if most is None else f"{count + 1}/{most}"


def _gate(state: RunState) -> tuple[int, str]:
    """The first gate that has not passed and its number; else the item's own."""
    for number, gate in enumerate(state.gates):
        if gate.verdict != Verdict.PASS and gate.target:
            return number, gate.target
    own = _strings(state.item.gates) if state.item and not state.gates else []
    return 0, own[0] if own else ""


def _newest(values: Sequence[str], known: Sequence[str]) -> list[Line]:
    """The last two values that say anything, newest first."""
    found = [Line(value, known) for value in values[-2:][::-1]]
    return [line for line in found if line.text]


def _both(values: Sequence[Line], newest: int, older: int) -> str:
    """The newest value, and the one before it where there is room."""
    shown = [v.quoted(most) for v, most in zip(values, (newest, older), strict=False)]
    return "; ".join(text for text in shown if text)


def _strings(text: str) -> list[str]:
    """A column's JSON list of strings."""
    return [str(value) for value in json.loads(text)]
