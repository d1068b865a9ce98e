"""The pages of the project, and what a test needs to read of one: code blocks, links, code words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
EXTRA = (ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md")
_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block."""

    page: str
    line: int
    """Line of the opening fence, 1 first."""
    language: str
    text: str

    @property
    def place(self) -> str:
        """`docs/page.md:12`."""
        return f"{self.page}:{self.line}"


def blocks(page: Path, *languages: str) -> list[Block]:
    """The page's code blocks in one of the languages, in order."""
    found = []
    for token in _MARKDOWN.parse(page.read_text("utf-8")):
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        if token.type == "fence" and language in languages and token.map:
            found.append(Block(name(page), token.map[0] + 1, language, token.content))
    return found


def only(page: str, language: str, having: str) -> str:
    """The text of the one block of `docs/<page>` in a language that has these words."""
    every = blocks(ROOT / "docs" / page, language)
    found = [b.text for b in every if having in b.text]
    assert len(found) == 1, f"docs/{page}: {len(found)} {language} blocks with {having!r}"
    return found[0]


def links(page: Path) -> list[str]:
    """Where the page's links and pictures point to."""
    found = []
    for token in _inline(page):
        target = token.attrs.get("href") or token.attrs.get("src")
        if target:
            found.append(str(target))
    return found


def code_words(page: Path) -> list[str]:
    """What stands between single backticks."""
    return [t.content for t in _inline(page) if t.type == "code_inline"]


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in heads}


def name(page: Path) -> str:
    """The page's path from the root."""
    return page.relative_to(ROOT).as_posix()


def _inline(page: Path) -> list[Token]:
    tokens = _MARKDOWN.parse(page.read_text("utf-8"))
    return [child for token in tokens for child in token.children or ()]
