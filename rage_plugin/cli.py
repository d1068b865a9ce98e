"""The `rage` command: the same words as in a chat, and the way to run a host.

It parses with `commands`, answers with `answers` and drives what `hosts` finds; it knows no host
and no SQL.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from . import __version__, hosts
from .commands import VERBS, Command, help_text, parse_words
from .core.errors import RageError, Refused, UsageError
from .hookspecs import Session
from .report import no_report

DONE, REFUSED, USAGE, FAULT, PERSON, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes (F155): done; failed or refused; usage; internal fault; needs a person; interrupt."""
UNCONFIGURED = frozenset({"status", "report", "context", "pause", "stop"})
"""Verbs that need no profile: a person can say them whatever an agent made of `rage.yaml`."""
HELP = {v.name: v for v in VERBS}
CHANGES = frozenset({"pause", "stop", "correct", "accept", "reject"})
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


def workspace_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--workspace DIR`, the folder whose repository is meant."""
    return click.option(
        "--workspace",
        type=click.Path(exists=True, file_okay=False),
        default=".",
        help="A folder inside the repository.",
        show_default=True,
    )(function)


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--json`, one object for scripts."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(function)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rage")
def rage() -> None:
    """RAGE works a backlog with your coding agent and decides by evidence what is done."""


def _answer(words: list[str], workspace: str, as_json: bool) -> None:
    command = parse_words(words)
    _refuse_tools(command.verb, workspace)
    if command.verb in ("start", "resume"):
        _wish(command, words, workspace, as_json)
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

    from . import bootstrap, intake, wish  # noqa: PLC0415

    room = bootstrap.open_workspace(workspace)
    try:
        run = room.store.active_run(room.parts.workspace)
        if command.verb == "start":
            planned = intake.plan(room.parts, command)
            if planned["problem"]:
                raise Refused(planned["problem"])
        elif run is None:
            raise Refused("There is no run to resume in this workspace", next="rage run TARGET")
        line = " ".join(shlex.quote(w) if set(w) & set(" \t'\"\\") else w for w in words)
        wish.make(room.state, f"/rage {line}", run.id if run else "")
    finally:
        room.close()
    target = command.target or (run.target if run else "TARGET")
    text = (
        "Recorded for an hour: a chat of this workspace takes it up with its next message. "
        f'A shell has no agent; to work from here: rage run "{target}"'
    )
    _say(json.dumps({"recorded": words}) if as_json else text)


def _shell(workspace: str) -> Session:
    return Session(
        host="shell", id=f"shell-{os.getpid()}", workspace=str(Path(workspace).resolve())
    )


def _progress(line: str) -> None:
    click.echo(f"  » {line}", err=True)


@rage.command(cls=Examples, help=HELP["plan"].does)
@click.argument("target", nargs=-1, required=True)
@workspace_option
@json_option
def plan(target: tuple[str, ...], workspace: str, as_json: bool) -> None:
    _answer(["plan", *target], workspace, as_json)


def _start_words(
    target: tuple[str, ...],
    budget: str | None,
    max_iterations: str | None,
    items: str | None,
    snapshot: bool,
) -> list[str]:
    words = list(target)
    for name, value in (
        ("--budget", budget),
        ("--max-iterations", max_iterations),
        ("--items", items),
    ):
        if value is not None:
            words += [name, value]
    return [*words, "--snapshot"] if snapshot else words


def start_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `start`, the same for `run`."""
    for option in (
        click.option("--snapshot", is_flag=True, help="Commit modified files first."),
        click.option("--items", metavar="N", help="Pause after N items."),
        click.option("--max-iterations", metavar="N", help="Turns at most."),
        click.option("--budget", metavar="N", help="Tokens at most, e.g. 300k."),
    ):
        function = option(function)
    return function


@rage.command(
    cls=Examples,
    help=f"{HELP['start'].does} A shell has no agent, so this leaves the start for a chat of the "
    "workspace; to work from here use `rage run`.",
)
@click.argument("target", nargs=-1, required=True)
@start_options
@workspace_option
@json_option
def start(
    target: tuple[str, ...],
    budget: str | None,
    max_iterations: str | None,
    items: str | None,
    snapshot: bool,
    workspace: str,
    as_json: bool,
) -> None:
    words = _start_words(target, budget, max_iterations, items, snapshot)
    _answer(["start", *words], workspace, as_json)


def _plain(name: str) -> None:
    """A verb without arguments of its own."""

    @rage.command(name=name, cls=Examples, help=HELP[name].does)
    @workspace_option
    @json_option
    def verb(workspace: str, as_json: bool) -> None:
        _answer([name], workspace, as_json)


for _name in ("status", "pause", "resume", "stop", "report", "context"):
    _plain(_name)


@rage.command(cls=Examples, help=HELP["correct"].does)
@click.argument("text", nargs=-1, required=True)
@workspace_option
@json_option
def correct(text: tuple[str, ...], workspace: str, as_json: bool) -> None:
    _answer(["correct", *text], workspace, as_json)


@rage.command(cls=Examples, help=HELP["accept"].does)
@click.argument("item")
@workspace_option
@json_option
def accept(item: str, workspace: str, as_json: bool) -> None:
    _answer(["accept", item], workspace, as_json)


@rage.command(cls=Examples, help=HELP["reject"].does)
@click.argument("item")
@click.option("--why", required=True, help="The reason, for the record.")
@workspace_option
@json_option
def reject(item: str, why: str, workspace: str, as_json: bool) -> None:
    _answer(["reject", item, "--why", why], workspace, as_json)


@rage.command(name="help", cls=Examples, help=HELP["help"].does)
def help_() -> None:
    click.echo(help_text("rage "))


def host_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a host needs to be run from here."""
    for option in (
        click.option("--host", default="embedded", show_default=True, help="A registered host."),
        click.option("--model", envvar="RAGE_MODEL", required=True, help="script:FILE, or any "
                     "name litellm knows; also RAGE_MODEL."),
    ):  # fmt: skip
        function = option(function)
    return function


@rage.command(cls=Examples)
@click.argument("target", nargs=-1, required=True)
@start_options
@host_options
@workspace_option
@json_option
def run(
    target: tuple[str, ...],
    budget: str | None,
    max_iterations: str | None,
    items: str | None,
    snapshot: bool,
    host: str,
    model: str,
    workspace: str,
    as_json: bool,
) -> None:
    """Work TARGET to the end with the embedded host, and say what came of it.

    A run on the same target that is paused or was interrupted goes on.
    """
    words = _start_words((), budget, max_iterations, items, snapshot)
    parse_words(["start", *target, *words])
    _refuse_tools("run", workspace)
    entry = hosts.find(host)
    try:
        code = hosts.Driven(entry, workspace, model).run(" ".join(target), words, as_json)
    except RageError as error:
        if as_json:
            click.echo(json.dumps(no_report("failed", error.line())))
        raise
    sys.exit(code)


@rage.command(cls=Examples)
@host_options
@click.option("--without-rage", is_flag=True, help="The same host, the plugin not registered.")
@workspace_option
def chat(host: str, model: str, without_rage: bool, workspace: str) -> None:
    """Chat with the embedded host; type /rage help there."""
    driven = hosts.Driven(hosts.find(host), workspace, model, with_rage=not without_rage)
    sys.exit(driven.chat())


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
    return error.line().replace("/rage ", "rage ")


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
