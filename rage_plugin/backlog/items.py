"""The items of one file's text: the file is an item, or its task list holds many.

Pure, and separate from where files lie. Front matter is a person's word; everything else in the
text is only read for what it says about other items and about criteria.
"""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rage_plugin.core.errors import Refused
from rage_plugin.core.model import ItemSpec
from rage_plugin.core.targets import normal_id

from .criteria import criteria
from .document import (
    Document,
    Mention,
    Node,
    is_ticked,
    label,
    leading_reference,
    mentions,
    one_line,
    outermost_tasks,
    parse,
    tasks,
    visible,
)
from .files import shown
from .frontmatter import DEFAULT_PRIORITY, FrontMatter, read_front

_NUMBERED = re.compile(r"#?(?P<id>\d+(?:\.\d+)*)(?:[-_ .]+(?P<rest>.*))?", re.DOTALL)
_UNCLOSED = re.compile(r"---[ \t]*(?:\r\n?|\n)[A-Za-z_]+[ \t]*:")
_SLUG_LENGTH = 48


@dataclass(frozen=True, slots=True)
class Found:
    """An item, where it stands, and what its own text cannot decide alone."""

    spec: ItemSpec
    line: int
    stated: bool = True
    """Whether its own status is written; else a tick in its epic closes it."""
    ticked: frozenset[str] = frozenset()
    """Parts that its task list marks done."""
    warnings: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """`file:line` for a message."""
        return f"{shown(self.spec.source)}:{self.line}"


def read_items(
    text: str, source: str, *, is_list: bool = False, known: frozenset[str] | None = None
) -> list[Found]:
    """The items of one file's text.

    A file named BACKLOG or TODO is a list. So is, without front matter, a file that is itself a
    place of the backlog (`is_list`) and holds a task; and a file outside the
    backlog whose tasks bring their own `#n` and a title, none of them one of the `known` ids (then
    it is an epic that lists them). Every other file is one item.
    """
    document = parse(text)
    front = FrontMatter()
    if document.front is not None:
        front = read_front(document.front, shown(source))
    elif _UNCLOSED.match(text):
        what = "the front matter does not end: write `---` below its last key"
        raise Refused(f"{shown(source)}:1: {what}")
    stem = posixpath.basename(source).rpartition(".")[0]
    named = stem.casefold() in ("backlog", "todo") and not front.id
    top = list(outermost_tasks(document.blocks))
    if named or (document.front is None and top and (is_list or _defines(top, known))):
        return _items_of_list(top, document, source)
    return [_item_of_file(document, front, source)]


def _defines(top: Iterable[Node], known: frozenset[str] | None) -> bool:
    references = [leading_reference(label(t)) for t in top]
    ids = {r[0] for r in references if r and r[1]}
    return known is not None and bool(ids) and not ids & known


def _item_of_file(document: Document, front: FrontMatter, source: str) -> Found:
    stem = posixpath.basename(source).rpartition(".")[0]
    number = _NUMBERED.fullmatch(stem)
    item_id = front.id or normal_id(number["id"] if number else stem)
    if not item_id:
        what = "the file's name gives no id: write `id: 5` in its front matter"
        raise Refused(f"{shown(source)}:1: {what}")
    words = (number["rest"] or "") if number else stem
    parts = [(t, r[0]) for t in tasks(document.blocks) if (r := leading_reference(label(t)))]
    needed, parent = _relations(mentions(document.blocks), source, front.parent)
    spec = ItemSpec(
        id=item_id,
        title=front.title or _heading(document, item_id) or _words(words) or f"Item {item_id}",
        body=document.body,
        source=source,
        criteria=criteria(document.blocks),
        gates=front.gates,
        depends_on=tuple(dict.fromkeys((*front.depends_on, *needed))),
        parent=parent,
        priority=DEFAULT_PRIORITY if front.priority is None else front.priority,
        labels=front.labels,
        unseal=front.unseal,
        closed=bool(front.closed),
        children=tuple(dict.fromkeys(part for _, part in parts)),
        expected_tokens=front.estimate.get("tokens", 0),
        expected_files=front.estimate.get("files", 0),
        expected_lines=front.estimate.get("lines", 0),
    )
    ticked = frozenset(part for t, part in parts if is_ticked(t))
    return Found(spec, 1, front.closed is not None, ticked, front.warnings)


def _items_of_list(top: Sequence[Node], document: Document, source: str) -> list[Found]:
    found: list[Found] = []
    for task in top:
        _define(task, document, source, None, found)
    return found


def _define(
    task: Node, document: Document, source: str, parent: str | None, found: list[Found]
) -> None:
    """The item of one task, then those of the tasks below it that have an id and a title."""
    start, end = task.map or (0, 0)
    first = label(task).split("\n", 1)[0]
    item_id, title = leading_reference(first) or (_slug(first), first)
    if not item_id:
        raise Refused(f"{shown(source)}:{start + 1}: a task without an id: write `- [ ] #5 Title`")
    parts = _parts(task)
    own = [t for t, (_, words) in parts if words]
    skip = frozenset(own)
    needed, parent = _relations(mentions(task.children, skip), source, parent)
    spec = ItemSpec(
        id=item_id,
        title=one_line(title) or f"Item {item_id}",
        body=textwrap.dedent(document.lines(start + 1, end)).strip("\r\n"),
        source=source,
        criteria=criteria(task.children[1:], skip),
        depends_on=needed,
        parent=parent,
        priority=DEFAULT_PRIORITY,
        closed=is_ticked(task),
        children=tuple(dict.fromkeys(part for _, (part, _) in parts)),
    )
    ticked = frozenset(part for t, (part, _) in parts if is_ticked(t))
    found.append(Found(spec, start + 1, ticked=ticked))
    for child in own:
        _define(child, document, source, item_id, found)


def _parts(task: Node) -> list[tuple[Node, tuple[str, str]]]:
    """The tasks below a task that begin with `#n`, without those below another one of them."""
    below = [(t, r) for t in tasks(task.children) if (r := leading_reference(label(t)))]
    all_of_them = {t for t, _ in below}
    return [(t, r) for t, r in below if not any(a in all_of_them for a in _above(t))]


def _above(task: Node) -> Iterable[Node]:
    node = task.parent
    while node is not None:
        yield node
        node = node.parent


def _relations(
    said: Iterable[Mention], source: str, parent: str | None
) -> tuple[tuple[str, ...], str | None]:
    """The dependencies and the parent that the prose names; two parents are refused."""
    needed: list[str] = []
    for mention in said:
        if mention.kind == "depends_on":
            needed.append(mention.id)
        elif parent is None or parent == mention.id:
            parent = mention.id
        else:
            where = f"{shown(source)}:{mention.line}"
            raise Refused(
                f"{where}: a second parent, #{mention.id} beside #{parent}", next="keep one of them"
            )
    return tuple(dict.fromkeys(needed)), parent


def _heading(document: Document, item_id: str) -> str:
    """The first heading's text, without the item's own `#5` before it."""
    for block in document.blocks:
        if block.type == "heading":
            text = one_line(visible(block))
            own = leading_reference(text)
            return own[1] or text if own and own[0] == item_id else text
    return ""


def _words(stem: str) -> str:
    return one_line(re.sub(r"[-_]+", " ", stem))


def _slug(text: str) -> str:
    """An id for a task without one: its title's words, cut at a word."""
    slug = normal_id(text.split("\n", 1)[0].lower().replace(".", "-"))
    if len(slug) <= _SLUG_LENGTH:
        return slug
    return slug[: _SLUG_LENGTH + 1].rpartition("-")[0] or slug[:_SLUG_LENGTH]
