"""Interpreters: inline code that starts programs or removes files is refused, and so is RAGE's CLI.

What a program in another language does is not decided here beyond that; the shell commands it
would save are allowed by their own name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from . import sed
from .files import check as check_files
from .files import check_write
from .paths import Place, joined, last_part
from .shell import Refusal, Simple, Word

_CODE_OPTIONS = {
    # name: (letters that take code, letters that take some other value)
    "python": ("c", "WXQ"),
    "pypy": ("c", "WXQ"),
    "node": ("ep", "r"),
    "nodejs": ("ep", "r"),
    "deno": ("", ""),
    "bun": ("ep", ""),
    "perl": ("eE", "IMm"),
    "ruby": ("e", "IrE"),
    "php": ("rBRE", "cdz"),
    "lua": ("e", "l"),
}
_AWK = frozenset({"awk", "gawk", "mawk", "nawk"})
_STARTS = re.compile(
    r"subprocess|os\.(?:system|popen|exec|spawn|fork|kill)|pty\.spawn|child_process|popen|"
    r"\bsystem\b|\bexec[lvpe]*\s*\(|\bfork\b|\bqx\b|`|__import__|importlib|ctypes|Open3|"
    r"\bspawn\w*\s*\(|posix_spawn|Deno\.(?:run|Command)|Bun\.spawn|\beval\b|runpy|getattr"
)
_REMOVES = re.compile(
    r"rmtree|\bunlink|\brmdir|removedirs|os\.(?:remove|rename|replace)|rmSync|\brm\s*\(|truncate|"
    r"FileUtils|File\.delete"
)
_CONTROL = re.compile(
    r"rage_plugin\.(?:cli|answers|control|commands|store|plugin|active|loop)|rage\.db|"
    r"-m\s*rage_plugin|/rage\s+\w|"
    r"\brage['\"]?\s*,?\s*['\"]?(?:start|resume|adopt|pause|stop|kill|correct|answer|resolve|accept|reject)\b"
)
_MODULES = ("rage_plugin", "host_adapters")
_STARTERS = ("pdb", "cProfile", "profile", "trace", "coverage", "runpy", "timeit")
_SCRIPT_LIMIT = 1_000_000


def knows(name: str) -> bool:
    """Whether a program runs code in a language of its own."""
    return name in _AWK or name in ("sed", "gsed") or _family(name) in _CODE_OPTIONS


def check(name: str, words: Sequence[Word], command: Simple, place: Place) -> None:
    """Refuse an interpreter's call unless what it runs may run."""
    if name in _AWK:
        _awk(words, place)
    elif name in ("sed", "gsed"):
        _sed(words, place)
    else:
        _interpreter(_family(name), list(words), command, place)


def check_script(word: Word, place: Place, shell: Callable[[str], None] | None = None) -> None:
    """Refuse a script file that is unknown, below .git, or speaks to RAGE."""
    if word.text is None:
        raise Refusal("which script it runs is only known while it runs")
    if word.text in ("-", "/dev/stdin") or word.text.startswith(("/dev/fd/", "/proc/")):
        raise Refusal("a program that is read from the input")
    if place.is_git(word.text):
        raise Refusal("a script below .git", sure=True)
    if last_part(word.text) == "rage":
        raise Refusal("RAGE is controlled by a person, never by a tool of the run", sure=True)
    for folder in place.folders:
        if folder is None and not word.text.startswith("/"):
            continue
        text = _text(joined(folder or "/", word.text))
        if _CONTROL.search(text):
            raise Refusal("the script speaks to RAGE, which only a person does", sure=True)
        if shell is not None or re.match(r"#!.*\b(?:ba|da|z|k)?sh\b", text):
            (shell or _shell_script(place))(text)


def _shell_script(place: Place) -> Callable[[str], None]:
    from .commands import Rules  # noqa: PLC0415 - the two ask each other

    return Rules(place, depth=1).text_of_script


