"""Which earlier corrections of a person a new one supersedes (F141): a rule over words.

Separate so that the rule can be read, tested and doubted in one place. It understands nothing. A
person is told which directives a correction superseded, and says `--instead` to replace them all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"[\w./\\#@~:+-]+")
_MARKS = "./\\#@~:+-"
_NAME = re.compile(r"[\d./\\#@~:+_]|\w-\w")

# What a sentence is not about: function words as they are, in any form verbs that go with anything.
_FUNCTION_WORDS = """
    a about actually after again ahead all alone already also always am an and any anything
    anyway are as at back be because been before but by can cannot could couldn did do does
    doesn don done dont everything everywhere first for from further had has have he her here
    him his how i if in instead into is isn it its just later let like longer may me might mind
    moment must mustn my never next no nor not nothing now of off ok okay old on once one only
    onto or other our out over own per please rather right shall she should shouldn so some stay
    still such than that the their them then there these they thing this those through to today
    together tomorrow too under until up us used using very via was we well were what when where
    whether which while who why will with within without won would yes yet you your
    """
_COMMON_VERBS = """
    add allow apply avoid begin bother change check continue create defer delete do edit feel
    file fine finish forget free get give go hesitate hold ignore include keep leave look make
    modify move need open postpone proceed put read remove replace resume run say scrap scratch
    see set skip start stop take tell touch try update use wait want work write
    """
_NEGATION = r"(?:do not|don't|dont|does not|doesn't|not|never|stop|no longer|no need to)"
_HOLDING = r"(?:wait|hold|skip|avoid|leav|keep|postpon|defer|forget|hesitat)"
# "don't wait", "stop skipping", "no longer need to avoid": nothing is held back.
_LIFTED = re.compile(
    rf"\b{_NEGATION} (?:need |have |has |to |be |you |we |it ){{0,3}}{_HOLDING}\w*"
    r"|\bkeep (?:going|on|at)\b|\bnot only\b|\bno (?:problem|worries|objections?|doubt)\b"
)
_HOLDS = re.compile(
    r"\b(?:not|\w+n't|dont|no|never|none|nothing|cannot|stop|avoid|without|refrain|forbidden"
    r"|wait|hold|holding|skip|leave|keep|postpone|defer|ignore|stay (?:off|away|out))\b"
)
_WAITS = re.compile(
    r"\b(?:yet|until|till|wait|hold|later|postpone|defer|for now|for the moment|at the moment"
    r"|right now|before i|first|today|tomorrow)\b"
)
_REPLACES = re.compile(
    r"\b(?:instead|rather|from now on|forget|scrap|scratch that|ignore what i said|never ?mind"
    r"|actually|changed my mind|on second thoughts?|no longer|after all)\b"
)
_AGAIN = re.compile(r"\b(?:now|again|any ?more)\b")


@dataclass(frozen=True, slots=True)
class _Directive:
    plain: str
    topic: frozenset[str]
    holds: bool
    """It holds something back."""
    waits: bool
    """It does so for a while only."""
    replaces: bool
    """It says that it takes the place of something."""
    again: bool
    """It may say so."""


def superseded(new: str, older: Sequence[str], *, instead: bool = False) -> tuple[int, ...]:
    """Indices of the older directives which no longer hold beside a new one, ascending.

    `instead` supersedes all. Otherwise an older one goes when it has the same words, or when both
    speak of the same topic and conflict. Topic: the stems of content words; names, paths and
    numbers as they are. Conflict, in this order:

    - the new one says that it replaces ("instead", "actually", "forget", …), and they share at
      least half of the smaller topic; with "now" or "again", more than half;
    - the older one holds something back for a while ("not yet", "wait", …) and the new one does
      not: one shared word is enough;
    - exactly one of them holds something back ("don't", "never", "keep", …), and they share more
      than half of the smaller topic.

    Two that add to each other both hold: "use tabs in a.py" and "use tabs in b.py". So do two that
    contradict each other in other words ("use port 80", "use port 8080"), since no rule over words
    knows; and "read the port from the config" goes against "don't touch the config".
    """
    if instead:
        return tuple(range(len(older)))
    said = _read(new)
    return tuple(n for n, text in enumerate(older) if _conflict(said, _read(text)))


def _conflict(new: _Directive, old: _Directive) -> bool:
    if new.plain == old.plain:
        return True
    shared = 2 * len(new.topic & old.topic)
    smaller = min(len(new.topic), len(old.topic))
    if not shared:
        return False
    if (new.replaces and shared >= smaller) or (new.again and shared > smaller):
        return True
    if new.holds == old.holds:
        return False
    return (old.holds and old.waits) or shared > smaller


def _read(text: str) -> _Directive:
    plain = " ".join(text.replace("\u2019", "'").casefold().split())
    effective = _LIFTED.sub(" ", plain)
    return _Directive(
        plain=plain,
        topic=frozenset(
            stem for word in _TOKEN.findall(plain) if (stem := _stem(word.rstrip(_MARKS)))
        ),
        holds=bool(_HOLDS.search(effective)),
        waits=bool(_WAITS.search(effective)),
        replaces=bool(_REPLACES.search(effective)),
        again=bool(_AGAIN.search(effective)),
    )


def _stem(word: str) -> str:
    """Five letters without the commonest endings; a name, a path or a number as it is.

    Empty for a word that does not say what a sentence is about.
    """
    if _NAME.search(word):
        return word
    if len(word) < 2 or word in _FUNCTION:
        return ""
    short = _short(word)
    return "" if short in _VERBS else short


def _short(word: str) -> str:
    for ending in ("s", "ing", "ed", "e"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and not (ending == "s" and rest.endswith("s")):
            doubled = ending in ("ing", "ed") and len(rest) > 3 and rest[-1] == rest[-2]
            word = rest[:-1] if doubled and rest[-1] not in "sl" else rest
    word = word[:5]
    return f"{word[:-1]}i" if len(word) > 3 and word.endswith("y") else word


_FUNCTION = frozenset(_FUNCTION_WORDS.split())
_VERBS = frozenset(_short(verb) for verb in _COMMON_VERBS.split())
