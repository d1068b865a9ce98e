"""Runs git for every room: a clean environment, no terminal, a time limit, one kind of error.

A foundation beside `core`, since trees, commits and reviews all ask git, and each would otherwise
repeat what is easy to forget: `GIT_DIR` of a surrounding hook, a prompt nobody can answer, a
program that never ends, a path that holds a newline.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

from .core.errors import RageError, Refused

LIMIT_S = 600.0
"""Seconds that one git command, hooks and signing included, may take."""

GITLINK = "160000"
"""The mode of a submodule, whose content is in no tree."""

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

_PLUMBING = ("core.hooksPath=/dev/null", "core.safecrlf=false", "core.quotePath=false")
# What makes an index's answer depend on content alone, and keeps daemons out. A split index would
# leave a shared part behind in the person's git directory.
_OWN_INDEX = (
    "core.trustctime=true",
    "core.checkStat=default",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "advice.addEmbeddedRepo=false",
)


class Entry(NamedTuple):
    """One path of a tree: git's mode (e.g. `100755`) and the object's id."""

    mode: str
    oid: str


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
        said = result.err.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        # The first fatal or error line names the cause; advice and hints follow it.
        line = next((s for s in said if s.startswith(("fatal:", "error:"))), said[-1])
        super().__init__(f"git {_verb(args)} failed ({result.code}): {shown(line)[:300]}")


class GitTimeout(RageError):
    """A git command, a hook or a signing program did not end within the limit."""


class Repository:
    """Git in one work tree; `Refused` on first use where there is none that git can use."""

    def __init__(self, workspace: Path, limit_s: float = LIMIT_S) -> None:
        """`workspace` is any folder inside it; a command is ended after `limit_s` seconds."""
        self.workspace = workspace
        self.limit_s = limit_s

    @cached_property
    def root(self) -> Path:
        """Top level of the work tree (real path)."""
        return self._folder("--show-toplevel")

    @cached_property
    def git_dir(self) -> Path:
        """This work tree's own git directory (HEAD, index, what is in progress; real path)."""
        return self._folder("--git-dir")

    @cached_property
    def common_dir(self) -> Path:
        """What all worktrees share (objects, refs, configuration; real path)."""
        return self._folder("--git-common-dir")

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

        `index` is a private index to use instead of the person's, or the person's to read only.
        """
        settings, extra = [*_PLUMBING], dict(env or {})
        if index is not None:
            settings += _OWN_INDEX
            extra["GIT_INDEX_FILE"] = str(index)
        flags = [part for setting in settings for part in ("-c", setting)]
        result = self._spawn([*flags, *args], self.root, extra, stdin, stdout, plumbing=True)
        if result.code not in ok:
            raise GitFailed(args, result)
        return result

    def run_as_person(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """Run with the person's hooks, signing and language, still without a terminal."""
        return self._spawn(list(args), self.root, env or {}, None, None, plumbing=False)

    def head(self) -> str:
        """The commit at HEAD, empty on an unborn branch."""
        return self.run("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1)).text

    def tree_of(self, commit: str) -> str:
        """A commit's tree; the empty tree for the empty commit name."""
        if not commit:
            return self.run("mktree").text
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").text

    def hooks_in_tree(self) -> str:
        """The folder of the person's hooks where it is a part of the work tree, else empty.

        A commit runs what lies there, so an agent that may write it would run code as the person.
        """
        ask = ("config", "--type=path", "--get", "core.hooksPath")
        told = self.run_as_person(*ask).text
        if not told:
            return ""
        folder = Path(os.path.normpath(self.root / told))
        if folder.name == "_":  # husky: generated wrappers of the scripts beside them
            folder = folder.parent
        inside = folder.is_relative_to(self.root) and folder != self.root
        return folder.relative_to(self.root).as_posix() if inside else ""

    def setting(self, name: str) -> bool:
        """A boolean of the person's configuration, false where it is not set."""
        return self.run("config", "--type=bool", "--get", name, ok=(0, 1)).text == "true"

    def hidden(self, index: Path | None = None) -> dict[str, list[str]]:
        """Paths that `git update-index` was told not to look at, by the option that ends it."""
        tags = self.run("ls-files", "-v", "-z", index=index).names
        found = {"--no-assume-unchanged": [line[2:] for line in tags if line[0].islower()]}
        # In a sparse checkout the bit means "not on disk", and the index knows the content.
        if not self.setting("core.sparseCheckout"):
            found["--no-skip-worktree"] = [line[2:] for line in tags if line[0] in "Ss"]
        return {option: paths for option, paths in found.items() if paths}

    def _folder(self, question: str) -> Path:
        # One question a call: a path may hold a newline.
        return (self.workspace / self._ask(question)).resolve()

    def _ask(self, question: str) -> str:
        args = ["rev-parse", question]
        result = self._spawn(args, self.workspace, {}, None, None, plumbing=True)
        if result.code == 0:
            return result.text
        said, place = result.err.decode("utf-8", "replace"), shown(str(self.workspace))
        if "dubious ownership" in said:
            raise Refused(
                f"git does not trust {place}: it belongs to another user",
                next=f"git config --global --add safe.directory '{place}'",
            )
        if "not a git repository" in said:
            raise Refused(f"{place} is not a git repository", next="git init")
        if "must be run in a work tree" not in said:
            raise GitFailed(args, result)
        if self._ask("--is-bare-repository") == "true":
            raise Refused(
                f"{place} is a bare repository, there are no files to work on",
                next="git worktree add ../work, then start there",
            )
        raise Refused(f"{place} lies inside a git directory, not in a work tree")

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
            except (FileNotFoundError, NotADirectoryError) as error:
                if not cwd.is_dir():
                    raise Refused(f"There is no folder {shown(str(cwd))}") from error
                raise Refused("git was not found", next="install git 2.36 or newer") from error
            if not _ended(process, self.limit_s):
                raise GitTimeout(
                    f"git {_verb(args)} did not end within {self.limit_s:g} seconds and was ended",
                    kept="The branch was not moved by it",
                )
            code = process.returncode
            return Result(code, b"" if stdout else _read(out, whole=plumbing), _read(err))


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
        "SSH_ASKPASS_REQUIRE": "never",
    }
    if plumbing:  # not for a person's hook, which expects pathspecs and its language
        env.pop("LANGUAGE", None)
        env |= {"LC_ALL": "C", "GIT_LITERAL_PATHSPECS": "1", "GIT_OPTIONAL_LOCKS": "0"}
    return env | dict(extra)


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


