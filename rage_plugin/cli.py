"""The `rage` command: the same words as in a chat, and the way to run a host.

It parses with `commands`, answers with `answers` and drives what `hosts` finds; it knows no host
and no SQL.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from . import __version__, hosts
from .commands import VERBS, Command, help_text, parse_words
from .core.errors import RageError, Refused, UsageError
from .hookspecs import Session
from .report import no_report, typed_in_a_shell

DONE, REFUSED, USAGE, FAULT, PERSON, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes (F155): done; failed or refused; usage; internal fault; needs a person; interrupt."""
UNCONFIGURED = frozenset(
    {"status", "report", "handoff", "why", "replay", "context", "pause", "stop"}
)
"""Verbs that need no profile: a person can say them whatever an agent made of `rage.yaml`."""
HELP = {v.name: v for v in VERBS}
CHANGES = frozenset({"pause", "stop", "correct", "answer", "resolve", "accept", "reject"})
"""Verbs after which a recorded wish is void."""
EXAMPLES = {
    "run": 'rage run "#5" --model gpt-5-mini',
    "chat": "rage chat --model gpt-5-mini",
    "completion": "rage completion bash >> ~/.bashrc",
}


class Examples(click.Command):
    """A command whose help ends with an example."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example below the options."""
        verb = HELP.get(self.name or "")
        example = f"rage {_quoted(verb.example)}" if verb else EXAMPLES.get(self.name or "", "")
        if example:
            with formatter.section("Example"):
                formatter.write_text(example)


def _quoted(example: str) -> str:
    """An example as a shell needs it: `#` begins a comment there."""
    return " ".join(f'"{w}"' if w.startswith("#") else w for w in example.split(" "))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rage")
def rage() -> None:
    """RAGE works a backlog with your coding agent and decides by evidence what is done."""


def _answer(words: list[str], workspace: str, as_json: bool) -> None:
    command = parse_words(words)
    _refuse_tools(command.verb, workspace)
    if command.verb in ("start", "resume", "adopt"):
        _wish(command, words, workspace, as_json)
        return
    if command.verb in ("audit", "kill"):
        _without_database(command, workspace, as_json)
        return
    from . import bootstrap, wish  # noqa: PLC0415
    from .answers import answer  # noqa: PLC0415
    from .core.config import ProjectConfig  # noqa: PLC0415
    from .core.model import RunStatus  # noqa: PLC0415
    from .flag import lower_flag  # noqa: PLC0415

    config = ProjectConfig() if command.verb in UNCONFIGURED else None
    room = bootstrap.open_workspace(workspace, config)
    try:
        result = answer(room, _shell(workspace), command, _progress)
        if result.state is not None and result.state.run.status is not RunStatus.ACTIVE:
            # The host that raised it may be gone, and every idle chat would go on looking.
            with suppress(RageError):
                lower_flag(result.state.run.id)
        if command.verb in CHANGES:
            wish.void(room.state)
    finally:
        room.close()
    _say(json.dumps(dict(result.data)) if as_json else result.text)
    if result.failed:
        sys.exit(REFUSED)


def _without_database(command: Command, workspace: str, as_json: bool) -> None:
    """What must work when the database is locked or damaged: its audit, and the kill switch."""
    if command.verb == "audit":
        from . import bootstrap  # noqa: PLC0415

        text, data, ok = bootstrap.audit(workspace, command.target, command.head)
    else:
        from . import kill_command  # noqa: PLC0415

        ended = kill_command.at_once(workspace)
        if ended.run:
            _progress(f"{len(ended.killed.ended)} processes of run {ended.run} are gone")
        text, data, ok = kill_command.settle(workspace, ended)
    _say(json.dumps(data) if as_json else text)
    if not ok:
        sys.exit(REFUSED)


def _say(text: str) -> None:
    """Write an answer to standard output."""
    try:
        click.echo(text)
    except BrokenPipeError:
        raise  # the reader has read enough: click ends quietly
    except OSError as error:
        # Python tries once more when it ends, and would make an exit code of its own of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise RageError(
            f"The answer cannot be written to standard output: {error.strerror}",
            kept="What it tells is recorded",
            next="rage report",
        ) from error


