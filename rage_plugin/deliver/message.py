"""The text of a commit: a cleaned subject, what was verified, and trailers nobody can forge.

Separate because titles, gates and reasons come from a backlog and from agents: everything here
treats them as text that wants to be a trailer.
"""

from __future__ import annotations

import json
import textwrap
import unicodedata
from collections.abc import Mapping
from urllib.parse import quote

from rage_plugin.core.judgement import Origin
from rage_plugin.core.model import Item

VERIFIED = "verified"
UNVERIFIED = "unverified"
SUBJECT = 72
"""Characters of a subject line."""

_CHECKED_BY = {
    Origin.GIVEN: "Verified by a test of the item or the project: red before, green after.",
    Origin.AGENT: "Verified by a test written for this item: red before, green after.",
    Origin.PERSON: "Accepted by a person.",
    Origin.SUITE: "Verified by the whole suite; no test of this item was red before.",
}


def one_line(text: str) -> str:
    """Text without line breaks, control, format and private characters."""
    kept = (" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in text)
    return " ".join("".join(c for c in kept if unicodedata.category(c)[0] != "C").split())


def token(text: str) -> str:
    """An id as one word of a trailer; two ids never become the same word."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="#/:@+,") or "%"


def subject(title: str, item: str) -> str:
    """`<title> (#<id>)` within one line of 72 characters."""
    suffix = f" (#{token(item).removeprefix('#')})"
    clean = one_line(title).removesuffix(suffix) or "Item"
    room = max(20, SUBJECT - len(suffix))
    return (clean if len(clean) <= room else clean[: room - 1].rstrip() + "…") + suffix


def trailers(run: str, item: str, **more: str) -> dict[str, str]:
    """The trailers that name a run and an item, then others in the order given."""
    named = {"run": run, "item": item, **more}
    return {f"Rage-{key.capitalize()}": token(value) for key, value in named.items()}


def compose(subject_line: str, body: str, trailer: Mapping[str, str]) -> str:
    """A whole message: the trailers stand alone in the last paragraph, where git reads them."""
    block = "\n".join(f"{key}: {value}" for key, value in trailer.items())
    return f"{subject_line}\n\n{body}\n\n{block}\n"


def of_item(run: str, item: Item, tree: str, status: str) -> tuple[str, str]:
    """Subject and body of an item's commit."""
    if status == VERIFIED:
        told = _CHECKED_BY.get(Origin(item.origin), "") if item.origin else ""
        told = told or "Verified: red before, green after, nothing that passed fails."
    else:
        why = one_line(item.reason) or "no check was red before and green after"
        told = f"Not verified: {why}"
    lines = [told, f"Checked: exactly this tree, {tree}, in run {token(run)}."]
    lines += [f"Gate: {one_line(gate)}" for gate in list(json.loads(item.gates))[:10]]
    return subject(item.title, item.id), "\n".join(_wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    # Indented, so that no line of foreign text begins like a trailer even for a plain `grep`.
    return textwrap.fill(
        line[:600], SUBJECT, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
