"""The `/rage` grammar: a line of text → a typed command, the same in every chat and in a shell."""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass
from typing import Any

from .core.config import Amount
from .core.errors import UsageError
from .core.targets import parse_target


@dataclass(frozen=True, slots=True)
class Command:
    """One parsed command. Fields that a verb does not use keep their defaults."""

    verb: str
    target: str = ""
    text: str = ""
    budget: Amount | None = None
    """Tokens."""
    max_iterations: Amount | None = None
    time: Amount | None = None
    """Seconds."""
    items: int | None = None
    snapshot: bool = False
    confirm: bool = False
    instead: bool = False
    head: str = ""
    last: int = 12


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
    Verb("start", "start TARGET [--budget N] [--max-iterations N] [--time T] [--items N] "
         "[--snapshot] [--confirm]",
         "Start working TARGET: #5, epic:5, a markdown file or folder, or backlog.",
         "start #5 --budget 300k"),
    Verb("status", "status", "Where the run stands.", "status"),
    Verb("pause", "pause", "Pause at the next hook; nothing is lost.", "pause"),
    Verb("resume", "resume [--budget +N] [--max-iterations +N] [--time +T] [--confirm]",
         "Go on with a paused or interrupted run, with more to spend if you say so.",
         "resume --budget +50k"),
    Verb("adopt", "adopt RUN", "Take over a run whose host is gone.", "adopt 3fa9c01b"),
    Verb("stop", "stop", "End the run now; commits and kept changes stay.", "stop"),
    Verb("kill", "kill", "End the run and every process of it, from any terminal.", "kill"),
    Verb("correct", "correct [--instead] TEXT",
         "Tell the run what to do differently; --instead: nothing said before holds.",
         "correct keep the old signature"),
    Verb("answer", "answer TEXT", "Answer the question that a run waits for, and go on.",
         "answer 8080"),
    Verb("resolve", "resolve RULING",
         "Rule on a deviation: spec (what was agreed holds) or code (what was made does).",
         "resolve spec"),
    Verb("accept", "accept ITEM", "Take an unverified item as done, bound to its tree.",
         "accept 5.2"),
    Verb("reject", "reject ITEM --why TEXT", "Take an unverified item's commit back.",
         "reject 5.2 --why 'changes the API'"),
    Verb("report", "report", "Every item with reason, evidence, spend and the next command.",
         "report"),
    Verb("handoff", "handoff", "What is done, what failed, what you should do now.", "handoff"),
    Verb("why", "why [RUN] [--last N]", "The last decisions in plain words, with their evidence.",
         "why"),
    Verb("audit", "audit verify [RUN] [--head HASH]",
         "Prove that nothing recorded was altered, moved or cut off.", "audit verify"),
    Verb("replay", "replay [RUN]", "Make every decision of a run again from its log.", "replay"),
    Verb("context", "context", "What RAGE added to the model's context, byte for byte.", "context"),
    Verb("help", "help", "This list.", "help"),
)  # fmt: skip
NAMES = tuple(v.name for v in VERBS)
LIMITS = {"--budget": "budget", "--max-iterations": "max_iterations", "--time": "time"}
"""Options that `start`, `resume` and `run` share, and the field that each sets."""
_OPTIONS = {
    "start": {*LIMITS, "--items", "--snapshot", "--confirm"},
    "resume": {*LIMITS, "--confirm"},
    "why": {"--last"},
    "audit": {"--head"},
    "reject": {"--why"},
}
_FLAGS = {"--snapshot": "snapshot", "--confirm": "confirm"}
_NEEDS = {"plan": "a target", "start": "a target", "accept": "an item", "reject": "an item",
          "adopt": "a run", "resolve": "spec or code"}  # fmt: skip
_MAY = frozenset({"why", "audit", "replay"})
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


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
    takes_words = words[1] in {*_NEEDS, "correct", "answer"}
    one_name = words[1] in _MAY and (len(rest.split()) == 1 or rest.startswith("verify "))
    return takes_words or one_name or not rest or rest.startswith("-")


