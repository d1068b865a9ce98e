"""What a person types or writes: commands, exit codes, targets, the profile, front matter."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click

from rage_plugin import cli, commands
from rage_plugin.backlog import files, frontmatter
from rage_plugin.core import config, targets
from rage_plugin.profile import MAX_BYTES, NAMES, profile_reference

from . import words
from .markdown import LATER, listed, prose, same, source_text, table


def sections() -> tuple[str, ...]:
    """In the order of the page."""
    return (_chat(), _shell(), _exit_codes(), _targets(), _profile(), _limits(), _front_matter())


def _chat() -> str:
    rows = [(f"`/rage {v.usage}`", v.does, f"`/rage {v.example}`") for v in commands.VERBS]
    return f"""## Commands in a chat

Where a host swallows lines that begin with a slash, `rage VERB …` is the same.

{table(("command", "what it does", "example"), rows)}"""


def _shell() -> str:
    parts = [
        "## Commands in a shell",
        '`#` begins a comment in a shell: quote `"#5"`, or type `5`. '
        "`rage --version` prints the version; `--help` explains `rage` and each command.",
    ]
    for name, command in cli.rage.commands.items():
        arguments = [p for p in command.params if isinstance(p, click.Argument)]
        usage = " ".join([f"rage {name}", "[OPTIONS]", *(_argument(a) for a in arguments)])
        parts += [f"### rage {name}", prose(command.help), f"`{usage}`"]
        parts.append(table(("option", "meaning"), _options(command)))
    return "\n\n".join(filter(None, parts))


def _argument(argument: click.Argument) -> str:
    return argument.make_metavar(click.Context(click.Command("rage")))


def _options(command: click.Command) -> list[tuple[str, str]]:
    rows = []
    for option in command.params:
        if not isinstance(option, click.Option):
            continue
        value = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
        more = " Required." if option.required else ""
        if option.show_default and not option.is_flag:
            more += f" Default: `{option.default}`."
        rows.append((f"{listed(option.opts)}{value}", f"{option.help}{more}"))
    return rows


def _exit_codes() -> str:
    found = _numbers(Path(cli.__file__))
    same("exit codes", found, words.EXIT_CODES)
    rows = [(f"`{number}`", words.EXIT_CODES[name]) for name, number in found.items()]
    return f"## Exit codes\n\n{table(('code', 'meaning'), rows)}"


def _numbers(path: Path) -> dict[str, int]:
    """Names and values of the first `A, B = 0, 1` of a module: in `cli.py` the exit codes."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [n.id for n in node.targets[0].elts if isinstance(n, ast.Name)]
            return dict(zip(names, ast.literal_eval(node.value), strict=True))
    raise SystemExit(f"{path} names no exit codes")


def _targets() -> str:
    same("targets", [k.name for k in targets.TargetKind], words.TARGETS)
    rows = [words.TARGETS[kind.name] for kind in targets.TargetKind]
    places = listed((*(f"{f}/" for f in files.FOLDERS), *files.LISTS))
    return f"""## Targets

What TARGET may be. An id is matched without `#` and leading zeros.

{table(("written", "means"), rows)}

The backlog is the profile's `sources`, else the first of these that exists: {places}."""


def _profile() -> str:
    unread = _unread_keys()
    rows = [
        (f"`{r.key}`", r.type, _default(r.default), r.doc + unread.get(r.key, ""))
        for r in profile_reference()
    ]
    return f"""## Profile keys

One file in the workspace's root, of at most {MAX_BYTES // 1024} KiB: {listed(NAMES)}.
How to write it: [the profile](profile.md). An unknown key is an error with its line.

{table(("key", "value", "default", "meaning"), rows)}"""


def _default(text: str) -> str:
    return text if text in ("required", "empty", "by the command") else f"`{text}`"


def _unread_keys() -> dict[str, str]:
    """Keys of the profile's own facts that no code asks for yet: the page says so."""
    text = source_text(lambda path: not path.name.startswith(("profile", "config")))
    return {
        key: f" {LATER.format('reads')}"
        for key, field in words.PROJECT_FIELDS.items()
        if not re.search(rf"\bconfig\.{field}\b", text)
    }


def _limits() -> str:
    docs = {r.key: r for r in profile_reference()}
    names = [name for name in config.Limits.__dataclass_fields__ if name != "on_failed_item"]
    same("limits", names, words.LIMITS)
    rows = []
    for name in names:
        row = docs[f"limits.{name}"]
        rows.append((f"`limits.{name}`", row.doc, f"`{row.default}`", words.LIMITS[name]))
    return f"""## Limits

Every limit is finite by default. Evidence is looked at first: the last turn may still finish an
item. `rage start --budget`, `--max-iterations` and `--items` set others for one run.

{table(("limit", "counts", "default", "when it is reached"), rows)}"""


def _front_matter() -> str:
    same("front matter", frontmatter.KEYS, words.FRONT_MATTER)
    rows = [(f"`{key}`", words.FRONT_MATTER[key]) for key in frontmatter.KEYS]
    return f"""## An item's front matter

Between two `---` lines at the top of an item's markdown file. Every key may be left out.

{table(("key", "meaning"), rows)}"""
