"""Acceptance criteria in an item's text: checkboxes, Given/When/Then, an acceptance list.

Separate because criteria are hashed at intake and must come out the same for the same text. A
checkbox is a criterion, ticked or not, unless it begins with `#n`: then it names a part of an epic.
A fence that calls itself `gherkin` was written as criteria and is read; every other fence is code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from .document import Node, is_task, label, leading_reference, one_line, visible

GHERKIN = ("gherkin", "feature", "cucumber")

_HEADING = re.compile(r"\W*(?:acceptance\s+)?criteri(?:a|on)\W*", re.IGNORECASE)
_STEP = re.compile(r"[*_]*(?P<word>given|when|then|and|but)\b[*_]*:?[*_]*(?=\s|$)", re.IGNORECASE)
_ONE_LINE = re.compile(r"[*_]*given\b.+\bthen\b", re.IGNORECASE | re.DOTALL)
_SCENARIO = re.compile(
    r"[*_]*(?:scenario(?: outline)?|example|background|rule)[*_]*:[*_]*\s*(?P<name>.*?)[*_]*$",
    re.IGNORECASE,
)
_NOT_A_STEP = ("|", "@", "#", '"""', "```", "examples:", "scenarios:")


def criteria(blocks: Iterable[Node], skip: Collection[Node] = ()) -> tuple[str, ...]:
    """The criteria in the blocks, in order, each once and on one line."""
    reader = _Reader(skip)
    reader.walk(blocks)
    reader.flush()
    return tuple(dict.fromkeys(reader.found))


class _Reader:
    """Walks the blocks; steps gather into a scenario until something else follows."""

    def __init__(self, skip: Collection[Node]) -> None:
        self.skip = skip
        self.found: list[str] = []
        self.name = ""
        self.steps: list[str] = []
        self.words: set[str] = set()
        self.listed: list[str] = []
        """Steps in an acceptance list: criteria of their own if no scenario comes of them."""

    def walk(self, blocks: Iterable[Node]) -> None:
        section = 0  # the level of the acceptance heading we are below, else 0
        announced = False
        for node in blocks:
            if node in self.skip:
                continue
            if node.type == "heading":
                self.flush()
                level = int(node.tag[1:])
                if _HEADING.fullmatch(visible(node)):
                    section = level
                elif level <= section:
                    section = 0
            elif node.type in ("bullet_list", "ordered_list"):
                self._list(node, listed=bool(section) or announced)
            elif node.type == "paragraph":
                self._paragraph(visible(node))
            elif node.type == "fence" and node.info.strip().lower() in GHERKIN:
                self.flush()
                self._gherkin(node.content)
                self.flush()
            else:
                self.flush()
                self.walk(node.children if node.type == "blockquote" else ())
            announced = node.type == "paragraph" and bool(_HEADING.fullmatch(visible(node)))

    def flush(self) -> None:
        """A scenario says what then holds, and what is given; one with a name may begin with when.

        Without that, prose like "When I click, it crashes" would be a criterion.
        """
        if "then" in self.words and ("given" in self.words or self.name):
            title = f"{self.name}: " if self.name else ""
            self.found.append(one_line(title + " ".join(self.steps)))
        else:
            self.found += self.listed
        self.name, self.steps, self.words, self.listed = "", [], set(), []

    def _list(self, node: Node, *, listed: bool) -> None:
        for item in node.children:
            if item in self.skip:
                continue
            text = label(item)
            if is_task(item):
                self.flush()
                if text and not leading_reference(text):
                    self.found.append(one_line(text))
            elif _STEP.match(text) and not _ONE_LINE.match(text):
                self._line(text)
                if listed:
                    self.listed.append(one_line(text))
            else:
                self.flush()
                if text and (listed or _ONE_LINE.match(text)):
                    self.found.append(one_line(text))
            self.walk(item.children[1:] if text else item.children)

    def _paragraph(self, text: str) -> None:
        if _ONE_LINE.match(text) and "\n" not in text:
            self.flush()
            self.found.append(one_line(text))
            return
        if not (_STEP.match(text) or _SCENARIO.match(text.split("\n", 1)[0])):
            self.flush()
        for line in text.split("\n"):
            self._line(line)

    def _gherkin(self, text: str) -> None:
        for line in text.split("\n"):
            bare = line.strip()
            if bare and not bare.lower().startswith(_NOT_A_STEP):
                self._line(bare)

    def _line(self, line: str) -> None:
        line = line.strip()
        scenario = _SCENARIO.match(line)
        step = _STEP.match(line)
        if scenario:
            self.flush()
            self.name = scenario["name"].strip()
        elif step:
            self._step(step["word"].lower(), line[step.end() :].strip())
        elif self.steps and line:
            self.steps.append(line)

    def _step(self, word: str, rest: str) -> None:
        if word == "given" and "then" in self.words:
            self.flush()
        if not self.steps and word in ("then", "and", "but"):
            return
        self.words.add(word)
        self.steps.append(f"{word} {rest}" if self.steps else f"{word.capitalize()} {rest}")
