"""One markdown text, parsed: its blocks, its tasks, and the items that its prose refers to.

Separate from items and criteria, because both look at the same tree. The parser decides what is
text and what is code, a comment or struck out; patterns are only applied to text. Emphasis, links
and images stay as they are written: they mean nothing here, and a title keeps its `__init__`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.front_matter import front_matter_plugin

from rage_plugin.core.targets import normal_id

Node: TypeAlias = SyntaxTreeNode
NEWLINE = re.compile(r"\r\n?|\n")
"""What the parser counts as the end of a line."""

_ID = r"\w(?:[\w.-]*\w)?"
_LEADING = re.compile(
    rf"[\s*_\[]*\#(?P<id>{_ID})[*_\]]*(?:\([^()\s]*\))?[*_]*(?:\s*[:.\u2013\u2014-])?(?:\s+|$)"
)
_REASON = r"(?<![\w-])(?:depends?[\s_-]+on|blocked[\s_-]+by)(?!\w)"
_ONE = rf"\#{_ID}[*_\]]*(?:\s*\([^()\n]*\))?"
_AND = r"\s*(?:[,;&+/]|\band\b)\s*(?:\band\b\s*)?[*_\[]*"
# No two quantifiers for the same characters stand side by side: the text may be hostile.
_RELATION = re.compile(
    rf"(?:{_REASON}|(?P<parent>(?<![\w-])parent[*_\s]*:))[\s*_:\[]*(?P<refs>{_ONE}(?:{_AND}{_ONE})*)",
    re.IGNORECASE,
)
_MARK = re.compile(r"(\[[ xX]\])(?:\s+|$)")
_REF = re.compile(rf"\#({_ID})")
_DENIED = re.compile(r"(?:\bnot|\bno longer|\bnever|n['\u2019]t)(?:\s+\w+)?\s*$", re.IGNORECASE)
_ANNOUNCED = re.compile(
    rf"\A[\s*_]*(?:{_REASON}|dependencies)[\s*_:]*\Z|{_REASON}[\s*_]*:[\s*_]*\Z", re.IGNORECASE
)
"""A line whose whole text is `Dependencies`, or that ends with `depends on:`."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text."""

    text: str
    front: str | None
    """The text between the `---` lines, or None without front matter."""
    body: str
    """Everything after the front matter, byte for byte."""
    blocks: tuple[Node, ...]
    starts: tuple[int, ...]
    """Where each line of the text begins, and where the text ends."""

    def lines(self, start: int, end: int) -> str:
        """Lines `start` (0-based) to before `end`, with their own line ends."""
        last = len(self.starts) - 1
        return self.text[self.starts[min(start, last)] : self.starts[min(end, last)]]


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where the prose says how the item relates to another."""

    kind: Literal["depends_on", "parent"]
    id: str
    line: int


def parse(text: str) -> Document:
    """Parse a text; front matter counts when the first line is exactly `---` and it is closed."""
    parser = _parser()
    tokens = parser.parse(text)
    first = NEWLINE.split(text, maxsplit=1)[0]
    if tokens and tokens[0].type == "front_matter" and first.strip("- \t"):
        parser = _parser(front=False)
        tokens = parser.parse(text)
    for token in tokens:
        if token.type == "inline":
            # The tree is built by recursion; what a line holds stays flat, however it nests.
            token.meta["parts"] = token.children or []
            token.children = None
    blocks = tuple(SyntaxTreeNode(tokens).children)
    starts = (0, *(found.end() for found in NEWLINE.finditer(text)), len(text))
    if not blocks or blocks[0].type != "front_matter":
        return Document(text, None, text, blocks, starts)
    end = blocks[0].map[1] if blocks[0].map else 0
    return Document(text, blocks[0].content, text[starts[end] :], blocks[1:], starts)


def visible(node: Node, *, code: bool = True) -> str:
    """The text of a paragraph or heading without comments and struck-out words.

    With `code` false a code span is a blank, for whoever looks for words that mean something.
    """
    out: list[str] = []
    struck = 0
    for inline in node.children:
        for part in inline.meta.get("parts", ()):
            if part.type in ("s_open", "s_close"):
                struck += 1 if part.type == "s_open" else -1
            elif struck:
                continue
            elif part.type == "code_inline":
                out.append(f"`{part.content}`" if code else " ")
            elif part.type in ("softbreak", "hardbreak"):
                out.append("\n")
            elif part.type != "html_inline" or not part.content.startswith("<!"):
                out.append(part.content)
    return "".join(out).strip()


def one_line(text: str) -> str:
    """A text on one line, with single spaces."""
    return " ".join(text.split())


def is_task(node: Node) -> bool:
    """Whether a block is a list item that begins with `[ ]` or `[x]` and has a text."""
    return _mark(node) is not None


def is_ticked(task: Node) -> bool:
    """Whether a task is marked done."""
    return (_mark(task) or "") in ("[x]", "[X]")


def label(item: Node) -> str:
    """The text of a list item's first paragraph, without its mark; empty when it has none."""
    first = item.children[0] if item.children else None
    if first is None or first.type != "paragraph":
        return ""
    return _MARK.sub("", visible(first), count=1)


