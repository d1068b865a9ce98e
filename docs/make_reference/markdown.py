"""Tables and lines of the page, and the two ways of asking the code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import rage_plugin

LATER = "Nothing {} it in this version."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table; nothing at all without rows."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(c) for c in row) + " |" for row in rows]
    return "\n".join(lines) if len(lines) > 2 else ""


def prose(text: str | None) -> str:
    """A docstring's paragraphs as one line."""
    return " ".join((text or "").split())


def listed(names: Iterable[str]) -> str:
    """Names as code, with commas."""
    return ", ".join(f"`{n}`" for n in names)


def same(what: str, code: Iterable[str], described: Iterable[str]) -> None:
    """Stop unless the code and `words.py` name the same things."""
    odd = set(map(str, code)) ^ set(described)
    if odd:
        raise SystemExit(f"docs/make_reference/words.py and the code differ in {what}: {odd}")


def source_text(wanted: Callable[[Path], bool]) -> str:
    """The text of the package's modules, to see whether anything uses a name."""
    paths = sorted(Path(rage_plugin.__file__).parent.rglob("*.py"))
    return "\n".join(p.read_text("utf-8") for p in paths if wanted(p))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
