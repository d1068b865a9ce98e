"""Whether the parts of a shared configuration file that a check reads are the same.

`pyproject.toml`, `setup.cfg`, `tox.ini` and `package.json` hold a project's version beside its
runner's options: a version bump is free, an added `addopts` is not. Unreadable means different.
"""

from __future__ import annotations

import configparser
import json
import tomllib
from collections.abc import Collection

SHARED = frozenset({"pyproject.toml", "setup.cfg", "tox.ini", "package.json"})
"""File names of which only the runner's sections are sealed."""
ALWAYS = frozenset({"pytest", "coverage"})
"""Tools whose sections are sealed whatever the commands are."""


def same_sections(
    name: str, before: bytes | None, after: bytes | None, tools: Collection[str]
) -> bool:
    """Whether the sections of these tools say the same in both versions; None is no file."""
    if before == after:
        return True
    read = {"pyproject.toml": _pyproject, "package.json": _package}.get(name, _ini)
    wanted = ALWAYS | set(tools)
    try:
        return read(before or b"", wanted) == read(after or b"", wanted)
    except (ValueError, configparser.Error, RecursionError):
        return False


def _pyproject(text: bytes, tools: Collection[str]) -> object:
    raw = tomllib.loads(text.decode("utf-8"))
    tool = _table(raw, "tool")
    entry_points = _table(_table(raw, "project"), "entry-points").get("pytest11")
    poetry = _table(_table(tool, "poetry"), "plugins").get("pytest11")
    return {t: tool[t] for t in sorted(tools) if t in tool}, entry_points, poetry


def _package(text: bytes, tools: Collection[str]) -> object:
    raw = json.loads(text) if text.strip() else {}
    if not isinstance(raw, dict):
        raise ValueError("not an object")  # noqa: TRY004 (unreadable, like any other bad JSON)
    names = {"scripts", "type", "jest", "mocha", "ava", "vitest", "c8", "nyc", *tools}
    return {k: v for k, v in raw.items() if k in names}


def _ini(text: bytes, tools: Collection[str]) -> object:
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(text.decode("utf-8"))
    return {
        section: dict(parser[section])
        for section in parser.sections()
        if _tool_of(section, tools) or section == "options.entry_points"
    } | {"DEFAULT": dict(parser.defaults())}


def _tool_of(section: str, tools: Collection[str]) -> bool:
    """`[pytest]`, `[tool:pytest]`, `[coverage:run]`, `[mypy-x.*]`, and `[testenv]` for tox."""
    plain = section.removeprefix("tool:")
    if plain.startswith(("testenv", "tox")):
        return "tox" in tools
    return any(plain == t or plain.startswith((f"{t}:", f"{t}-", f"{t}.")) for t in tools)


def _table(raw: dict[str, object], key: str) -> dict[str, object]:
    inner = raw.get(key)
    return inner if isinstance(inner, dict) else {}
