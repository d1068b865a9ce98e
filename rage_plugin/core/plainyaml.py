"""YAML as plain values with the line of each: what a profile and front matter are read with.

Pure, text in and values out. Separate because two readers that must not know each other (the
profile and the backlog) have to refuse the same things with the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from .errors import Refused

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands, e.g. `("verification", "commands", 0, "name")`."""
MAX_DEPTH = 20
"""Levels of nesting; a deeper file is an attack or an accident."""

_CONSTRUCT = {
    "tag:yaml.org,2002:bool": yaml.constructor.SafeConstructor.construct_yaml_bool,
    "tag:yaml.org,2002:int": yaml.constructor.SafeConstructor.construct_yaml_int,
    "tag:yaml.org,2002:float": yaml.constructor.SafeConstructor.construct_yaml_float,
}


@dataclass(frozen=True, slots=True)
class PlainYaml:
    """A document's value, and for each key path its line and, for scalars, its text."""

    value: object
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    """1-based, in the file that was read; of the key, or of the element of a list."""
    texts: Mapping[KeyPath, str] = field(default_factory=dict)
    """A scalar as it is written: `005` and not 5, `5.10` and not 5.1."""

    def line(self, path: KeyPath) -> int:
        """The line of a path, or of the nearest one above it that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_plain(text: str, where: str, first_line: int = 1) -> PlainYaml:
    """Parse one YAML document; `where` and `first_line` say where its text begins.

    Anchors, aliases, tags, duplicate keys, several documents, tabs and deep nesting are refused.
    Dates stay text. An empty document has the value None.
    """
    try:
        loader = _PlainLoader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, max(int(error.position), 0)) + first_line
        raise Refused(
            f"{where}:{line}: the character {chr(error.character)!r} cannot stand in YAML"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = (mark.line if mark else 0) + first_line
        raise Refused(f"{where}:{line}: {_explain(error)}") from error
    if node is None:
        return PlainYaml(None)
    reader = _Reader(where, first_line)
    return PlainYaml(reader.read(node, ()), reader.lines, reader.texts)


class _PlainLoader(yaml.SafeLoader):
    """Composes nodes, and refuses what makes a small file big or a value something else."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _unwanted("anchors and aliases are not allowed: write the value out", event)
        if event.tag is not None:
            raise _unwanted(f"the tag {event.tag!r} is not allowed: write a plain value", event)
        if self.depth >= MAX_DEPTH:
            raise _unwanted(f"nested deeper than {MAX_DEPTH} levels", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Reader:
    """Turns nodes into values and remembers where each stood."""

    def __init__(self, where: str, first_line: int) -> None:
        self.where = where
        self.first_line = first_line
        self.lines: dict[KeyPath, int] = {}
        self.texts: dict[KeyPath, str] = {}

    def read(self, node: Any, path: KeyPath) -> object:
        self.lines.setdefault(path, self._line(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(child, (*path, n)) for n, child in enumerate(node.value)]
        self.texts[path] = text = self._whole(node)
        if node.tag == "tag:yaml.org,2002:null":
            return None
        if node.tag not in _CONSTRUCT:
            return text
        try:
            return _CONSTRUCT[node.tag](yaml.constructor.SafeConstructor(), node)
        except ValueError:  # e.g. more digits than Python converts
            return text

    def _mapping(self, node: Any, path: KeyPath) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = self._line(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise Refused(f"{self.where}:{line}: a key must be a word")
            key = str(key_node.value)
            here = (*path, key)
            if key in found:
                first = self.lines[here]
                raise Refused(
                    f"{self.where}:{line}: the key `{key}` stands twice, first on line {first}",
                    next="keep one of them",
                )
            self.lines[here] = line
            found[key] = self.read(value_node, here)
        return found

    def _whole(self, node: Any) -> str:
        """A scalar's text; JSON writes one character beyond U+FFFF as two halves."""
        text = str(node.value)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            what = "half a character (a lone surrogate)"
            raise Refused(f"{self.where}:{self._line(node)}: {what}") from error

    def _line(self, node: Any) -> int:
        return int(node.start_mark.line) + self.first_line


class _Unwanted(yaml.MarkedYAMLError):
    """What the parser would take and a profile must not hold."""


def _unwanted(problem: str, event: Any) -> _Unwanted:
    return _Unwanted(problem=problem, problem_mark=event.start_mark)


def _explain(error: yaml.MarkedYAMLError) -> str:
    """The parser's finding in a person's words."""
    problem = " ".join((error.problem or str(error)).split())
    if isinstance(error, _Unwanted):
        return problem
    if "'\\t'" in problem:
        return "a tab cannot indent or begin a value in YAML: use spaces"
    if "mapping values are not allowed" in problem:
        return "a value that holds `: ` must be quoted"
    if "found another document" in problem:
        return "only one YAML document is allowed: remove the second `---`"
    return f"not YAML: {problem}"
