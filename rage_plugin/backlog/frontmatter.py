"""An item's front matter: YAML by a person, read strictly, with the line of whatever is wrong.

In front matter `#5` is an id and `# five` a comment: plain YAML would take both for comments, and
`depends_on: #5` would lose a dependency without a word.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rage_plugin.core.errors import Refused
from rage_plugin.core.plainyaml import PlainYaml, read_plain
from rage_plugin.core.targets import normal_id

KEYS = (
    "id",
    "title",
    "status",
    "depends_on",
    "parent",
    "priority",
    "labels",
    "gates",
    "unseal",
    "estimate",
)
ESTIMATES = ("tokens", "files", "lines")
"""The keys of `estimate`."""
OPEN = frozenset(
    {"open", "reopened", "new", "draft", "proposed", "accepted", "triage", "backlog", "planned"}
    | {"todo", "to-do", "next", "ready", "started", "in-progress", "doing", "wip", "active"}
    | {"working", "review", "in-review", "blocked", "waiting", "on-hold"}
)
CLOSED = frozenset(
    {"closed", "done", "complete", "completed", "finished", "resolved", "fixed", "merged"}
    | {"released", "wontfix", "won't-fix", "wont-fix", "cancelled", "canceled", "rejected"}
    | {"duplicate", "invalid", "obsolete", "abandoned"}
)
PRIORITIES: Mapping[str, int] = {"critical": 0, "urgent": 0, "high": 1, "medium": 2, "low": 3}
"""Words for the number that is meant; lower comes first."""
DEFAULT_PRIORITY = PRIORITIES["medium"]

_HASH = "\U0010fffd"
"""Stands for `#` while YAML is parsed: one character, so that columns stay."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the front matter says; None and empty where it says nothing."""

    id: str = ""
    title: str = ""
    closed: bool | None = None
    depends_on: tuple[str, ...] = ()
    parent: str | None = None
    priority: int | None = None
    labels: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    unseal: tuple[str, ...] = ()
    estimate: Mapping[str, int] = field(default_factory=dict)
    """What a person expects the item to come to, by the keys that are written."""
    warnings: tuple[str, ...] = ()


def read_front(text: str, where: str) -> FrontMatter:
    """Read the text between the `---` lines of the file `where`; `Refused` names file and line."""
    document = read_plain(re.sub(r"#(?=\d)", _HASH, text), where, first_line=2)
    if document.value is None:
        return FrontMatter()
    if not isinstance(document.value, dict):
        raise Refused(f"{where}:2: front matter must be `key: value` lines")
    reader = _Reader(document, document.value, text, where)
    return FrontMatter(
        id=reader.item_id("id") or "",
        title=" ".join(reader.text("title").split()),
        closed=reader.closed(),
        depends_on=reader.ids("depends_on"),
        parent=reader.item_id("parent"),
        priority=reader.priority(),
        labels=reader.words("labels"),
        gates=reader.paths("gates", "tests/test_x.py::test_y"),
        unseal=reader.paths("unseal", "tests/conftest.py"),
        estimate=reader.estimate(),
        warnings=reader.unknown(),
    )


