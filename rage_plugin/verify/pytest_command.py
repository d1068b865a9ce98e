"""Recognise a pytest command line, and say which configuration it would read on the base.

Separate because it is pure: argument lists and file contents in, a plan out.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Listing(Protocol):
    """What has to be known of a tree; paths are relative to the root, which is an empty string."""

    def read(self, path: str) -> bytes | None:
        """Content of a file; None where there is none."""
        ...

    def is_folder(self, path: str) -> bool: ...

    def has(self, path: str) -> bool:
        """Whether it is a file or a folder."""
        ...


_MANAGERS = frozenset({"uv", "poetry", "hatch", "pdm", "pipenv", "rye", "pixi"})
_WRAPPERS = frozenset({"env", "nice", "xvfb-run"})
# Options of the managers that take a value, so that `uv run --with pytest pytest` is read right.
_VALUED = frozenset(
    {
        "--with",
        "--with-editable",
        "--with-requirements",
        "--extra",
        "--group",
        "--only-group",
        "--no-group",
        "--python",
        "-p",
        "--package",
        "--directory",
        "--project",
        "--env-file",
        "--index",
        "-e",
        "--environment",
        "-C",
    }
)
_PYTHON = re.compile(r"python(\d+(\.\d+)*)?|pypy\d*(\.\d+)*")
_DEDICATED = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_SHARED = {"pyproject.toml": ".toml", "tox.ini": ".ini", "setup.cfg": ".cfg"}
PRIVATE = ".rage-pytest"
"""Stem of the file that holds the base's configuration beside the tree's own."""


@dataclass(frozen=True, slots=True)
class PytestCommand:
    """A pytest command line in its parts."""

    prefix: tuple[str, ...]
    """What runs the interpreter, e.g. `uv run`; kept."""
    managed: bool
    """True where the prefix decides which interpreter `python` is."""
    program: str
    """The interpreter or the pytest script as written."""
    flags: tuple[str, ...]
    """Interpreter flags before `-m`."""
    module: bool
    """True for `python -m pytest`, which puts the current directory on `sys.path`."""
    arguments: tuple[str, ...]
    """pytest's own arguments, `{targets}` taken out."""


@dataclass(frozen=True, slots=True)
class BaseConfig:
    """The runner configuration that a run is given."""

    path: str
    """Where it is written in the view, relative to the root."""
    content: bytes
    given: bool
    """True where the command line names the file itself."""

    @property
    def folder(self) -> str:
        """pytest's root folder, relative to the root; empty for the root itself."""
        return posixpath.dirname(self.path)


def recognise(argv: Sequence[str]) -> PytestCommand | None:
    """The parts of a pytest command line; None for any other command."""
    words = list(argv)
    start, managed = _after_prefix(words)
    if start is None or start >= len(words):
        return None
    name = posixpath.basename(words[start])
    flags: list[str] = []
    if name in {"pytest", "py.test"}:
        rest, module = words[start + 1 :], False
    elif managed and words[start : start + 2] == ["-m", "pytest"]:
        rest, module = words[start + 2 :], True
        words[start] = "python"
    elif _PYTHON.fullmatch(name):
        at = next((i for i in range(start + 1, len(words)) if words[i] == "-m"), 0)
        if not at or words[at + 1 : at + 2] not in (["pytest"], ["py.test"]):
            return None
        rest, flags, module = words[at + 2 :], words[start + 1 : at], True
    else:
        return None
    return PytestCommand(
        prefix=tuple(words[:start]),
        managed=managed,
        program=words[start],
        flags=tuple(flags),
        module=module,
        arguments=tuple(word for word in rest if word != "{targets}"),
    )


def _after_prefix(words: list[str]) -> tuple[int | None, bool]:
    """Where the program begins, and whether a manager of environments comes before it."""
    if not words:
        return None, False
    first = posixpath.basename(words[0])
    if first in _MANAGERS:
        at = next((i for i in range(1, len(words)) if words[i] == "run"), None)
        if at is None:
            return None, False
        at += 1
        while at < len(words) and words[at].startswith("-") and words[at] != "-m":
            at += 2 if words[at] in _VALUED else 1
        return at, True
    if first in _WRAPPERS:
        at = 1
        while at < len(words) and (words[at].startswith("-") or "=" in words[at]):
            at += 1
        return at, False
    return 0, False


