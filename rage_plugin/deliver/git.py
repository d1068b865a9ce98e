"""Runs git and nothing else does: a clean environment, no terminal, a time limit, one error.

Separate because every other file here would otherwise repeat what is easy to forget: `GIT_DIR` of
a surrounding hook, a prompt nobody can answer, a path that holds a newline.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from rage_plugin.core.errors import RageError, Refused

LIMIT_S = 600.0
"""Seconds that one git command, hooks and signing included, may take."""

# Whoever starts RAGE from inside a git hook or alias hands down GIT_DIR, GIT_INDEX_FILE and the
# like, and every command would act on the wrong repository. What says who a person is and where
# their configuration lies stays.
_KEPT = frozenset(
    {
        "GIT_ALLOW_PROTOCOL",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXEC_PATH",
    }
)
_KEPT_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
_OUTPUT_KEPT = 200_000  # bytes of a hook's output that are looked at for its last line


@dataclass(frozen=True, slots=True)
class Result:
    """What one git command said."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Standard output without its final newline; undecodable bytes survive as surrogates."""
        return os.fsdecode(self.out.removesuffix(b"\n"))

    @property
    def names(self) -> list[str]:
        """Standard output of a `-z` command as a list."""
        return [os.fsdecode(name) for name in self.out.split(b"\0") if name]

    def last_line(self) -> str:
        """The last line that says something, cleaned for a person."""
        lines = (self.out + b"\n" + self.err).decode("utf-8", "replace").splitlines()
        told = [line for line in map(shown, lines) if line.strip()]
        return told[-1].strip()[:200] if told else ""


class GitFailed(RageError):
    """A git command ended with a code that its caller did not expect."""

    def __init__(self, args: Sequence[str], result: Result) -> None:
        said = result.err.decode("utf-8", "replace").strip()
        super().__init__(
            f"git {_verb(args)} failed ({result.code}): {shown(said)[:300] or 'it said nothing'}",
            kept="The branch was not moved by it",
        )
        self.result = result


class GitTimeout(RageError):
    """A git command, a hook or a signing program did not end within the limit."""


def shown(name: str) -> str:
    """A path or a line as a person may safely see it: control characters escaped."""
    return "".join(
        character.encode("unicode_escape", "surrogatepass").decode("ascii")
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else character
        for character in name
    )


