"""The corpus of secrets, its placeholders filled in at run time so that no file holds a secret."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "corpora" / "secrets.jsonl"
_ALPHABETS = {
    "UN": string.ascii_uppercase + string.digits,
    "U": string.ascii_uppercase,
    "AN": string.ascii_letters + string.digits,
    "B64": string.ascii_letters + string.digits + "+/",
    "B64U": string.ascii_letters + string.digits + "-_",
    "HX": string.digits + "abcdef",
    "D": string.digits,
}
_PLACE = re.compile(r"\{\{(UN|U|AN|B64U|B64|HX|D):(\d+)\}\}")


@dataclass(frozen=True)
class Row:
    """One example: the text, what in it is secret, and whether it is to be redacted."""

    kind: str
    text: str
    bodies: tuple[str, ...]
    keep: bool
    known: tuple[str, ...]


def rows(seed: int) -> list[Row]:
    """Every row of the corpus, filled from a seeded generator."""
    draw = random.Random(seed)
    return [_row(json.loads(line), draw) for line in CORPUS.read_text("utf-8").splitlines()]


def token(draw: random.Random, alphabet: str, length: int) -> str:
    """A random token that has a letter and a digit where its alphabet has both."""
    letters = _ALPHABETS[alphabet]
    made = [draw.choice(letters) for _ in range(length)]
    if alphabet in ("AN", "B64", "UN") and length >= 8:
        made[2], made[5] = draw.choice("abc").upper(), draw.choice(string.digits)
    return "".join(made)


def _row(raw: dict[str, str], draw: random.Random) -> Row:
    bodies: list[str] = []
    known = "Kn0wn-" + token(draw, "AN", 24)

    def fill(match: re.Match[str]) -> str:
        bodies.append(token(draw, match[1], int(match[2])))
        return bodies[-1]

    text = raw["input"]
    if "{{KNOWN_B64}}" in text:
        bodies.append(base64.b64encode(known.encode()).decode())
        text = text.replace("{{KNOWN_B64}}", bodies[-1])
    text = _PLACE.sub(fill, text)
    return Row(raw["kind"], text, tuple(bodies), raw["expected"] == "keep", (known,))