def base_config(command: PytestCommand, cwd: str, base: Listing, version: str) -> BaseConfig:
    """The configuration that pytest `version` would find on the base, absence included.

    pytest looks from the common ancestor of the paths on the command line upwards, and takes the
    first file of its list that is for it. A file that is pytest's alone keeps its name; of a shared
    one a private copy in the same folder is made, so that relative paths in it still hold and the
    tree's own file stays as it is.
    """
    named = _option(command.arguments, ("-c", "--config-file"))
    if named is not None:
        path = _join(cwd, named)
        return BaseConfig(path, base.read(path) or b"", given=True)
    modern = _major(version) >= 9
    order = (*(_DEDICATED if modern else _DEDICATED[2:]), *_SHARED)
    fallback = _join(cwd, ".")
    for folder in _upwards(_ancestor(command, cwd, base)):
        for name in order:
            content = base.read(_join(folder, name))
            if content is not None and _is_for_pytest(name, content, modern):
                return _placed(folder, name, content)
    for folder in _upwards(fallback):
        if base.read(_join(folder, "pyproject.toml")) is not None:
            fallback = folder
            break
    return BaseConfig(_join(fallback, PRIVATE + ".ini"), b"[pytest]\n", given=False)


def _placed(folder: str, name: str, content: bytes) -> BaseConfig:
    suffix = _SHARED.get(name)
    return BaseConfig(_join(folder, PRIVATE + suffix if suffix else name), content, given=False)


def paths_named(command: PytestCommand, cwd: str, tree: Listing) -> dict[str, str]:
    """The arguments that name a file or folder of a tree, with its path relative to the root."""
    found = {}
    for word in command.arguments:
        path = _join(cwd, word.partition("::")[0])
        if not word.startswith("-") and not path.startswith("../") and tree.has(path):
            found[word] = path
    return found


def _ancestor(command: PytestCommand, cwd: str, base: Listing) -> str:
    """The common ancestor of the paths that the command line names, else the current directory."""
    named = paths_named(command, cwd, base).values()
    folders = [path if base.is_folder(path) else posixpath.dirname(path) for path in named]
    if not folders:
        return _join(cwd, ".")
    return "" if "" in folders else posixpath.commonpath(folders)


def _is_for_pytest(name: str, content: bytes, modern: bool) -> bool:
    if name in _DEDICATED:
        return True
    text = content.decode("utf-8", "replace")
    if name == "tox.ini":
        return re.search(r"^\[pytest\]", text, re.MULTILINE) is not None
    if name == "setup.cfg":
        return re.search(r"^\[tool:pytest\]", text, re.MULTILINE) is not None
    try:
        table = tomllib.loads(text).get("tool", {}).get("pytest")
    except tomllib.TOMLDecodeError:
        return True  # pytest stops here too, and says where the mistake is
    return isinstance(table, dict) and (modern or "ini_options" in table)


def _option(arguments: Sequence[str], names: tuple[str, ...]) -> str | None:
    """The value of an option, in any of its spellings."""
    short, *longs = names
    for index, word in enumerate(arguments):
        if word in names:
            return arguments[index + 1] if index + 1 < len(arguments) else None
        for long in longs:
            if word.startswith(long + "="):
                return word[len(long) + 1 :]
        if not short.startswith("--") and word.startswith(short) and len(word) > len(short):
            return word[len(short) :]
    return None


def has_rootdir(command: PytestCommand) -> bool:
    """Whether the command line names pytest's root folder itself."""
    return any(word.startswith("--rootdir") for word in command.arguments)


def _upwards(folder: str) -> list[str]:
    """The folder and its parents up to the root."""
    chain = [folder]
    while chain[-1]:
        chain.append(posixpath.dirname(chain[-1]))
    return chain


def _join(folder: str, name: str) -> str:
    """A normalised path relative to the root; empty for the root itself."""
    path = posixpath.normpath(posixpath.join(folder or ".", name))
    return "" if path == "." else path


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match[0]) if match else 0