class _Reader:
    """One method for each kind of value; each either returns it or refuses with the line."""

    def __init__(
        self, document: PlainYaml, values: Mapping[str, object], text: str, where: str
    ) -> None:
        self.document = document
        self.values = values
        self.source = re.split(r"\r\n?|\n", text)
        self.where = where

    def refuse(self, key: str, must: str, index: int | None = None) -> Refused:
        path = (key,) if index is None else (key, index)
        return Refused(f"{self.where}:{self.document.line(path)}: {key} must be {must}")

    def text(self, key: str) -> str:
        """A scalar as it is written: a title may look like a number or a date."""
        value = self.values.get(key)
        if value is None:
            return ""
        if isinstance(value, dict | list):
            raise self.refuse(key, "text")
        return _hashes(self.document.texts[(key,)])

    def item_id(self, key: str) -> str | None:
        found = self.ids(key)
        if len(found) > 1 or isinstance(self.values.get(key), list):
            raise self.refuse(key, f"one id, e.g. `{key}: 5`")
        return found[0] if found else None

    def ids(self, key: str) -> tuple[str, ...]:
        """Ids as a list, or as a scalar with commas; `#5`, `5` and `005` are one id."""
        must = "ids, e.g. `[4, 7]`" if key == "depends_on" else f"an id, e.g. `{key}: 5`"
        value = self.values.get(key)
        if value is None:
            self._refuse_hidden_id(key)
            return ()
        if isinstance(value, dict):
            raise self.refuse(key, must)
        found: list[str] = []
        for index in range(len(value)) if isinstance(value, list) else (None,):
            path = (key,) if index is None else (key, index)
            if path not in self.document.texts:
                raise self.refuse(key, must, index)
            written = _hashes(self.document.texts[path])
            for part in written.split(",") if key == "depends_on" else (written,):
                item_id = normal_id(part)
                if not item_id or re.search(r"\s", part.strip()):
                    raise self.refuse(key, must, index)
                found.append(item_id)
        return tuple(dict.fromkeys(found))

    def _refuse_hidden_id(self, key: str) -> None:
        """`depends_on: #login` is a comment to YAML; an id was meant."""
        line = self.document.lines.get((key,))
        if line and re.search(r":\s*#\w", self.source[line - 2]):
            raise Refused(
                f"{self.where}:{line}: what follows `#` is a comment in YAML",
                next=f"write the id of {key} without `#`, or in quotes",
            )

    def closed(self) -> bool | None:
        word = re.sub(r"[\s_]+", "-", self.text("status").strip().casefold())
        if not word:
            return None
        if word in CLOSED or word in OPEN:
            return word in CLOSED
        near = difflib.get_close_matches(word, sorted(OPEN | CLOSED), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise self.refuse("status", f"a word like open, in progress, done or wontfix{hint}")

    def priority(self) -> int | None:
        value = self.values.get("priority")
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9:
            return value
        word = value.strip().casefold() if isinstance(value, str) else ""
        if re.fullmatch(r"p\d", word):
            return int(word[1])
        if word not in PRIORITIES:
            raise self.refuse("priority", f"a whole number or one of {', '.join(PRIORITIES)}")
        return PRIORITIES[word]

    def words(self, key: str) -> tuple[str, ...]:
        """Labels as a list, or as a scalar with commas."""
        value = self.values.get(key)
        if isinstance(value, dict):
            raise self.refuse(key, "words, e.g. `[bug, parser]`")
        if isinstance(value, list):
            if any((key, n) not in self.document.texts for n in range(len(value))):
                raise self.refuse(key, "words, e.g. `[bug, parser]`")
            parts = [_hashes(self.document.texts[(key, n)]) for n in range(len(value))]
        else:
            parts = self.text(key).split(",")
        return tuple(dict.fromkeys(p.strip() for p in parts if p.strip()))

    def paths(self, key: str, example: str) -> tuple[str, ...]:
        """Paths or test ids inside the workspace; never an option, never a command."""
        value = self.values.get(key)
        if value is None:
            return ()
        single = not isinstance(value, list)
        found = []
        for index, part in enumerate([value] if not isinstance(value, list) else value):
            at = None if single else index
            if not isinstance(part, str):
                raise self.refuse(key, f"a list of text, e.g. `- {example}`", at)
            path = _hashes(part).strip()
            reason = unsafe_target(path)
            if reason:
                raise self.refuse(
                    key, f"paths inside the workspace, e.g. `- {example}`{reason}", at
                )
            found.append(path)
        return tuple(dict.fromkeys(found))

    def estimate(self) -> dict[str, int]:
        """Whole numbers above 0; `20k` and `1m` for tokens, as the command line writes them."""
        value = self.values.get("estimate")
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.refuse("estimate", "keys of its own, e.g. `{tokens: 20k, files: 3}`")
        found = {}
        for key in value:
            path = ("estimate", key)
            place = f"{self.where}:{self.document.line(path)}: estimate.{_hashes(key)}"
            if key not in ESTIMATES:
                near = difflib.get_close_matches(key, ESTIMATES, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(ESTIMATES)}"
                raise Refused(f"{place} is not a key; {hint}")
            number = _amount(self.document.texts.get(path, ""), scaled=key == "tokens")
            if not number:
                example = "20k" if key == "tokens" else "3"
                what = f"must be a whole number above 0, e.g. `{example}`"
                raise Refused(f"{place} {what}", next="leave it out where it is not known")
            found[key] = number
        return found

    def unknown(self) -> tuple[str, ...]:
        found = []
        for key in self.values:
            if key in KEYS:
                continue
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            line = self.document.line((key,))
            found.append(f"{self.where}:{line}: the key `{_hashes(key)}` is not read{hint}")
        return tuple(found)


def _amount(text: str, *, scaled: bool) -> int:
    """The number that is written, 0 where it is none: `010` is ten, and `1.5` is refused."""
    plain = re.sub("[_,]", "", text.strip().casefold())
    written = re.fullmatch(r"([0-9]{1,12})([km]?)", plain)
    if written is None or (written[2] and not scaled):
        return 0
    return int(written[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[written[2]]


def unsafe_target(path: str) -> str:
    """Why a path or test id may not be handed to a command, for the end of a sentence; or empty."""
    if not path:
        return ", not empty"
    if path[0] in "-@":
        return f", not beginning with `{path[0]}`"
    if any(not c.isprintable() for c in path):
        return ", without control characters"
    file = path.split("::", 1)[0]
    if file.startswith(("/", "~")) or posixpath.normpath(file).split("/")[0] == "..":
        return ", not outside it"
    return ""


def _hashes(text: str) -> str:
    return text.replace(_HASH, "#")
