"""What a paused run says to the person: what happened, what they may decide, what to type.

Each pause reason has its own words and its own way on (F085, F087). Pure; written for a chat, so
commands begin with `/rage`; `report.py` puts them into a shell's words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .lifecycle import open_blocker
from .model import Item, ItemState, PauseReason, RunState, Verification
from .oneline import one_line
from .order import next_item

Needs: TypeAlias = Literal["nothing", "answer", "ruling", "confirm", "more", "item"]
"""What a run waits for beside the word `resume`: nothing, an answer to its question, a ruling on a
deviation, `--confirm`, more of a limit, or a decision on an unverified item."""
LIMIT = 240
"""Characters of what happened; the rest is in `/rage report`."""

RESUME, STOP = "/rage resume", "/rage stop"
CORRECT = "/rage correct TEXT"
CONFIRM = "/rage resume --confirm"
BUDGET = "/rage resume --budget +50k"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One prompt; its sentences are clean and may be shown as they are."""

    happened: str
    choice: str
    """What the person may decide, and what was kept."""
    commands: tuple[str, ...]
    """What to type, each another way on; the first is the usual one."""
    needs: Needs


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is said for one reason, whatever the run."""

    title: str
    """What happened. `{item}` is the item; the run's own words follow after a colon."""
    choice: str
    commands: tuple[str, ...]
    needs: Needs = "nothing"
    whole: bool = False
    """The run's own words say all of it: the title stands only where there are none."""


_KEPT = "All work is kept as it is"
_ERRORS = frozenset(
    {
        PauseReason.CHECK_COULD_NOT_RUN,
        PauseReason.COMMIT_FAILED,
        PauseReason.WORKSPACE_MOVED,
        PauseReason.INTERNAL_FAULT,
    }
)
"""Reasons whose detail is an error's line, which ends with what helps."""

PROMPTS = {
    PauseReason.SPEC_DEVIATION: Prompt(
        "{item} deviates from what was agreed",
        "spec: what was agreed holds, and the agent takes it back; code: it stands as it is",
        ("/rage resolve spec", "/rage resolve code"),
        "ruling",
    ),
    PauseReason.NEEDS_CLARIFICATION: Prompt(
        "{item} has a question for you",
        "Nothing goes on without your answer. All work is kept as it is",
        ("/rage answer TEXT", STOP),
        "answer",
    ),
    PauseReason.CRITICAL_ISSUE: Prompt(
        "{item} has a critical issue",
        "--confirm: the run goes on with it. To have it changed, first say how: /rage correct TEXT",
        (CONFIRM, STOP),
        "confirm",
    ),
    PauseReason.CIRCUIT_BREAKER: Prompt(
        "A breaker opened",
        "--confirm: the item goes on from there; --budget: it has more to spend as well",
        (CONFIRM, BUDGET, STOP),
        "confirm",
    ),
    PauseReason.USER: Prompt("A person paused the run", _KEPT, (RESUME, STOP), whole=True),
    PauseReason.INTERRUPT: Prompt("The turn was interrupted", _KEPT, (RESUME, STOP), whole=True),
    PauseReason.NO_PROGRESS: Prompt(
        "The run makes no progress",
        "Say what to do differently with /rage correct TEXT, then go on. All work is kept",
        (RESUME, CORRECT, STOP),
    ),
    PauseReason.PROVIDER_ERRORS: Prompt(
        "The model cannot be reached",
        "See to the model's access, then go on. All work is kept as it is",
        (RESUME, STOP),
    ),
    PauseReason.LIMIT_ITERATIONS: Prompt(
        "The limit of turns is reached",
        "Give it more turns, or end it. All work is kept as it is",
        ("/rage resume --max-iterations +5", STOP),
        "more",
    ),
    PauseReason.LIMIT_TOKENS: Prompt(
        "The limit of tokens is reached",
        "Give it more to spend, or end it. All work is kept as it is",
        (BUDGET, STOP),
        "more",
    ),
    PauseReason.LIMIT_TIME: Prompt(
        "The limit of time is reached",
        "Give it more time, or end it. All work is kept as it is",
        ("/rage resume --time +2h", STOP),
        "more",
    ),
    PauseReason.LIMIT_ITEMS: Prompt(
        "As many items as you asked for were worked on",
        "The run can go on with all the rest. What is done is committed",
        (RESUME, STOP),
        whole=True,
    ),
    PauseReason.ITEM_FAILED: Prompt("An item failed", _KEPT, ("/rage report", STOP)),
    PauseReason.UNVERIFIED: Prompt(
        "An item waits for your word", _KEPT, ("/rage report", STOP), "item"
    ),
    PauseReason.SCOPE: Prompt(
        "A change lies outside its scope",
        "To let it stand, say so with /rage correct TEXT; else take the files back. Then go on",
        (RESUME, CORRECT, STOP),
        whole=True,
    ),
    PauseReason.CHECK_COULD_NOT_RUN: Prompt(
        "The checks could not run",
        "Mend that, then go on: nothing counts as done meanwhile. All work is kept as it is",
        (RESUME, STOP),
    ),
    PauseReason.COMMIT_FAILED: Prompt(
        "The commit could not be made",
        "Mend that, then go on: the change lies in the workspace as it was checked",
        (RESUME, STOP),
    ),
    PauseReason.WORKSPACE_MOVED: Prompt(
        "The workspace changed in a way that RAGE leaves alone",
        "Look at it, then go on. Nothing was overwritten",
        (RESUME, STOP),
        whole=True,
    ),
    PauseReason.SESSION_ENDED: Prompt(
        "The chat that drove the run ended", _KEPT, (RESUME, STOP), whole=True
    ),
    PauseReason.INTERNAL_FAULT: Prompt(
        "A fault inside RAGE",
        "Please report the log, then go on or end the run. All work is kept as it is",
        (RESUME, STOP),
    ),
}