def joined(paths: Sequence[str]) -> bytes:
    """Paths as git's `-z --stdin` reads them; the inverse of `Result.names`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def quoted(path: Path) -> str:
    """A path as one element of a list of object stores, whatever it holds."""
    # Unquoted, a colon in the path would end it.
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def prune(root: Path, path: str) -> None:
    """Remove the folders above `path` that are empty now, up to `root`."""
    for parent in (root / path).parents:
        if parent == root:
            return
        try:
            parent.rmdir()
        except OSError:  # something else is in it
            return


def _verb(args: Sequence[str]) -> str:
    """`commit-tree`, or `hook run pre-commit`: what a person would call it."""
    words = list(args)
    while words[0] in {"-c", "-C"}:
        del words[:2]
    if words[0] != "hook":
        return words[0]
    return f"hook run {next(word for word in words[2:] if not word.startswith('-'))}"


def _read(file: IO[bytes], *, whole: bool = False) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(0 if whole else max(0, size - _OUTPUT_KEPT))
    return file.read()


def _ended(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for the end; False where it had to be brought about."""
    late = threading.Event()

    def end() -> None:
        late.set()
        _kill(process)

    # `wait` with a limit polls, which would make a git of 10 ms take up to 50.
    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        process.wait()
    except BaseException:
        _kill(process)
        process.wait()
        raise
    finally:
        timer.cancel()
    return not late.is_set()


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