def leading_reference(text: str) -> tuple[str, str] | None:
    """The id and the rest when a text begins with `#n`."""
    found = _LEADING.match(text)
    return (normal_id(found["id"]), text[found.end() :].strip()) if found else None


def tasks(blocks: Iterable[Node], skip: Collection[Node] = ()) -> Iterator[Node]:
    """Every task in the blocks, nested ones too, in order; lists of dependencies are none."""
    previous: Node | None = None
    for node in blocks:
        if node not in skip and not _lists_dependencies(previous, node):
            if is_task(node):
                yield node
            yield from tasks(node.children, skip)
        previous = node


def outermost_tasks(blocks: Iterable[Node]) -> Iterator[Node]:
    """The tasks that lie below no other task; plain bullets above them only group them."""
    for node in blocks:
        if is_task(node):
            yield node
        elif node.type in ("bullet_list", "ordered_list", "list_item"):
            yield from outermost_tasks(node.children)


def mentions(blocks: Iterable[Node], skip: Collection[Node] = ()) -> Iterator[Mention]:
    """What the prose says about other items: `Depends on #n`, `Blocked by #n`, `Parent: #n`.

    Several ids may follow, with commas or `and`, or as a list below `Depends on:`.
    """
    previous: Node | None = None
    for node in blocks:
        if node in skip:
            continue
        if node.type in ("paragraph", "heading"):
            yield from _mentions_in(node)
        elif _lists_dependencies(previous, node):
            for item in node.children:
                found = leading_reference(label(item))
                if found:
                    yield Mention("depends_on", found[0], _line(item))
        yield from mentions(node.children, skip)
        previous = node


def _mentions_in(node: Node) -> Iterator[Mention]:
    text = visible(node, code=False)
    line, counted = _line(node), 0
    for match in _RELATION.finditer(text):
        line += text.count("\n", counted, match.start("refs"))
        counted = match.start("refs")
        if _DENIED.search(text[max(0, match.start() - 40) : match.start()]):
            continue
        kind: Literal["depends_on", "parent"] = "parent" if match["parent"] else "depends_on"
        for ref in _REF.finditer(match["refs"]):
            yield Mention(kind, normal_id(ref[1]), line)


def _lists_dependencies(previous: Node | None, node: Node) -> bool:
    return (
        node.type in ("bullet_list", "ordered_list")
        and previous is not None
        and previous.type in ("paragraph", "heading")
        and bool(_ANNOUNCED.search(visible(previous, code=False)))
    )


def _line(node: Node) -> int:
    return (node.map[0] if node.map else 0) + 1


def _mark(node: Node) -> str | None:
    """`[ ]` or `[x]` at the head of a list item (the parser's own plugin is quadratic here)."""
    first = node.children[0] if node.type == "list_item" and node.children else None
    if first is None or first.type != "paragraph":
        return None
    found = _MARK.match(first.children[0].content)
    return found[1] if found and found.end() < len(first.children[0].content) else None


@cache
def _parser(front: bool = True) -> MarkdownIt:
    # maxNesting: what lies deeper than the parser's limit is dropped without a word.
    parser = MarkdownIt("commonmark", {"maxNesting": 100})
    if front:
        parser.use(front_matter_plugin)
    # Links cost quadratic time on a text full of brackets.
    return parser.enable("strikethrough").disable(["emphasis", "link", "image"])
