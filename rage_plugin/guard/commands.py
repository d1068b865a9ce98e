"""One shell text: each command in it is looked up by its name, wherever it hides.

Programs that start another program (`env`, `timeout`, `xargs`, `sh -c`, `find -exec`) are unwrapped
until the command that runs is known; what stays unknown is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import files, git, interpreters
from .paths import Place, last_part
from .shell import Refusal, Simple, Word, simple_commands

MAX_DEPTH = 6
_ADVICE = "Put it as a plain command, or use the file tools."
_ENVIRONMENT = re.compile(
    r"(?:LD_|GIT_|DYLD_|RAGE_)\w*|BASH_ENV|ENV|BASH_FUNC\w*|PROMPT_COMMAND|NODE_OPTIONS|PERL5OPT|"
    r"PERL5LIB|RUBYOPT|RUBYLIB|PYTHONSTARTUP|PYTHONINSPECT|PATH|CDPATH|IFS|SHELLOPTS|BASHOPTS|PS4|"
    r"PAGER|EDITOR|VISUAL|BROWSER|SHELL|HOME|MAKEFLAGS"
)
_NEVER = {
    **dict.fromkeys(
        ("sudo", "su", "doas", "pkexec", "runuser", "chroot", "nsenter", "unshare"),
        "it changes the user or the root",
    ),
    **dict.fromkeys(
        ("parallel", "watch", "script", "flock", "strace", "ltrace", "gdb", "tmux", "screen",
         "expect", "at", "batch", "systemd-run", "coproc"),
        "it starts other commands in a way that is not decided here",
    ),
    **dict.fromkeys(
        ("alias", "enable", "shopt", "bind", "complete", "compgen"),
        "it changes what names or patterns mean",
    ),
    **dict.fromkeys(
        ("vim", "vi", "view", "nvim", "ex", "ed", "emacs", "nano", "pico"),
        "there is no terminal for an editor",
    ),
    **dict.fromkeys(
        ("shutdown", "reboot", "halt", "poweroff", "crontab", "mkfs", "fdisk", "wipefs"),
        "it changes the machine",
    ),
    **dict.fromkeys(("hub", "jj", "sl", "hg", "svn"), "it changes the repository's history"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    """Where a command stands and how deep it is nested."""

    place: Place
    depth: int = 0

    def text(self, text: str) -> None:
        """Refuse unless every command of a shell text may run."""
        if self.depth > MAX_DEPTH:
            raise Refusal("shells in shells, too deep to decide")
        places = [self.place]
        settled = True  # until something is moved or removed, a folder that is there stays there
        for command in simple_commands(text):
            if command == "(":
                places.append(places[-1])
            elif command == ")":
                places.pop()
            elif isinstance(command, Simple):
                replace(self, place=places[-1]).simple(command)
                places[-1] = _after(command, places[-1], settled)
                settled = settled and _name(command.words) not in files.REMOVERS

    def simple(self, command: Simple) -> None:
        """Refuse unless this one command may run."""
        for name in command.assigned:
            if _ENVIRONMENT.fullmatch(name):
                raise Refusal(f"it sets {name}, which changes what programs do")
        for target in command.writes:
            files.check_write(target, self.place)
        if command.words:
            self.words(command.words, command)

    def words(self, words: Sequence[Word], command: Simple) -> None:
        """Refuse unless the program that these words start may run."""
        first = words[0]
        if first.text is None or first.glob:
            raise Refusal("the command's name is only known while it runs")
        name, rest = _name(words), list(words[1:])
        if self.place.is_git(first.text):
            raise Refusal("a program below .git", sure=True)
        if name == "rage" or name.startswith("rage-"):
            raise Refusal("RAGE is controlled by a person, never by a tool of the run", sure=True)
        if name in _NEVER or name.split(".")[0] in ("mkfs",):
            raise Refusal(f"{name}: {_NEVER.get(name, 'it changes the machine')}", sure=True)
        if name == "git":
            git.check(rest)
        elif name.startswith("git-"):
            git.check([Word(name.removeprefix("git-")), *rest])
        elif name in _WRAPPERS:
            self._unwrapped(name, rest, command)
        elif name in _RUNNERS:
            self._runner(rest, command)
        elif name in _SHELLS:
            self._shell(rest, command)
        elif name in ("gh", "glab"):
            git.check_forge(rest)
        elif name in _BUILTINS:
            _BUILTINS[name](self, rest)
        elif name == "xargs":
            self._xargs(rest, command)
        elif name == "find":
            for inner in files.check_find(rest, self.place):
                self.words(inner, command)
        elif interpreters.knows(name):
            interpreters.check(name, rest, command, self.place)
        else:
            if "/" in first.text:
                interpreters.check_script(first, self.place)
            files.check(name, rest, self.place)

    def _unwrapped(self, name: str, rest: list[Word], command: Simple) -> None:
        spec = _WRAPPERS[name]
        positional = spec.positional
        while rest:
            text = rest[0].text
            if text is None:
                raise Refusal(f"what {name} starts is only known while it runs")
            if text == "--":
                rest = rest[1:]
                break
            if spec.assignments and re.match(r"[A-Za-z_]\w*=", text):
                self.simple(Simple((), (text.split("=", 1)[0],)))
                rest = rest[1:]
            elif (text.startswith("-") and text != "-") or text in spec.flags:
                rest = rest[spec.consumed(name, text) :]
            elif positional:
                positional -= 1
                rest = rest[1:]
            else:
                break
        if rest and not spec.only_asks(command.words):
            self.words(rest, command)

    def _runner(self, rest: list[Word], command: Simple) -> None:
        """`uv run`, `npx`: with so many options, each word that names a judged program is one."""
        for number, word in enumerate(rest):
            if word.text is None:
                raise Refusal("what it starts is only known while it runs")
            if _judged(last_part(word.text)) and word.text not in _WORDS_OF_RUNNERS:
                self.words(rest[number:], command)

    def _shell(self, rest: list[Word], command: Simple) -> None:
        deeper = replace(self, depth=self.depth + 1)
        is_text = False
        while rest and rest[0].text is not None and rest[0].text[:1] in ("-", "+"):
            option = rest.pop(0).text or ""
            if option in ("--", "-"):
                break
            if option.startswith("--"):
                if option not in ("--login", "--norc", "--noprofile", "--posix", "--version"):
                    raise Refusal(f"a shell with {option}")
                if option == "--version":
                    return
                continue
            if "s" in option and "c" not in option:
                raise Refusal("a shell that reads its commands from its input")
            is_text = is_text or "c" in option
            if option.endswith(("o", "O")) and rest:
                rest.pop(0)
        if is_text:
            if not rest or rest[0].text is None:
                raise Refusal("the text of a shell -c is only known while it runs")
            deeper.text(rest[0].text)
        elif rest:
            interpreters.check_script(rest[0], self.place, shell=deeper.text_of_script)
        elif command.stdin is not None and not command.fed:
            deeper.text(command.stdin)
        else:
            raise Refusal("a shell that reads its commands from its input")

    def text_of_script(self, text: str) -> None:
        """Refuse a script only for what it certainly does: a project's own scripts are not ours."""
        try:
            commands = list(simple_commands(text))
        except Refusal:
            return
        for command in commands:
            if isinstance(command, Simple):
                try:
                    self.simple(command)
                except Refusal as refusal:
                    if refusal.sure and _name(command.words) not in files.REMOVERS:
                        raise

    def _xargs(self, rest: list[Word], command: Simple) -> None:
        mark = ""
        while rest and rest[0].text is not None and rest[0].text.startswith("-"):
            option = rest.pop(0).text or ""
            if option in ("-0", "-r", "-t", "-x", "--null", "--no-run-if-empty", "--verbose"):
                continue
            if re.fullmatch(r"-[nPLds].+|--(?:max-\w+|delimiter)=.+", option):
                continue
            if option in ("-n", "-P", "-L", "-d", "-s", "-I") and rest:
                value = rest.pop(0).text
                mark = (value or "?") if option == "-I" else mark
            elif option.startswith("-I"):
                mark = option[2:]
            else:
                raise Refusal(f"xargs {option} is not decided here")
        if not rest:
            return
        given = [Word(None) if mark and w.text and mark in w.text else w for w in rest]
        self.words(given if mark else [*given, Word(None)], replace(command, fed=True))

    def _eval(self, rest: list[Word]) -> None:
        texts = [word.text for word in rest]
        if any(text is None or word.glob for text, word in zip(texts, rest, strict=True)):
            raise Refusal("the text of eval is only known while it runs")
        replace(self, depth=self.depth + 1).text(" ".join(t for t in texts if t is not None))

    def _source(self, rest: list[Word]) -> None:
        if not rest:
            return
        deeper = replace(self, depth=self.depth + 1)
        interpreters.check_script(rest[0], self.place, shell=deeper.text_of_script)

    def _trap(self, rest: list[Word]) -> None:
        if rest and rest[0].text not in ("-", "", "-l", "-p", "--"):
            self._eval(rest[:1])

    def _hash(self, rest: list[Word]) -> None:
        if rest:
            raise Refusal("hash changes what names mean")

    def _mapfile(self, rest: list[Word]) -> None:
        if any(w.text is None or w.text.startswith("-C") for w in rest):
            raise Refusal("mapfile -C runs a command")

    def _env_dump(self, rest: list[Word]) -> None:
        if not any(w.text and not w.text.startswith("-") for w in rest):
            raise Refusal("it prints the environment")


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """How a program that starts another takes its own options."""

    flags: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    positional: int = 0
    assignments: bool = False
    asks: tuple[str, ...] = ()
    """Options with which nothing is started (`command -v`)."""

    def consumed(self, name: str, option: str) -> int:
        """How many words an option takes; `Refusal` for an unknown one."""
        if option in self.flags or option in self.asks:
            return 1
        if option in self.valued:
            return 2
        long, equals, _ = option.partition("=")
        glued = len(option) > 2 and option[:2] in self.valued and not option.startswith("--")
        if (equals and long in self.valued) or glued or re.fullmatch(r"-\d+", option):
            return 1
        raise Refusal(f"{name} {option} is not decided here")

    def only_asks(self, words: Sequence[Word]) -> bool:
        """Whether the call only asks where a command is."""
        return len(words) > 1 and words[1].text in self.asks


