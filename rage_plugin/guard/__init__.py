"""The first hard-deny list: what no tool call of an active run may do, on any host.

`decide` is the whole face of this room. Shell text is parsed (`shell.py`), every command in it is
looked up (`commands.py`, `git.py`), and what cannot be decided is refused (law 9).
"""

from __future__ import annotations

from collections.abc import Mapping

from .paths import Place

_COMMAND_KEYS = ("command", "cmd", "script", "code")
_PATH_KEYS = (
    "path",
    "file_path",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "destination",
)
_READERS = ("read", "list", "search", "grep", "glob", "view", "ls", "find")


def decide(tool: str, args: Mapping[str, object], workspace: str) -> str | None:
    """Why this tool call is refused, for the model to read, or None when it may run.

    Tools are recognised by what their arguments are called, so that it holds whatever a host
    names them: a command is text for a shell, a path of a tool that does not read is written.
    """
    try:
        return _decide(tool, args, workspace)
    except Exception as error:  # noqa: BLE001 - a guard that cannot decide refuses
        return f"refused: this call cannot be decided ({type(error).__name__}); put it more simply"


def _decide(tool: str, args: Mapping[str, object], workspace: str) -> str | None:
    place = Place.of(workspace)
    for key in _COMMAND_KEYS:
        value = args.get(key)
        if value is None:
            continue
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            from .commands import decide_argv  # noqa: PLC0415

            return decide_argv(value, place)
        if not isinstance(value, str):
            return f"refused: `{key}` of {tool} is not text"
        from .commands import decide_text  # noqa: PLC0415

        return decide_text(value, place)
    if tool.lower().startswith(_READERS):
        return None
    for key in _PATH_KEYS:
        value = args.get(key)
        if isinstance(value, str) and place.is_git(value):
            return "refused: .git belongs to git and to RAGE; a run's agent does not write there"
    return None
