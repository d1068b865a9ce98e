"""The host's six tools: their schemas, once, and what each does.

A tool answers with text; `ToolError` is an answer too, one that says what went wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from .models import Message
from .process import OUTPUT_LIMIT, run, tool_environment
from .workspace import Denied, Workspace

COMMAND_TIMEOUT_S = 120.0
_READ_LIMIT = 5_000_000
_SKIPPED = frozenset({".git", "__pycache__", "node_modules", ".venv", ".tox", ".mypy_cache"})


class ToolError(Exception):
    """A tool call that did not succeed; the text is what the model is told."""


def _schema(name: str, what: str, **parameters: str) -> Message:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": what,
            "parameters": {
                "type": "object",
                "properties": {
                    key: {"type": "string", "description": text} for key, text in parameters.items()
                },
                "required": list(parameters),
                "additionalProperties": False,
            },
        },
    }


SCHEMAS: tuple[Message, ...] = (
    _schema("read_file", "Read a text file.", path="Path relative to the workspace."),
    _schema(
        "list_files",
        "List the files below a folder.",
        path="Folder relative to the workspace; . is the workspace.",
    ),
    _schema(
        "search",
        "Search file contents; answers path:line:text.",
        pattern="Extended regular expression.",
        path="File or folder relative to the workspace.",
    ),
    _schema(
        "write_file",
        "Create a file or replace it whole.",
        path="Path relative to the workspace.",
        content="The whole content.",
    ),
    _schema(
        "edit_file",
        "Replace one passage of a file. The passage must occur exactly once.",
        path="Path relative to the workspace.",
        old="The passage as it is.",
        new="The passage as it shall be.",
    ),
    _schema(
        "run_command",
        "Run a bash command in the workspace.",
        command="The command; it gets no input and is ended after two minutes.",
    ),
)


class Tools:
    """The tools of one workspace."""

    def __init__(self, root: str, command_timeout_s: float = COMMAND_TIMEOUT_S) -> None:
        self._workspace = Workspace(root)
        self._command_timeout_s = command_timeout_s
        self._table: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {
            "read_file": (self._read_file, ("path",)),
            "list_files": (self._list_files, ("path",)),
            "search": (self._search, ("pattern", "path")),
            "write_file": (self._write_file, ("path", "content")),
            "edit_file": (self._edit_file, ("path", "old", "new")),
            "run_command": (self._run_command, ("command",)),
        }

    def call(self, name: str, args: Mapping[str, object]) -> str:
        """The tool's answer, bounded; `ToolError` when it did not succeed."""
        if name not in self._table:
            raise ToolError(f"there is no tool {name!r}; there are {', '.join(self._table)}")
        function, wanted = self._table[name]
        if set(args) != set(wanted) or not all(isinstance(args[key], str) for key in wanted):
            raise ToolError(f"{name} takes exactly {', '.join(wanted)}, each a string")
        try:
            return bounded(function(**args))
        except Denied as error:
            raise ToolError(str(error)) from None
        except OSError as error:
            raise ToolError(f"{args.get('path', name)}: {error.strerror or error}") from None
        except ValueError as error:  # a NUL or half a surrogate pair in an argument
            raise ToolError(f"{name}: {error}") from None

    def _read_file(self, path: str) -> str:
        return self._text(path)

    def _list_files(self, path: str) -> str:
        top = self._workspace.absolute(self._workspace.resolve(path))
        if not Path(top).is_dir():
            raise ToolError(f"{path}: not a folder")
        found: list[str] = []
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if name.lower() not in _SKIPPED)
            found += [os.path.relpath(f"{folder}/{name}", self._workspace.root) for name in files]
        return "\n".join(sorted(found)) or "(no files)"

    def _search(self, pattern: str, path: str) -> str:
        relative = self._workspace.resolve(path)
        excluded = ["--exclude-dir=.[gG][iI][tT]"]
        excluded += [f"--exclude-dir={name}" for name in sorted(_SKIPPED - {".git"})]
        # grep and not `re`: its automaton cannot be sent into exponential time by a pattern.
        argv = ["grep", "-rnIE", *excluded, "-e", pattern, "--", relative]
        done = run(argv, self._workspace.root, tool_environment(os.environ), 30.0)
        if done.code is None:
            raise ToolError("the search took over 30 s; name a smaller folder")
        if done.code > 1:
            raise ToolError(done.output.strip() or f"grep ended with {done.code}")
        return done.output or "(no match)"

    def _write_file(self, path: str, content: str) -> str:
        data = _encoded(path, content)
        created = self._workspace.write(path, data)
        return f"{'created' if created else 'replaced'} {path} ({len(data)} bytes)"

    def _edit_file(self, path: str, old: str, new: str) -> str:
        if not old:
            raise ToolError("`old` is empty; name the passage to replace")
        text = self._text(path)
        found = text.count(old)
        if found != 1:
            raise ToolError(f"{path}: `old` occurs {found} times; it must occur exactly once")
        self._workspace.write(path, _encoded(path, text.replace(old, new)))
        return f"edited {path}"

    def _run_command(self, command: str) -> str:
        if "\0" in command:
            raise ToolError("the command holds a NUL character")
        done = run(
            ["bash", "-c", command],
            self._workspace.root,
            tool_environment(os.environ),
            self._command_timeout_s,
        )
        if done.code is None:
            raise ToolError(f"{done.output}\n[killed after {self._command_timeout_s:g} s]")
        if done.code != 0:
            raise ToolError(f"{done.output}\n[exit code {done.code}]")
        return done.output or "(no output)"

    def _text(self, path: str) -> str:
        data, size = self._workspace.read(path, _READ_LIMIT + 1)
        if size > _READ_LIMIT:
            raise ToolError(f"{path}: {size:,} bytes; too large, use search or run_command")
        if b"\0" in data[:8192]:
            raise ToolError(f"{path}: a binary file of {size:,} bytes")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolError(f"{path}: not UTF-8 (byte {error.start})") from None


def bounded(text: str, limit: int = OUTPUT_LIMIT) -> str:
    """The text, or its beginning with a marker that says how much is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit:,} characters left out …]"


def _encoded(path: str, content: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(f"{path}: the content holds half a surrogate pair") from None