def needs(reason: PauseReason) -> Needs:
    """What a run that is paused for this reason waits for."""
    return PROMPTS[reason].needs


def dialogue(state: RunState) -> Dialogue:
    """What a paused run says now; `ValueError` for one that is not paused."""
    said = _dialogue(state)
    return replace(said, happened=sentence(said.happened), choice=sentence(said.choice))


def _dialogue(state: RunState) -> Dialogue:
    reason = state.run.pause_reason
    if reason is None:
        raise ValueError(f"run {state.run.id} is {state.run.status} and asks for nothing")
    prompt, waits = PROMPTS[reason], open_blocker(state)
    if prompt.needs in ("answer", "ruling") and waits is None:
        return Dialogue("What the run asked for is decided", _KEPT, (RESUME, STOP), "nothing")
    if reason in (PauseReason.UNVERIFIED, PauseReason.ITEM_FAILED):
        return _of_items(state, prompt)
    told, choice = waits.detail if waits else state.run.pause_detail, prompt.choice
    if reason in _ERRORS and ". Next: " in told:
        told, _, helps = told.rpartition(". Next: ")
        choice = f"What helps: {one_line(helps, LIMIT)}"
    if reason is PauseReason.NEEDS_CLARIFICATION:
        told, options = _question(told)
        if options:
            choice = f"Possible answers: {one_line(options, LIMIT)}. {_KEPT}"
    title, words = _title(state, prompt), one_line(told, LIMIT)
    happened = words if prompt.whole and words else f"{title}: {words}" if words else title
    return Dialogue(happened, choice, prompt.commands, prompt.needs)


def lines(said: Dialogue) -> str:
    """A dialogue for a chat: what happened, what may be decided, what to type."""
    return f"{said.happened}\n{said.choice}\nNext: {'  or  '.join(said.commands)}"


def sentence(text: str) -> str:
    """The text with the full stop that it may lack."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def _title(state: RunState, prompt: Prompt) -> str:
    item = state.run.current_item
    return prompt.title.format(item=f"Item {one_line(item, 60)}" if item else "The run")


def _question(detail: str) -> tuple[str, str]:
    """A question and its possible answers, as `lifecycle.shown` joined them."""
    bar = detail.find(" | ")
    dash = detail.rfind(" - ", 0, bar) if bar >= 0 else -1
    return (detail[:dash], detail[dash + 3 :]) if dash >= 0 else (detail, "")


def _of_items(state: RunState, prompt: Prompt) -> Dialogue:
    """What became of the items, and what can still be done about them."""
    items = sorted(state.items.values(), key=lambda i: i.position)
    failed = [i for i in items if i.state is ItemState.FAILED]
    waiting = waiting_items(state)
    happened = [
        f"Item {one_line(i.id, 60)} failed: {one_line(i.reason, LIMIT)}" for i in failed[-1:]
    ]
    if len(failed) > 1:
        happened.append(f"{len(failed)} items failed in all")
    if next_item(items) is not None:
        choice = "Other items can go on. What failed is kept, and /rage report says where"
        return Dialogue("; ".join(happened) or prompt.title, choice, (RESUME, STOP), "nothing")
    if waiting:
        first = waiting[0]
        told = f"Item {one_line(first.id, 60)} could not be proven: {one_line(first.reason, LIMIT)}"
        where = f"Look at commit {first.commit[:12]}" if first.commit else "Look at it"
        more = f". {len(waiting) - 1} more wait for your word" if len(waiting) > 1 else ""
        choice = f"{where}: take it as done, or have it taken back{more}"
        return Dialogue("; ".join([*happened, told]), choice, (*verdicts(first.id), STOP), "item")
    if failed:
        target = one_line(state.run.target, 100)
        choice = (
            f"Its changes are kept; nothing else can be begun. To try again: {STOP}, then "
            f"/rage start {target}"
        )
        return Dialogue("; ".join(happened), choice, ("/rage report", STOP), "nothing")
    return Dialogue("Every item that waited is decided", _KEPT, (RESUME, STOP), "nothing")


def waiting_items(state: RunState) -> Sequence[Item]:
    """Unverified items that wait for a person's word, in order of work."""
    items = sorted(state.items.values(), key=lambda i: i.position)
    return [
        i
        for i in items
        if i.state is ItemState.IN_PROGRESS and i.verification is Verification.UNVERIFIED and i.next
    ]


def verdicts(item_id: str) -> tuple[str, str]:
    """The two commands that decide an unverified item."""
    return f"/rage accept {word(item_id)}", f"/rage reject {word(item_id)} --why TEXT"


def word(text: str) -> str:
    """One word of a command as a chat and a shell both take it: an id may come from anybody."""
    text = one_line(text)
    return text if re.fullmatch(r"[\w.:/-]+", text) else shlex.quote(text)