_WRAPPERS = {
    "env": _Wrapper(("-i", "-", "-0", "--ignore-environment"), ("-u", "--unset"), assignments=True),
    "nice": _Wrapper((), ("-n", "--adjustment")),
    "timeout": _Wrapper(
        ("--preserve-status", "--foreground", "-v", "--verbose"),
        ("-s", "--signal", "-k", "--kill-after"),
        positional=1,
    ),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(("-c", "-f", "-w", "--wait", "--fork")),
    "stdbuf": _Wrapper((), ("-i", "-o", "-e", "--input", "--output", "--error")),
    "ionice": _Wrapper(("-t",), ("-c", "-n", "--class", "--classdata")),
    "time": _Wrapper(("-p", "-v"), ("-f",)),
    "command": _Wrapper(("-p",), (), asks=("-v", "-V")),
    "builtin": _Wrapper(),
    "exec": _Wrapper(("-c", "-l"), ("-a",)),
    "busybox": _Wrapper(),
    "toybox": _Wrapper(),
    "chronic": _Wrapper(),
    "unbuffer": _Wrapper(("-p",)),
}
_RUNNERS = frozenset(
    {"uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba", "npx",
     "bunx", "pnpm", "pnpx", "yarn", "npm", "pipx", "tox", "nox", "direnv", "nix", "nix-shell"}
)  # fmt: skip
_WORDS_OF_RUNNERS = ("view", "watch", "script", "batch", "at", "install", "ln")
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish"})
_BUILTINS: dict[str, Callable[[Rules, list[Word]], None]] = {
    "eval": Rules._eval,
    "source": Rules._source,
    ".": Rules._source,
    "trap": Rules._trap,
    "hash": Rules._hash,
    "mapfile": Rules._mapfile,
    "readarray": Rules._mapfile,
    "declare": Rules._env_dump,
    "typeset": Rules._env_dump,
}


