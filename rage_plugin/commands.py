"""The `/rage` grammar: a line of text → a typed command, the same in every chat and in a shell."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass

from .core.errors import UsageError
from .core.targets import parse_target


@dataclass(frozen=True, slots=True)
class Command:
    """One parsed command. Fields that a verb does not use keep their defaults."""

    verb: str
    target: str = ""
    text: str = ""
    budget: int | None = None
    """Tokens."""
    max_iterations: int | None = None
    items: int | None = None
    snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """How one verb is written, what it does and an example; help and docs are made from it."""

    name: str
    usage: str
    does: str
    example: str


VERBS = (
    Verb("plan", "plan TARGET", "Show items, gates, checks and limits; nothing is written.",
         "plan #5"),
    Verb("start", "start TARGET [--budget N] [--max-iterations N] [--items N] [--snapshot]",
         "Start working TARGET: #5, epic:5, a markdown file or folder, or backlog.",
         "start #5 --budget 300000"),
    Verb("status", "status", "Where the run stands.", "status"),
    Verb("pause", "pause", "Pause at the next hook; nothing is lost.", "pause"),
    Verb("resume", "resume", "Go on with a paused or interrupted run.", "resume"),
    Verb("stop", "stop", "End the run now; commits and kept changes stay.", "stop"),
    Verb("correct", "correct TEXT", "Tell the run what to do differently; the plan is superseded.",
         "correct keep the old signature"),
    Verb("accept", "accept ITEM", "Take an unverified item as done, bound to its tree.",
         "accept 5.2"),
    Verb("reject", "reject ITEM --why TEXT", "Take an unverified item's commit back.",
         "reject 5.2 --why 'changes the API'"),
    Verb("report", "report", "Every item with reason, evidence, spend and the next command.",
         "report"),
    Verb("context", "context", "What RAGE added to the model's context, byte for byte.", "context"),
    Verb("help", "help", "This list.", "help"),
)  # fmt: skip
NAMES = tuple(v.name for v in VERBS)
_NUMBERS = {"--budget": "budget", "--max-iterations": "max_iterations", "--items": "items"}


def is_command(text: str) -> bool:
    """Whether a chat line is for RAGE: `/rage …`, or `rage VERB …` with a known verb.

    Some hosts swallow lines that begin with a slash; an ordinary sentence that begins with the
    word is not a command.
    """
    words = text.split(None, 2)
    if not words:
        return False
    if words[0] == "/rage":
        return True
    if words[0] != "rage" or len(words) < 2 or words[1] not in NAMES:
        return False
    # `rage report`, but not "rage report looks wrong to me".
    rest = words[2] if len(words) > 2 else ""
    takes_words = words[1] in ("plan", "start", "correct", "accept", "reject")
    return takes_words or not rest or rest.startswith("-")


def parse(text: str) -> Command:
    """The command of a chat line; `UsageError` with the nearest command otherwise."""
    words = text.strip().split(None, 2)
    verb = words[1] if len(words) > 1 else "help"
    rest = words[2] if len(words) > 2 else ""
    if verb == "correct":
        return parse_words([verb, rest])
    try:
        parts = shlex.split(rest)
    except ValueError:
        parts = rest.split()
    return parse_words([verb, *parts])


def parse_words(words: list[str]) -> Command:
    """The command of a verb and its words, as a shell would have split them."""
    verb, rest = (words[0], words[1:]) if words else ("help", [])
    if verb in ("--help", "-h"):
        verb = "help"
    if verb not in NAMES:
        near = difflib.get_close_matches(verb, NAMES, n=1)
        hint = f"Did you mean {near[0]}" if near else f"Known: {', '.join(NAMES)}"
        raise UsageError(f"There is no command {_clip(verb)!r}. {hint}", next="/rage help")
    if verb == "correct":
        text = " ".join(rest).strip()
        if not text:
            raise _usage(verb, "say what to do differently")
        return Command(verb, text=text)
    return _with_options(verb, rest)


def _with_options(verb: str, rest: list[str]) -> Command:
    values: dict[str, int] = {}
    plain: list[str] = []
    why, snapshot = "", False
    words = iter(rest)
    for word in words:
        name, equals, inline = word.partition("=")
        if verb == "start" and name in _NUMBERS:
            values[_NUMBERS[name]] = _number(verb, name, inline if equals else next(words, ""))
        elif verb == "start" and word == "--snapshot":
            snapshot = True
        elif verb == "reject" and name == "--why":
            why = " ".join([inline] if equals else list(words)).strip()
        elif word.startswith("--"):
            raise _usage(verb, f"{verb} does not know {_clip(word)}")
        else:
            plain.append(word)
    if verb in ("plan", "start", "accept", "reject"):
        if not plain:
            raise _usage(
                verb, f"{verb} needs {'a target' if verb in ('plan', 'start') else 'an item'}"
            )
        # A path with spaces may come unquoted from a chat.
        target = " ".join(plain)
        if verb in ("plan", "start"):
            # Two spellings of one target are one run (F004).
            target = str(parse_target(target))
    elif plain:
        raise _usage(verb, f"{verb} takes no {_clip(plain[0])!r}")
    else:
        target = ""
    if verb == "reject" and not why:
        raise _usage(verb, "reject needs --why TEXT")
    return Command(verb, target=target, text=why, snapshot=snapshot, **values)


def _number(verb: str, name: str, text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    scale = {"k": 1_000, "m": 1_000_000}.get(digits[-1:].lower(), 1)
    if scale > 1:
        digits = digits[:-1]
    if not (digits.isascii() and digits.isdigit()) or int(digits) == 0 or len(digits) > 12:
        raise _usage(verb, f"{name} takes a whole number above 0, got {_clip(text)!r}")
    return int(digits) * scale


def _usage(verb: str, what: str) -> UsageError:
    known = next(v for v in VERBS if v.name == verb)
    return UsageError(what[0].upper() + what[1:], next=f"/rage {known.usage}")


def _clip(text: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= 40 else shown[:39] + "…"


def help_text(prefix: str = "/rage ") -> str:
    """Every command with its purpose and an example."""
    width = max(len(v.name) for v in VERBS)
    lines = [f"{prefix}{v.name:<{width}}  {v.does}  e.g. {prefix}{v.example}" for v in VERBS]
    return "\n".join(lines)