def listed(names: Sequence[str], most: int = 10) -> str:
    """The first names and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def environment(extra: Mapping[str, str], *, plumbing: bool) -> dict[str, str]:
    """The process environment for git: without inherited repository state, without a terminal."""
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _KEPT or key.startswith(_KEPT_PREFIXES)
    }
    env.pop("GPG_TTY", None)
    env |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": ":",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "SSH_ASKPASS_REQUIRE": "never",
    }
    if plumbing:  # messages are compared, so they must not be translated
        env.pop("LANGUAGE", None)
        env["LC_ALL"] = "C"
    else:
        # A person's hook expects pathspecs to work.
        env.pop("GIT_LITERAL_PATHSPECS")
    return env | dict(extra)


class Git:
    """Git in one workspace."""

    def __init__(self, workspace: Path, limit_s: float = LIMIT_S) -> None:
        self.workspace = workspace
        self.limit_s = limit_s

    @cached_property
    def top(self) -> Path:
        """The work tree's root; `Refused` where there is none that git can use."""
        found = self._discover("--is-bare-repository")
        if found == "true":
            raise Refused(
                f"{shown(str(self.workspace))} is a bare repository, there are no files to work on",
                next="git worktree add ../work, then start there",
            )
        if self._discover("--is-inside-work-tree") != "true":
            raise Refused(
                f"{shown(str(self.workspace))} lies inside a git directory, not in a work tree"
            )
        return Path(self._discover("--show-toplevel"))

    @cached_property
    def folder(self) -> Path:
        """This work tree's own git directory (index, HEAD, what is in progress)."""
        return Path(self._discover("--absolute-git-dir"))

    @cached_property
    def common(self) -> Path:
        """The git directory that all worktrees share."""
        return Path(self._discover("--path-format=absolute", "--git-common-dir"))

    def run(
        self,
        *args: str,
        stdin: bytes | IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        index: Path | None = None,
        env: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
    ) -> Result:
        """Run plumbing: no hooks, untranslated messages; `GitFailed` unless the code is in `ok`.

        `index` is a private index to use instead of the person's.
        """
        extra = dict(env or {})
        flags = ["-c", "core.hooksPath=/dev/null", "-c", "core.safecrlf=false"]
        if index is not None:
            extra["GIT_INDEX_FILE"] = str(index)
            # A split index would leave a shared part behind in the person's git directory.
            flags += ["-c", "core.splitIndex=false", "-c", "core.fsmonitor=false"]
        result = self._spawn([*flags, *args], self.top, extra, stdin, stdout, plumbing=True)
        if result.code not in ok:
            raise GitFailed(args, result)
        return result

    def run_as_person(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """Run with the person's hooks, signing and language, still without a terminal."""
        return self._spawn(list(args), self.top, env or {}, None, None, plumbing=False)

    def head(self) -> str:
        """The commit at HEAD, empty on an unborn branch."""
        return self.run("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1)).text

    def tree_of(self, commit: str) -> str:
        """A commit's tree; the empty tree for the empty commit name."""
        if not commit:
            return self.run("mktree").text
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").text

    def setting(self, name: str) -> bool:
        """A boolean of the person's configuration, false where it is not set."""
        return self.run("config", "--type=bool", "--get", name, ok=(0, 1)).text == "true"

    def _discover(self, *question: str) -> str:
        result = self._spawn(
            ["rev-parse", *question], self.workspace, {}, None, None, plumbing=True
        )
        if result.code == 0:
            return result.text
        said = result.err.decode("utf-8", "replace")
        if "dubious ownership" in said:
            raise Refused(
                f"git does not trust {shown(str(self.workspace))}: it belongs to another user",
                next=f"git config --global --add safe.directory '{shown(str(self.workspace))}'",
            )
        if "not a git repository" in said:
            raise Refused(f"{shown(str(self.workspace))} is not a git repository", next="git init")
        raise GitFailed(["rev-parse"], result)

    def _spawn(
        self,
        args: list[str],
        cwd: Path,
        extra: Mapping[str, str],
        stdin: bytes | IO[bytes] | None,
        stdout: IO[bytes] | None,
        *,
        plumbing: bool,
    ) -> Result:
        # Files instead of pipes: a daemon that a hook leaves behind may hold them open for ever
        # without anybody waiting for it. A session of its own: no program finds a terminal to ask.
        with contextlib.ExitStack() as stack:
            source: IO[bytes] | int = subprocess.DEVNULL
            if isinstance(stdin, bytes):
                source = stack.enter_context(tempfile.TemporaryFile())
                source.write(stdin)
                source.seek(0)
            elif stdin is not None:
                source = stdin
            out = stdout or stack.enter_context(tempfile.TemporaryFile())
            err = stack.enter_context(tempfile.TemporaryFile())
            try:
                process = subprocess.Popen(
                    ["git", *args],
                    cwd=cwd,
                    env=environment(extra, plumbing=plumbing),
                    stdin=source,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                if not cwd.is_dir():
                    raise Refused(f"There is no folder {shown(str(cwd))}") from error
                raise Refused("git was not found", next="install git 2.36 or newer") from error
            try:
                code = process.wait(self.limit_s)
            except subprocess.TimeoutExpired as error:
                _kill(process)
                raise GitTimeout(
                    f"git {_verb(args)} did not end within {self.limit_s:g} seconds and was ended",
                    kept="The branch was not moved by it",
                ) from error
            except BaseException:
                _kill(process)
                raise
            return Result(code, b"" if stdout else _read(out, whole=plumbing), _read(err))


def _verb(args: Sequence[str]) -> str:
    """`commit-tree`, or `hook run pre-commit`: what a person would call it."""
    words = list(args)
    while words[0] == "-c":
        del words[:2]
    if words[0] != "hook":
        return words[0]
    return f"hook run {next(word for word in words[2:] if not word.startswith('-'))}"


def _read(file: IO[bytes], *, whole: bool = False) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(0 if whole else max(0, size - _OUTPUT_KEPT))
    return file.read()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End git and everything below it, also what started a session of its own."""
    import psutil  # noqa: PLC0415 - only where something hangs

    below: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in below:
        with contextlib.suppress(psutil.Error):
            child.kill()
    process.wait()