def parse(text: str) -> Command:
    """The command of a chat line; `UsageError` with the nearest command otherwise."""
    words = text.strip().split(None, 2)
    verb = words[1] if len(words) > 1 else "help"
    rest = words[2] if len(words) > 2 else ""
    if verb in ("correct", "answer"):
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
    if verb in ("correct", "answer"):
        return _with_words(verb, rest)
    return _with_options(verb, rest)


def _with_words(verb: str, rest: list[str]) -> Command:
    text = " ".join(rest).strip()
    head, _, tail = text.partition(" ")
    instead = verb == "correct" and head == "--instead"
    text = tail.strip() if instead else text
    if not text:
        raise _usage(verb, "say what to do differently" if verb == "correct" else "say the answer")
    return Command(verb, text=text, instead=instead)


def _with_options(verb: str, rest: list[str]) -> Command:
    values: dict[str, Any] = {}
    plain: list[str] = []
    words = iter(rest)
    for word in words:
        name, equals, inline = word.partition("=")
        if not word.startswith("--"):
            plain.append(word)
        elif name not in _OPTIONS.get(verb, ()):
            raise _usage(verb, f"{verb} does not know {_clip(word)}")
        elif name in _FLAGS and not equals:
            values[_FLAGS[name]] = True
        elif name == "--why":
            values["text"] = " ".join([inline] if equals else list(words)).strip()
        else:
            given = inline if equals else next(words, "")
            values |= _valued(verb, name, given)
    if verb == "reject" and not values.get("text"):
        raise _usage(verb, "reject needs --why TEXT")
    return Command(verb, target=_target(verb, plain), **values)


def _valued(verb: str, name: str, text: str) -> dict[str, object]:
    """The field that an option with a value sets."""
    if name in LIMITS:
        return {LIMITS[name]: _amount(verb, name, text)}
    if name == "--head":
        if not re.fullmatch(r"[0-9a-fA-F]{12,64}", text):
            raise _usage(verb, f"--head takes 12 to 64 hexadecimal digits, got {_clip(text)!r}")
        return {"head": text.lower()}
    return {name.removeprefix("--"): _number(verb, name, text)}


def _target(verb: str, plain: list[str]) -> str:
    if verb == "audit":
        if plain[:1] != ["verify"] or len(plain) > 2:
            raise _usage(verb, "audit knows one thing: verify")
        return "".join(plain[1:])
    if verb in _MAY and len(plain) <= 1:
        return "".join(plain)
    if verb not in _NEEDS:
        if plain:
            raise _usage(verb, f"{verb} takes no {_clip(plain[0])!r}")
        return ""
    # A path with spaces may come unquoted from a chat.
    target = " ".join(plain)
    if not target:
        raise _usage(verb, f"{verb} needs {_NEEDS[verb]}")
    if verb == "resolve" and target not in ("spec", "code"):
        raise _usage(verb, f"resolve takes spec or code, got {_clip(target)!r}")
    # Two spellings of one target are one run (F004).
    return str(parse_target(target)) if verb in ("plan", "start") else target


def _amount(verb: str, name: str, text: str) -> Amount:
    """A limit: `300k`, `+50k` on top of what holds, `none` for no limit."""
    if text.lower() == "none":
        return Amount(None)
    more = text.startswith("+")
    if name != "--time":
        return Amount(_number(verb, name, text.removeprefix("+")), more)
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smhd])", text.removeprefix("+"))
    if found is None or float(found[1]) == 0:
        raise _usage(verb, f"--time takes a duration such as 90m or +2h, got {_clip(text)!r}")
    return Amount(float(found[1]) * _SECONDS[found[2]], more)


def _number(verb: str, name: str, text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    scale = {"k": 1_000, "m": 1_000_000}.get(digits[-1:].lower(), 1)
    if scale > 1:
        digits = digits[:-1]
    if not (digits.isascii() and digits.isdigit()) or int(digits) == 0 or len(digits) > 12:
        unlimited = "; for no limit write none" if name in LIMITS else ""
        what = f"{name} takes a whole number above 0, got {_clip(text)!r}{unlimited}"
        raise _usage(verb, what)
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
