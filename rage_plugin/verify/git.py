"""Call git with nothing inherited that could point it elsewhere, and find a repository.

Separate from `tree.py` so that it stays about trees: here are the environment, the flags of every
call, and what an error of git looks like to a person.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rage_plugin.core.errors import RageError

# These choose configuration or git itself, not a repository; a person who sets them means it.
_KEPT = frozenset(
    {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"}
)

# What makes the index's answer depend on content alone, and keeps hooks and daemons out.
FLAGS = tuple(
    part
    for setting in (
        "core.trustctime=true",
        "core.checkStat=default",
        "core.fsmonitor=false",
        "core.untrackedCache=false",
        "core.splitIndex=false",
        "core.safecrlf=false",
        "core.hooksPath=/dev/null",
        "core.quotePath=false",
        "advice.addEmbeddedRepo=false",
    )
    for part in ("-c", setting)
)


class GitFailed(RageError):
    """A call of git failed; the message holds git's last line."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process environment without `GIT_*`, with replace refs, locks and prompts off."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in _KEPT}
    env |= {
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    return env | dict(extra or {})


def call(
    args: Sequence[str],
    cwd: Path,
    *,
    extra: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> bytes:
    """stdout of `git ARGS` run in `cwd`; raises `GitFailed`."""
    try:
        done = subprocess.run(
            ["git", *FLAGS, *args],
            cwd=cwd,
            env=environment(extra),
            input=stdin,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        missing = "git" if cwd.is_dir() else str(cwd)
        raise GitFailed(
            f"{missing} was not found", next="install git, or check the path"
        ) from error
    if done.returncode != 0:
        said = os.fsdecode(done.stderr).strip().splitlines() or ["no message"]
        # The first fatal or error line names the cause; advice and hints follow it.
        line = next((s for s in said if s.startswith(("fatal:", "error:"))), said[-1])
        name = next((a for a in args if a != "-c" and "=" not in a), "git")
        raise GitFailed(f"git {name} failed: {line}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Repository:
    """Where the parts of one work tree lie; all real, absolute paths."""

    root: Path
    """Top level of the work tree."""
    git_dir: Path
    """This work tree's own git directory (HEAD, index)."""
    common_dir: Path
    """What all worktrees share (objects, refs, config)."""


def discover(workspace: Path) -> Repository:
    """The repository that a folder belongs to; raises `RageError` where there is no work tree."""

    def ask(what: str) -> Path:
        # One question a call: a path may hold a newline.
        out = call(["rev-parse", what], workspace)
        answer = os.fsdecode(out.removesuffix(b"\n"))
        return (workspace / answer).resolve()

    try:
        return Repository(ask("--show-toplevel"), ask("--git-dir"), ask("--git-common-dir"))
    except GitFailed as error:
        if "not a git repository" in error.what:
            raise RageError(
                f"{workspace} is not inside a git repository", next="git init"
            ) from error
        raise


def quoted(path: Path) -> str:
    """A path as one element of `GIT_ALTERNATE_OBJECT_DIRECTORIES`, whatever it holds."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def split(out: bytes) -> list[str]:
    """The fields of git's `-z` output, undecodable bytes as surrogates."""
    return [os.fsdecode(part) for part in out.split(b"\0") if part]


def join(paths: Sequence[str]) -> bytes:
    """Paths as git's `-z --stdin` reads them; the inverse of `split`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
