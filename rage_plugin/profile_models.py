"""What may be written in a profile, as pydantic models: every key, its type, default and meaning.

The only module that imports pydantic, so that a project without a profile never loads it. Defaults
are those of `core/config.py`; messages are the ends of sentences that begin with the key.
"""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from .core.config import (
    CheckCommand,
    GitConfig,
    Limits,
    PacketConfig,
    ProjectConfig,
    VerifyConfig,
)

_LIMITS, _COMMAND, _VERIFY = Limits(), CheckCommand("", ()), VerifyConfig()
_GIT, _PACKET, _PROJECT = GitConfig(), PacketConfig(), ProjectConfig()

_SECRET = re.compile(
    r"(?:^|[-_])(?:token|secret|password|passwd|api[-_]?key|credentials?)=(?!\$|env:)",
    re.IGNORECASE,
)
_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "2>/dev/null"})
_HIDES_FAILURE = re.compile(
    r"\|\|\s*(?:true|:|/bin/true|exit\s+0)(?![\w-])"
    r"|(?:^|[;&|\n])\s*exit\s+0(?!\w)"
    r"|[;&\n]\s*(?:true|:|/bin/true)\s*;?\s*$"
    r"|(?:^|[;&|\n])\s*set\s+\+e(?!\w)"
)


def _inside(path: str) -> str:
    if not path or path.startswith(("/", "~")) or not path.isprintable():
        raise ValueError("must be a path relative to the workspace")
    if posixpath.normpath(path).split("/")[0] == "..":
        raise ValueError("must not leave the workspace")
    return path


def _argv(words: list[str]) -> list[str]:
    """An argv that can fail, and that no shell was meant to read."""
    if not words or not words[0].strip():
        raise ValueError("must name a program")
    for word in words:
        if word in _SHELL:
            raise ValueError(f"holds `{word}`, which only a shell reads: write a command for each")
        if _SECRET.search(word):
            raise ValueError("holds a secret: name its variable in `verification.env_allow`")
        if _HIDES_FAILURE.search(word):
            raise ValueError("is unsafe: it passes whatever happens; let it fail")
        placeholder = re.fullmatch(r"\{\s*(target|targets|test|tests|junit|files)\s*\}", word)
        if placeholder and word not in ("{targets}", "{junit}"):
            raise ValueError(f"holds {word}: write {{targets}} or {{junit}}")
        if "{targets}" in word and word != "{targets}":
            raise ValueError("holds {targets} inside a word: it must be an element of its own")
    if posixpath.basename(words[0]) in ("true", ":", "exit"):
        raise ValueError("is unsafe: it passes whatever happens; let it fail")
    return words


def _slug(word: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", word):
        raise ValueError("must be of letters, digits, `.`, `_` and `-`, 64 at most")
    return word


def _variable(name: str) -> str:
    # The value that stands where a name belongs may be a secret: it is not repeated.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("must be the name of a variable alone; its value comes from outside")
    return name


def _limit(value: object) -> object:
    """`none` is unlimited; whoever writes 0 or nothing may mean either and is asked."""
    if value == "none":
        return None
    if value is None or (value == 0 and not isinstance(value, bool)):
        raise ValueError("must be above 0; for no limit write `none`")
    return value


def _different(words: list[str]) -> list[str]:
    twice = [w for w in words if words.count(w) > 1]
    if twice:
        raise ValueError(f"names {twice[0]} twice")
    return words


Name = Annotated[str, Field(min_length=1, max_length=100)]
InsidePath = Annotated[str, AfterValidator(_inside)]
Paths = Annotated[list[InsidePath], AfterValidator(_different)]
Argv = Annotated[list[str], AfterValidator(_argv)]
Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(_limit)]
SecondsOrNone = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | None, BeforeValidator(_limit)
]
MultipleOrNone = Annotated[
    Annotated[float, Field(gt=1, allow_inf_nan=False)] | None, BeforeValidator(_limit)
]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ProjectModel(_Model):
    """`project`"""

    id: Annotated[str, AfterValidator(_slug)] = Field(
        default=_PROJECT.id, description="Short name, of letters, digits, `.`, `_` and `-`."
    )
    name: str = Field(default=_PROJECT.name, description="The project's name for people.")
    type: Literal["generic", "python_backend", "graphql_api", "etl_pipeline", "documentation"] = (
        Field(default="generic", description="What kind of project it is.")
    )


class CommandModel(_Model):
    """`verification.commands[]`"""

    name: Name = Field(description="How reports call it; each name once.")
    command: Argv = Field(
        description="The program and its arguments as a list; `{targets}` and `{junit}` are filled."
    )
    required: bool = Field(
        default=_COMMAND.required, description="False: a failure is only a warning."
    )
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=_COMMAND.timeout_s, description="Seconds until it is killed."
    )
    cwd: InsidePath = Field(default=_COMMAND.cwd, description="Folder it runs in.")
    report: Literal["none", "junit", "pytest"] | None = Field(
        default=None,
        description="Who tells test by test; a pytest command is recognised by itself.",
    )