def _interpreter(family: str, rest: list[Word], command: Simple, place: Place) -> None:
    takes_code, takes_value = _CODE_OPTIONS[family]
    while rest:
        text = rest[0].text
        if text is None:
            raise Refusal("what it runs is only known while it runs")
        if not text.startswith("-") or text == "-":
            break
        rest.pop(0)
        if text == "--":
            break
        if text.startswith("--"):
            long, equals, value = text.partition("=")
            if long in ("--eval", "--print", "--run"):
                _code(Word(value) if equals else rest.pop(0) if rest else Word(None))
                return
            if long in ("--require", "--import", "--loader", "--experimental-loader"):
                raise Refusal(f"{long} loads code", sure=True)
            continue
        for position, letter in enumerate(text[1:], 1):
            glued = text[position + 1 :]
            if letter in takes_code:
                _code(Word(glued) if glued and family != "perl" else _next(rest))
                return
            if letter == "m" and family in ("python", "pypy"):
                _module(Word(glued) if glued else _next(rest), rest, place)
                return
            if letter in takes_value:
                if not glued and rest:
                    rest.pop(0)
                break
    if rest and rest[0].text != "-":
        check_script(rest[0], place)
        check_files(family, rest[1:], place)
    elif command.stdin is not None and not command.fed:
        _code(Word(command.stdin))
    elif command.fed or rest:
        raise Refusal("a program that is read from the input")


def _next(rest: list[Word]) -> Word:
    return rest.pop(0) if rest else Word(None)


def _module(word: Word, rest: Sequence[Word], place: Place) -> None:
    if word.text is None:
        raise Refusal("which module it runs is only known while it runs")
    names = [word.text, *(w.text or "" for w in rest)]
    for name in names if word.text in _STARTERS else names[:1]:
        if name.split(".")[0] in _MODULES or last_part(name) == "rage":
            raise Refusal("RAGE is controlled by a person, never by a tool of the run", sure=True)
    check_files("python", rest, place)


def _code(word: Word) -> None:
    if word.text is None:
        raise Refusal("the code it runs is only known while it runs")
    if _CONTROL.search(word.text) or re.search(r"\brage_plugin\.cli\b", word.text):
        raise Refusal("the code speaks to RAGE, which only a person does", sure=True)
    if re.search(r"\.git\b(?!hub|ignore|attributes|lab)", word.text, re.I):
        raise Refusal("the code names .git", sure=True)
    if _STARTS.search(word.text):
        raise Refusal("the code starts other programs or hides what it calls; run them by name")
    if _REMOVES.search(word.text):
        raise Refusal("the code removes or renames files; use rm or mv with their names")


def _awk(words: Sequence[Word], place: Place) -> None:
    rest = list(words)
    while rest and (rest[0].text or "").startswith("-"):
        option = rest.pop(0).text or ""
        if option in ("-F", "-v") and rest:
            rest.pop(0)
        elif not re.match(r"-[Fv].", option):
            raise Refusal(f"awk {option} is not decided here")
    if not rest:
        return
    program = rest[0].text
    if program is None:
        raise Refusal("the awk program is only known while it runs")
    harmless = r"\|\||>=|[\w\])$ ]+>\s*\d"  # or, and comparisons with a number
    if re.search(r"\bsystem\b|\bgetline\b|\||@|>", re.sub(harmless, "", program)):
        raise Refusal("the awk program may start another program or write a file")
    check_files("awk", rest[1:], place)


def _sed(words: Sequence[Word], place: Place) -> None:
    scripts: list[Word] = []
    operands: list[Word] = []
    in_place = False
    rest = list(words)
    while rest:
        text = rest[0].text
        word = rest.pop(0)
        if text is None or not text.startswith("-") or text == "-":
            operands.append(word)
        elif text in ("-e", "--expression"):
            scripts.append(_next(rest))
        elif text.startswith("--expression="):
            scripts.append(Word(text.partition("=")[2]))
        elif (
            text.startswith("-i")
            or text.startswith("--in-place")
            or re.fullmatch(r"-[nErsuz]*i\S*", text)
        ):
            in_place = True
        elif re.fullmatch(r"-[nErsuz]+e?", text):
            if text.endswith("e"):
                scripts.append(_next(rest))
        elif text not in ("--quiet", "--silent", "--regexp-extended", "--version", "--posix"):
            raise Refusal(f"sed {text} is not decided here")
    if not scripts and operands:
        scripts.append(operands.pop(0))
    if any(script.text is None for script in scripts):
        raise Refusal("the sed script is only known while it runs")
    sed.check("\n".join(script.text or "" for script in scripts))
    if in_place:
        for operand in operands:
            check_write(operand, place)
    check_files("sed", operands, place)


def _family(name: str) -> str:
    return re.sub(r"[\d.]+$", "", name)


def _text(path: str) -> str:
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > _SCRIPT_LIMIT:
            return ""
        return file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
