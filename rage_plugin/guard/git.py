"""Which git calls only read: RAGE commits, and while a run is active the agent's git is read-only.

Everything that is not listed is refused, and so are options of listed commands that write a file,
run a program, or read another repository's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .shell import Refusal, Word

_GLOBAL = frozenset(
    {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--glob-pathspecs",
     "--noglob-pathspecs", "--icase-pathspecs", "--no-replace-objects", "--version", "-v"}
)  # fmt: skip
_READS = frozenset(
    {"status", "diff", "log", "show", "blame", "annotate", "ls-files", "ls-tree", "rev-parse",
     "rev-list", "grep", "cat-file", "describe", "shortlog", "merge-base", "name-rev", "diff-tree",
     "diff-index", "diff-files", "for-each-ref", "show-ref", "count-objects", "check-ignore",
     "check-attr", "whatchanged", "cherry", "range-diff", "version", "var", "show-branch"}
)  # fmt: skip
_FORBIDDEN = ("--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager",
              "--exec-path", "--upload-pack", "--receive-pack")  # fmt: skip
_BRANCH_LISTS = frozenset(
    {"-a", "-r", "-v", "-vv", "-l", "--all", "--remotes", "--list", "--show-current", "--verbose",
     "--no-color", "--color", "--no-column", "--ignore-case", "-i", "-q"}
)  # fmt: skip
_BRANCH_FILTERS = ("--contains", "--no-contains", "--merged", "--no-merged", "--points-at",
                   "--sort", "--format", "--color", "--abbrev")  # fmt: skip


def check(words: Sequence[Word]) -> None:
    """Refuse a git call (its words after `git`) unless it certainly only reads."""
    rest = list(words)
    while rest and rest[0].text is not None and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option not in _GLOBAL:
            raise Refusal(f"git {option} is not allowed here", sure=True)
    if not rest:
        return
    name = rest.pop(0).text
    if name is None:
        raise Refusal("which git command it runs is only known while it runs")
    if name in _READS:
        _options(name, rest)
        return
    special = _SPECIAL.get(name)
    if special is None:
        raise Refusal(
            f"git {name} changes the repository; RAGE commits, git is read-only", sure=True
        )
    _options(name, rest)
    if not special([word.text or "" for word in rest]):
        raise Refusal(
            f"this form of git {name} changes the repository; git is read-only", sure=True
        )


def _options(name: str, words: Sequence[Word]) -> None:
    for word in words:
        text = word.text
        if text == "--":
            return
        if text is None:
            raise Refusal(f"an argument of git {name} is only known while it runs; name it")
        if not text.startswith("-"):
            continue
        option = text.split("=", 1)[0]
        # git accepts any unambiguous beginning of a long option.
        if len(option) > 3 and any(f.startswith(option) for f in _FORBIDDEN):
            raise Refusal(f"git {name} {option} is not allowed here", sure=True)
        if option.startswith("--output") or (
            name == "grep" and not text.startswith("--") and "O" in text
        ):
            raise Refusal(f"git {name} {option} is not allowed here", sure=True)


def _branch(words: list[str]) -> bool:
    listing = any(w in ("--list", "-l") or w.startswith(_BRANCH_FILTERS) for w in words)
    return all(
        w in _BRANCH_LISTS or w.startswith(_BRANCH_FILTERS) or (listing and not w.startswith("-"))
        for w in words
    )


def check_forge(words: Sequence[Word]) -> None:
    """Refuse a call of a forge's command line unless it only shows something."""
    verbs = [word.text for word in words if not (word.text or "").startswith("-")][:2]
    if verbs and verbs[-1] not in ("view", "list", "status", "diff", "checks"):
        raise Refusal("a forge is written to by RAGE's sinks only, not by a tool of the run")


def _tag(words: list[str]) -> bool:
    listing = any(w in ("--list", "-l") for w in words)
    filters = [w in ("-l", "--list", "-n") or w.startswith(_BRANCH_FILTERS) for w in words]
    return all(
        known or (listing and not word.startswith("-"))
        for word, known in zip(words, filters, strict=True)
    )


def _config(words: list[str]) -> bool:
    scopes = ("--local", "--global", "--system", "--worktree", "--show-origin", "--show-scope",
              "-z", "--null", "--bool", "--int", "--path", "--name-only")  # fmt: skip
    rest = [w for w in words if w not in scopes]
    return bool(rest) and rest[0] in (
        "--get",
        "--get-all",
        "--get-regexp",
        "--list",
        "-l",
        "get",
        "list",
    )


def _first_of(*allowed: str, bare: bool = True) -> Callable[[list[str]], bool]:
    def only(words: list[str]) -> bool:
        return (not words and bare) or (bool(words) and words[0] in allowed)

    return only


_SPECIAL: dict[str, Callable[[list[str]], bool]] = {
    "branch": _branch,
    "tag": _tag,
    "config": _config,
    "remote": lambda words: (
        all(w in ("-v", "--verbose") for w in words) or words[:1] == ["get-url"]
    ),
    "stash": _first_of("list", "show", bare=False),
    "worktree": _first_of("list", bare=False),
    "submodule": _first_of("status"),
    "reflog": _first_of("show", "exists"),
    "notes": _first_of("list", "show"),
    "symbolic-ref": lambda words: [w for w in words if w not in ("--short", "-q")] == ["HEAD"],
    "help": lambda words: False,
}