def decide_text(text: str, place: Place) -> str | None:
    """Why a shell text is refused, or None."""
    try:
        Rules(place).text(text)
    except Refusal as refusal:
        return f"refused: {refusal}. {_ADVICE}"
    return None


def decide_argv(argv: Sequence[str], place: Place) -> str | None:
    """Why an argv is refused, or None."""
    try:
        Rules(place).simple(Simple(tuple(Word(part) for part in argv)))
    except Refusal as refusal:
        return f"refused: {refusal}. {_ADVICE}"
    return None


def _name(words: Sequence[Word]) -> str:
    return last_part(words[0].text or "") if words else ""


def _judged(name: str) -> bool:
    return (
        name in ("git", "rage", "xargs", "find", "eval")
        or name in _NEVER
        or name in _SHELLS
        or name in _WRAPPERS
        or name in files.JUDGED
        or name.startswith("git-")
        or interpreters.knows(name)
    )


def _after(command: Simple, place: Place, settled: bool) -> Place:
    """Where the next command stands."""
    name = _name(command.words)
    if name in ("popd", "dirs"):
        return place.moved(None)
    if name not in ("cd", "pushd"):
        return place
    arguments = [w for w in command.words[1:] if w.text not in ("-L", "-P", "-e", "--")]
    target = arguments[0].text if len(arguments) == 1 and not arguments[0].glob else None
    if not arguments:
        target = str(Path.home())
    if target in ("-", None) or (command.looped and ".." in target.split("/")):
        return place.moved(None)
    return place.moved(target, certain=settled and not command.looped)
