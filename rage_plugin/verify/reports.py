"""Read JUnit XML, registered as a pluggy plugin like a third party's parser.

Separate because a report is written by a hostile process: it is read as a stream, a document type
(and with it every entity) is refused, and its size is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.parsers import expat

from rage_plugin.core.judgement import Outcome
from rage_plugin.hookspecs import hookimpl

MAX_BYTES = 64 * 1024 * 1024
"""A longer report is unreadable."""
_CHUNK = 64 * 1024
_RANK = {Outcome.PASS: 0, Outcome.SKIP: 1, Outcome.ERROR: 2, Outcome.FAIL: 3}
_TAGS = {"failure": Outcome.FAIL, "error": Outcome.ERROR, "skipped": Outcome.SKIP}


class Unreadable(ValueError):
    """The report is not well-formed, too long, or declares a document type."""


class JUnitReports:
    """The built-in implementation of `rage_parse_report`."""

    @hookimpl
    def rage_parse_report(self, kind: str, path: str) -> Mapping[str, str] | None:
        """Outcomes of a JUnit report by `classname::name`; None for other kinds and bad reports."""
        if kind != "junit":
            return None
        try:
            return parse(Path(path))
        except (Unreadable, OSError):
            return None


def parse(path: Path) -> dict[str, Outcome]:
    """Outcomes by `classname::name`, else `file::name`, else `name`.

    Of an id that is reported more than once the worst outcome holds. Raises `Unreadable`.
    """
    collector = _Collector()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    left = MAX_BYTES
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise Unreadable(f"The report is longer than {MAX_BYTES} bytes")
                parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise Unreadable(f"The report is not well-formed: {error}") from error
    if collector.root not in {"testsuites", "testsuite"}:
        raise Unreadable("The report is not JUnit XML")
    return collector.outcomes


def _refuse_doctype(*_args: object) -> None:
    raise Unreadable("The report declares a document type")


class _Collector:
    """Folds elements into outcomes."""

    def __init__(self) -> None:
        self.root = ""
        self.outcomes: dict[str, Outcome] = {}
        self._id = ""
        self._outcome = Outcome.PASS

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.root = self.root or tag
        if tag == "testcase":
            place = attributes.get("classname") or attributes.get("file", "")
            name = attributes.get("name", "")
            self._id = f"{place}::{name}" if place else name
            self._outcome = Outcome.PASS
        elif self._id and tag in _TAGS:
            self._outcome = _worse(self._outcome, _TAGS[tag])

    def end(self, tag: str) -> None:
        if tag == "testcase" and self._id:
            before = self.outcomes.get(self._id, self._outcome)
            self.outcomes[self._id] = _worse(before, self._outcome)
            self._id = ""


def _worse(a: Outcome, b: Outcome) -> Outcome:
    return a if _RANK[a] >= _RANK[b] else b
