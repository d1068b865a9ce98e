"""Programs that write, move or remove files, and where their paths may lead."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from itertools import pairwise

from .paths import Place, glob_base, glob_matches_git, last_part
from .shell import Refusal, Word

REMOVERS = frozenset({"rm", "rmdir", "unlink", "shred", "mv", "ln"})
_COPIERS = frozenset({"cp", "install", "rsync", "ln"})
_WRITERS = frozenset({"tee", "touch", "mkdir", "chmod", "chown", "chgrp", "truncate", "mkfifo"})
JUDGED = REMOVERS | _COPIERS | _WRITERS | {"dd", "tar", "sort", "sqlite3"}
_READERS = frozenset(
    {"cat", "ls", "head", "tail", "grep", "egrep", "fgrep", "rg", "ag", "wc", "file", "stat",
     "less", "more", "diff", "cmp", "du", "tree", "echo", "printf", "cut", "uniq", "jq", "test",
     "[", "basename", "dirname", "realpath", "readlink", "which", "type", "nl", "od", "hexdump",
     "md5sum", "sha1sum", "sha256sum", "tr", "cd", "pwd", "true", "false", "fd"}
)  # fmt: skip
_HELPERS = {
    # Options that make an ordinary program start another one.
    "tar": ("--checkpoint-action", "--to-command", "--use-compress-program", "-I", "-F",
            "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "zip": ("-TT", "--unzip-command"),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "rg": ("--pre", "--hostname-bin"),
    "man": ("-P", "--pager", "-H"),
}  # fmt: skip
_GITS_OWN = (
    "HEAD", "ORIG_HEAD", "FETCH_HEAD", "config", "index", "description", "packed-refs", "hooks",
    "info", "logs", "objects", "refs", "main", "master", "x.pack", "x.idx", "pre-commit.sample",
    "rage", "rage.db", "rage.db-wal", "rage.db-shm", "verdicts.db", "events.jsonl", "wish.json",
)  # fmt: skip
"""Names below `.git` that no name pattern of a `find` from above it may stand for."""
_IGNORING = ("--exclude", "--ignore", "--extend-exclude", "-x", "-I")


def check(name: str, words: Sequence[Word], place: Place) -> None:
    """Refuse a call of a program that is not an interpreter and starts no other."""
    _check_helpers(name, words)
    if name in ("rm", "rmdir", "unlink", "shred", "mv"):
        for word in _operands(words):
            check_removal(word, place)
    elif name in _COPIERS:
        _check_copy(name, words, place)
    elif name in _WRITERS:
        operands = _operands(words)
        for word in operands[1:] if name in ("chmod", "chown", "chgrp") else operands:
            check_write(word, place)
    elif name == "dd":
        for word in words:
            if word.text is None:
                raise Refusal("what dd writes is only known while it runs")
            if word.text.startswith("of="):
                check_write(Word(word.text[3:]), place)
    if name not in _READERS:
        _check_git_paths(name, words, place)


def check_write(word: Word, place: Place) -> None:
    """Refuse a target of a redirection or of a writing program unless it may be written."""
    if word.text is None:
        raise Refusal("where it writes is only known while it runs")
    path = glob_base(word.text) if word.glob else word.text
    if word.glob and glob_matches_git(word.text):
        raise Refusal("it writes to .git", sure=True)
    if place.is_git(path):
        raise Refusal(f"{path}: .git belongs to git and to RAGE", sure=True)
    if not place.writable(path):
        raise Refusal(f"{path} is outside the workspace", sure=path.startswith("/"))


def check_removal(word: Word, place: Place) -> None:
    """Refuse to remove anything but paths that are certainly inside the workspace."""
    if word.text is None:
        raise Refusal("what it removes is only known while it runs; name the files")
    path = word.text
    if word.glob:
        if glob_matches_git(path):
            raise Refusal(f"{path} may stand for .git", sure=True)
        base = glob_base(path)
        if place.is_git(base):
            raise Refusal(f"{path}: .git belongs to git and to RAGE", sure=True)
        if not place.inside(base):
            raise Refusal(f"{path} is outside the workspace", sure=path.startswith("/"))
        return
    if place.is_git(path):
        raise Refusal(f"{path}: .git belongs to git and to RAGE", sure=True)
    if not place.inside(path, strictly=True):
        raise Refusal(f"{path} is not a path below the workspace", sure=path.startswith("/"))


def check_find(words: Sequence[Word], place: Place) -> list[list[Word]]:
    """Refuse a `find` that writes outside; the commands that its -exec would start."""
    starts: list[Word] = []
    rest = list(words)
    while rest and not (rest[0].text or "x").startswith(("-", "(", "!")):
        starts.append(rest.pop(0))
    commands: list[list[Word]] = []
    removes = False
    while rest:
        option = rest.pop(0).text
        if option is None:
            raise Refusal("an option of find is only known while it runs")
        if option == "-delete":
            removes = True
        elif option in ("-fprint", "-fprint0", "-fls", "-fprintf") and rest:
            check_write(rest.pop(0), place)
        elif option in ("-exec", "-execdir", "-ok", "-okdir"):
            command: list[Word] = []
            while rest and rest[0].text not in (";", "+"):
                word = rest.pop(0)
                command.append(Word(None) if word.text and "{}" in word.text else word)
            rest = rest[1:]
            if command and last_part(command[0].text or "") in REMOVERS:
                removes = True
            elif command:
                commands.append(command)
    if removes:
        _check_find_removal(starts or [Word(".")], words, place)
    return commands


def _check_find_removal(starts: Sequence[Word], words: Sequence[Word], place: Place) -> None:
    """What `find` may remove: below a folder without .git, or files by a telling name."""
    named = any(
        before.text in ("-name", "-iname") and _says_something(pattern.text)
        for before, pattern in pairwise(words)
    )
    loose = any(w.text in ("-o", "-or", ",", "!", "-not", "-L", "-follow") for w in words)
    for start in starts:
        if start.text is None or start.glob or not place.inside(start.text):
            raise Refusal("find removes something outside the workspace")
        if place.is_git(start.text):
            raise Refusal(f"{start.text}: .git belongs to git and to RAGE", sure=True)
        if not place.inside(start.text, strictly=True) and (not named or loose):
            raise Refusal("find would remove without a name that keeps .git out of it")


def _says_something(pattern: str | None) -> bool:
    folded = (pattern or "").casefold()
    letters = [c for c in folded if c not in "*?[]."]
    names = (".git", *_GITS_OWN)
    return len(letters) >= 2 and not any(fnmatch.fnmatchcase(n.casefold(), folded) for n in names)


def _check_copy(name: str, words: Sequence[Word], place: Place) -> None:
    into: list[Word] = []
    operands: list[Word] = []
    rest = list(words)
    symbolic = any(
        w.text is not None and (w.text == "--symbolic" or _short(w.text, "s")) for w in rest
    )
    while rest:
        word = rest.pop(0)
        text = word.text
        if text in ("-t", "--target-directory") and rest:
            into.append(rest.pop(0))
        elif text is not None and text.startswith("--target-directory="):
            into.append(Word(text.partition("=")[2]))
        elif name == "install" and text in ("-m", "-o", "-g") and rest:
            rest.pop(0)
        elif text is None or not text.startswith("-") or text == "-":
            operands.append(word)
    targets = into or operands[-1:]
    for target in targets:
        check_write(target, place)
    if name == "ln":
        # A link that leads outside would take every later check with it.
        for source in operands if into else operands[:-1] or operands:
            if source.text is None or not place.inside(source.text):
                raise Refusal("a link that leads outside the workspace")
    if symbolic and name == "cp":
        raise Refusal("cp -s makes links; use ln")


def _short(text: str, letter: str) -> bool:
    return text.startswith("-") and not text.startswith("--") and letter in text[1:]


def _operands(words: Sequence[Word]) -> list[Word]:
    found: list[Word] = []
    ended = False
    for word in words:
        if word.text == "--" and not ended:
            ended = True
        elif ended or word.text is None or not word.text.startswith("-") or word.text == "-":
            found.append(word)
    return found


def _check_helpers(name: str, words: Sequence[Word]) -> None:
    helpers = _HELPERS.get(name, ())
    for word in words:
        if word.text is None:
            continue
        option = word.text.split("=", 1)[0]
        for helper in helpers:
            long = helper.startswith("--")
            if option == helper or (long and len(option) > 5 and helper.startswith(option)):
                raise Refusal(f"{name} {option} starts another program", sure=True)
            if not long and len(helper) == 2 and word.text.startswith(helper):
                raise Refusal(f"{name} {helper} starts another program", sure=True)


def _check_git_paths(name: str, words: Sequence[Word], place: Place) -> None:
    """A program that is not known to read must not be given a path below .git or RAGE's state."""
    skip = False
    for word in words:
        text = word.text or ""
        if skip or text.startswith(_IGNORING):
            skip = not skip and "=" not in text
            continue
        value = text.partition("=")[2] if text.startswith("-") else text
        if last_part(value).startswith("rage.db"):
            raise Refusal("RAGE's state is not for tools of the run", sure=True)
        if value and (place.is_git(value) or (word.glob and glob_matches_git(value))):
            raise Refusal(f"{name} {value}: .git belongs to git and to RAGE", sure=True)