def _refuse_tools(verb: str, workspace: str) -> None:
    """A control verb from a tool of a run is refused and recorded."""
    from .guard.origin import CONTROL, called_by_a_tool  # noqa: PLC0415

    if verb not in CONTROL or not called_by_a_tool():
        return
    from . import bootstrap  # noqa: PLC0415

    bootstrap.record_refusal(workspace, f"rage {verb} was called by a tool of the agent")
    raise Refused(
        f"`rage {verb}` is a person's word and was called by a tool of an agent",
        kept="Nothing was changed, and the attempt was recorded",
    )


def _wish(command: Command, words: list[str], workspace: str, as_json: bool) -> None:
    """A shell has no agent: the wish is recorded, and the bound host takes it up."""
    import shlex  # noqa: PLC0415

    from . import bootstrap, intake, report, wish  # noqa: PLC0415
    from .core.dialogue import dialogue, needs  # noqa: PLC0415

    room = bootstrap.open_workspace(workspace)
    try:
        run = room.store.active_run(room.parts.workspace)
        if command.verb == "start":
            planned = intake.plan(room.parts, command)
            if planned["problem"]:
                raise Refused(planned["problem"])
        elif run is None:
            raise Refused("There is no run to resume in this workspace", next="rage run TARGET")
        elif command.verb == "adopt" and command.target != run.id:
            raise Refused(f"The run of this workspace is {run.id}", next=f"rage adopt {run.id}")
        elif run.pause_reason is not None and needs(run.pause_reason) in ("answer", "ruling"):
            state = room.store.load(run.id)
            raise Refused(report.reason(run), next=" or ".join(dialogue(state).commands))
        line = " ".join(shlex.quote(w) if set(w) & set(" \t'\"\\") else w for w in words)
        wish.make(room.state, f"/rage {line}", run.id if run else "")
    finally:
        room.close()
    target = run.target if run is not None else command.target
    more = "".join(f" {word}" for word in words[1:]) if command.verb == "resume" else ""
    text = (
        "Recorded for an hour: a chat of this workspace takes it up with its next message. "
        f'A shell has no agent; to work from here: rage run "{target}"{more}'
    )
    _say(json.dumps({"recorded": words}) if as_json else text)


def _shell(workspace: str) -> Session:
    from .answers import SHELL  # noqa: PLC0415

    return Session(host=SHELL, id=f"shell-{os.getpid()}", workspace=str(Path(workspace).resolve()))


def _progress(line: str) -> None:
    click.echo(f"  » {line}", err=True)


WORKSPACE = click.Option(
    ["--workspace"],
    type=click.Path(exists=True, file_okay=False),
    default=".",
    help="A folder inside the repository.",
    show_default=True,
)
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")
TARGET = click.Argument(["target"], nargs=-1, required=True)
TEXT = click.Argument(["text"], nargs=-1, required=True)
ITEM = click.Argument(["item"])
RUN = click.Argument(["run"])
ANY_RUN = click.Argument(["run"], required=False)
BOUNDS = (
    click.Option(["--budget"], metavar="N", help="Tokens at most, e.g. 300k; +50k for more."),
    click.Option(["--max-iterations"], metavar="N", help="Turns at most; +5 for more."),
    click.Option(["--time"], metavar="T", help="Time at most, e.g. 90m; +2h for more."),
)
CONFIRM = click.Option(["--confirm"], is_flag=True, help="Go on where the run asked for your word.")
START = (
    TARGET,
    *BOUNDS,
    click.Option(["--items"], metavar="N", help="Pause after N items."),
    click.Option(["--snapshot"], is_flag=True, help="Commit modified files first."),
    CONFIRM,
)
ARGUMENTS: dict[str, tuple[click.Parameter, ...]] = {
    "plan": (TARGET,),
    "start": START,
    "resume": (*BOUNDS, CONFIRM),
    "adopt": (RUN,),
    "correct": (
        click.Option(["--instead"], is_flag=True, help="Nothing that was said before holds."),
        TEXT,
    ),
    "answer": (TEXT,),
    "resolve": (click.Argument(["what"], type=click.Choice(["spec", "code"])),),
    "accept": (ITEM,),
    "reject": (ITEM, click.Option(["--why"], required=True, help="The reason, for the record.")),
    "why": (ANY_RUN, click.Option(["--last"], metavar="N", help="How many decisions.")),
    "audit": (
        click.Argument(["what"], type=click.Choice(["verify"])),
        ANY_RUN,
        click.Option(["--head"], metavar="HASH", help="The chain head that a report printed."),
    ),
    "replay": (ANY_RUN,),
}
"""What each verb takes beside `--workspace` and `--json`."""
NOTES = {
    "start": "A shell has no agent, so this leaves the start for a chat of the workspace; to work "
    "from here use `rage run`.",
}