def _commands(commands: list[CommandModel]) -> list[CommandModel]:
    _different([c.name for c in commands])
    if commands and not any(c.required for c in commands):
        raise ValueError("has no required command: nothing could prove an item done")
    for command in commands:
        if command.report == "junit" and not any("{junit}" in w for w in command.command):
            raise ValueError(f"{command.name}: `report: junit` needs {{junit}} in the command")
    return commands


class VerificationModel(_Model):
    """`verification`"""

    commands: Annotated[list[CommandModel], AfterValidator(_commands)] = Field(
        default=[], description="The checks; without any, pytest is detected."
    )
    prepare: Annotated[list[str], AfterValidator(lambda v: _argv(v) if v else v)] = Field(
        default=[], description="Run before a check, e.g. to build native sources."
    )
    tests: Paths = Field(default=[], description="Globs of test files; empty for the usual names.")
    accept: Literal["red_green", "given", "suite"] = Field(
        default="red_green", description="What proves an item: see `docs/how-the-loop-decides.md`."
    )
    unseal: Paths = Field(default=[], description="Sealed files that an item may change.")
    sealed: Paths = Field(default=[], description="More files that no item may change.")
    env_allow: Annotated[
        list[Annotated[str, AfterValidator(_variable)]], AfterValidator(_different)
    ] = Field(default=[], description="Names of environment variables that a check sees too.")
    output_limit: Annotated[int, Field(ge=1_000, le=1_000_000)] = Field(
        default=_VERIFY.output_limit, description="Characters of a check's output that are kept."
    )
    isolation: Literal["auto", "overlay", "swap", "scratch"] = Field(
        default="auto",
        description="How a check sees another tree; `auto` takes the first that works.",
    )


class LimitsModel(_Model):
    """`limits`"""

    max_iterations: CountOrNone = Field(
        default=_LIMITS.max_iterations, description="Turns an item."
    )
    run_iterations: CountOrNone = Field(default=_LIMITS.run_iterations, description="Turns a run.")
    item_tokens: CountOrNone = Field(default=_LIMITS.item_tokens, description="Tokens an item.")
    run_tokens: CountOrNone = Field(default=_LIMITS.run_tokens, description="Tokens a run.")
    wall_seconds: SecondsOrNone = Field(
        default=_LIMITS.wall_seconds, description="Seconds a run is active; pauses do not count."
    )
    token_multiple: MultipleOrNone = Field(
        default=_LIMITS.token_multiple, description="Tokens of an item over those expected of it."
    )
    scope_multiple: MultipleOrNone = Field(
        default=_LIMITS.scope_multiple,
        description="Files, or lines, that an item changes over those expected of it.",
    )
    max_fix_attempts: Count = Field(
        default=_LIMITS.max_fix_attempts, description="Attempts after a failed one, an item."
    )
    noop_turns: Count = Field(
        default=_LIMITS.noop_turns, description="Turns in a row without evidence."
    )
    provider_errors: Count = Field(
        default=_LIMITS.provider_errors, description="Failed model calls in a row."
    )
    same_action: Count = Field(
        default=_LIMITS.same_action,
        description="Tool calls that fail the same way while nothing changes.",
    )
    alert_at: Share = Field(
        default=_LIMITS.alert_at, description="Share of the run's tokens, above 0 and at most 1."
    )
    on_failed_item: Literal["next", "pause"] = Field(
        default="next", description="`next`: other items that do not need it go on."
    )


class GitModel(_Model):
    """`git`"""

    commit: bool = Field(default=_GIT.commit, description="False: changes are left uncommitted.")
    protected: Annotated[list[Name], AfterValidator(_different)] = Field(
        default=list(_GIT.protected), description="Branches that a run leaves for one of its own."
    )


class PacketModel(_Model):
    """`packet`"""

    tokens: Annotated[int, Field(ge=100, le=200)] = Field(
        default=_PACKET.tokens, description="Cap of the packet in every model call, in tokens."
    )
    brief_tokens: Annotated[int, Field(ge=500, le=1_500)] = Field(
        default=_PACKET.brief_tokens, description="Cap of the brief that begins an item, in tokens."
    )


class MarkersModel(_Model):
    """`markers`"""

    code_fences: bool = Field(
        default=_PROJECT.scan_code_fences,
        description="False: `[SPEC_DEVIATION]` and its like do not count inside code fences.",
    )


class ActivationModel(_Model):
    """`activation`"""

    auto: bool = Field(
        default=_PROJECT.activation_auto, description="True: a run may begin by itself."
    )


class ProfileModel(_Model):
    """The whole profile."""

    project: ProjectModel = ProjectModel()
    sources: Paths = Field(
        default=[],
        description="Backlog files or folders; empty for the first usual place that exists.",
    )
    verification: VerificationModel = VerificationModel()
    limits: LimitsModel = LimitsModel()
    git: GitModel = GitModel()
    packet: PacketModel = PacketModel()
    markers: MarkersModel = MarkersModel()
    activation: ActivationModel = ActivationModel()