def _words(name: str, params: Sequence[click.Parameter], values: Mapping[str, Any]) -> list[str]:
    """A verb and its values as `parse_words` reads them."""
    words = [name]
    for param in params:
        value = values[param.name or ""]
        if isinstance(param, click.Option) and value not in (None, False):
            words += [param.opts[0]] if param.is_flag else [param.opts[0], value]
        elif isinstance(param, click.Argument) and value is not None:
            words += value if isinstance(value, tuple) else [value]
    return words


def _add(name: str) -> None:
    """One verb of the grammar as a command of the shell."""
    params = ARGUMENTS.get(name, ())

    def verb(workspace: str, as_json: bool, **values: Any) -> None:
        _answer(_words(name, params, values), workspace, as_json)

    text = f"{HELP[name].does} {NOTES.get(name, '')}".rstrip()
    rage.add_command(Examples(name, callback=verb, params=[*params, WORKSPACE, JSON], help=text))


for _verb in VERBS:
    if _verb.name != "help":
        _add(_verb.name)


@rage.command(name="help", cls=Examples, help=HELP["help"].does)
def help_() -> None:
    click.echo(help_text("rage "))


HOST = (
    click.Option(["--host"], default="embedded", show_default=True, help="A registered host."),
    click.Option(
        ["--model"],
        envvar="RAGE_MODEL",
        required=True,
        help="script:FILE, or any name litellm knows; also RAGE_MODEL.",
    ),
)


def _root(workspace: str) -> str:
    """The repository's top folder: items, gates, checks and the tools start from there."""
    from .repository import Repository  # noqa: PLC0415

    try:
        return str(Repository(Path(workspace)).root)
    except RageError:
        return workspace  # whoever needs a repository says so


def _run(host: str, model: str, workspace: str, as_json: bool, **values: Any) -> None:
    words = _words("start", START, values)
    command = parse_words(words)
    workspace = _root(workspace)
    _refuse_tools("run", workspace)
    options = words[1 + len(values["target"]) :]
    entry = hosts.find(host)
    try:
        driven = hosts.Driven(entry, workspace, model)
        code = driven.run(command.target, options, as_json)
    except RageError as error:
        if as_json:
            click.echo(json.dumps(no_report("failed", error.line())))
        raise
    sys.exit(code)


def _chat(host: str, model: str, without_rage: bool, workspace: str) -> None:
    root = _root(workspace)
    driven = hosts.Driven(hosts.find(host), root, model, with_rage=not without_rage)
    sys.exit(driven.chat())


WITHOUT = click.Option(
    ["--without-rage"], is_flag=True, help="The same host, the plugin not registered."
)
rage.add_command(
    Examples(
        "run",
        callback=_run,
        params=[*START, *HOST, WORKSPACE, JSON],
        help="Work TARGET to the end with the embedded host, and say what came of it.\n\n"
        "A run on the same target that is paused or was interrupted goes on.",
    )
)
rage.add_command(
    Examples(
        "chat",
        callback=_chat,
        params=[*HOST, WITHOUT, WORKSPACE],
        help="Chat with the embedded host; type /rage help there.",
    )
)


@rage.command(cls=Examples)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(rage, {}, "rage", "_RAGE_COMPLETE").source())


def _for_a_shell(error: RageError) -> str:
    """An error's line with commands as a shell takes them."""
    return typed_in_a_shell(error.line())


def main() -> NoReturn:
    """Run the command; every expected error is one line, every bug a log that can be pasted."""
    try:
        code = rage.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else DONE)
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except UsageError as error:
        click.echo(_for_a_shell(error), err=True)
        sys.exit(USAGE)
    except RageError as error:
        click.echo(_for_a_shell(error), err=True)
        sys.exit(REFUSED)
    except Exception:  # noqa: BLE001 - the last line of defence: no traceback in a terminal
        import traceback  # noqa: PLC0415

        from .bootstrap import log_fault  # noqa: PLC0415

        log = log_fault(".", traceback.format_exc())
        click.echo(f"RAGE met an internal fault; the log to report is in {log}", err=True)
        sys.exit(FAULT)
