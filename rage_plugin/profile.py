"""The project's profile: `rage.yaml` to a frozen `ProjectConfig`, or one line with the line number.

Separate from the models (`profile_models.py`), because a project without a profile needs neither
them nor pydantic; and from `core/config.py`, which is what the rest of RAGE is told.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from .core.config import (
    CheckCommand,
    GitConfig,
    Limits,
    PacketConfig,
    ProjectConfig,
    VerifyConfig,
)
from .core.errors import Refused
from .core.plainyaml import KeyPath, PlainYaml, read_plain

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from .profile_models import CommandModel, ProfileModel

NAMES = ("rage.yaml", "rage.yml", "rage.json", ".rage.yaml")
"""Where a profile may stand in the workspace's root; one of them at most."""
MAX_BYTES = 256 * 1024
MAX_ERRORS = 5
"""Findings that one message names."""

_SECRET = re.compile(r"token|secret|passw|api[-_]?key|credential", re.IGNORECASE)


class ReferenceRow(NamedTuple):
    """One key of the profile, for the documentation."""

    key: str
    type: str
    default: str
    doc: str


def load_profile(root: Path) -> ProjectConfig:
    """The profile of a workspace, or the defaults when it has none.

    Raises `Refused` with `file:line` for everything that is not exactly what a key allows, for
    unknown keys and for two profiles at once.
    """
    present = [n for n in NAMES if os.path.lexists(root / n)]
    if not present:
        return ProjectConfig()
    if len(present) > 1:
        raise Refused(f"There are two profiles: {' and '.join(present)}", next="keep one of them")
    name = present[0]
    data = _read(root / name, name)
    return parse_profile(_decode(data, name), name, hashlib.sha256(data).hexdigest())


def parse_profile(text: str, name: str = "rage.yaml", digest: str = "") -> ProjectConfig:
    """The configuration that a profile's text stands for; raises as `load_profile` does."""
    from pydantic import ValidationError  # noqa: PLC0415

    from .profile_models import ProfileModel  # noqa: PLC0415

    if name.endswith(".json"):
        # JSON is YAML but for tabs between its tokens; inside its strings they cannot stand.
        text = text.replace("\t", " ")
    document = read_plain(text, name)
    value = {} if document.value is None else document.value
    if not isinstance(value, dict):
        raise Refused(f"{name}:1: the profile must be `key: value` lines")
    try:
        model = ProfileModel.model_validate(value)
    except ValidationError as error:
        raise _refused(error.errors(include_url=False), document, name) from error
    return _config(model, name, digest)


def profile_reference() -> list[ReferenceRow]:
    """Every key with its type, default and meaning, in the order of the models."""
    from .profile_models import ProfileModel  # noqa: PLC0415

    return _reference(ProfileModel, "")


def _read(path: Path, name: str) -> bytes:
    if path.is_symlink() and not path.exists():
        raise Refused(f"{name} is a symlink to nothing", next=f"write {name}, or remove it")
    if not path.is_file():
        raise Refused(f"{name} is not a file", next=f"rename it, or write {name}")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise Refused(f"{name} is larger than 256 KiB")
    return data


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{name}:{line}: not UTF-8", next="save the file as UTF-8") from error


# --- errors -------------------------------------------------------------------------------------


def _refused(errors: list[ErrorDetails], document: PlainYaml, name: str) -> Refused:
    found = sorted((document.line(e["loc"]), _explain(e)) for e in errors)
    lines = [f"{name}:{line}: {text}" for line, text in found[:MAX_ERRORS]]
    if len(found) > MAX_ERRORS:
        lines.append(f"and {len(found) - MAX_ERRORS} more")
    return Refused("; ".join(lines))


def _explain(error: ErrorDetails) -> str:
    """One finding as a sentence that begins with the key and says what to write."""
    key = _key(error["loc"])
    kind, given = error["type"], error["input"]
    limit = next((v for k, v in error.get("ctx", {}).items() if k in ("ge", "gt", "le")), "")
    match kind:
        case "missing":
            return f"{key} is missing"
        case "extra_forbidden":
            return _unknown(error["loc"])
        case "value_error":
            return f"{key} {error['ctx']['error']}"
        case "literal_error":
            return f"{key} must be one of {error['ctx']['expected']}"
        case "list_type":
            return f"{key} must be a list{_list_of(given)}"
        case "string_type":
            return f"{key} must be text" + ("" if isinstance(given, dict | list) else ": quote it")
        case "int_type" | "int_from_float":
            always = ": this one is always finite" if given == "none" else ""
            return f"{key} must be a whole number{always}"
        case "float_type" | "finite_number":
            seconds = " of seconds" if key.endswith(("_s", "_seconds")) else ""
            return f"{key} must be a number{seconds}"
        case "bool_type":
            return f"{key} must be true or false"
        case "model_type" | "model_attributes_type":
            return f"{key} must hold keys of its own" if given else f"{key} holds nothing"
        case "greater_than_equal":
            return f"{key} must be at least {limit}"
        case "greater_than":
            return f"{key} must be above {limit}"
        case "less_than_equal":
            return f"{key} must be at most {limit}"
        case "string_too_short":
            return f"{key} must not be empty"
        case _:
            return f"{key}: {error['msg']}"


def _key(path: KeyPath) -> str:
    """A path as a person writes it: `verification.commands[0].name`."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")


def _unknown(path: KeyPath) -> str:
    if _SECRET.search(str(path[-1])):
        return (
            f"{_key(path)} is not a key, and secrets do not belong here: "
            "name the variable that holds it in verification.env_allow"
        )
    known = _keys_beside(path)
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"{_key(path)} is not a key; {hint}"


def _keys_beside(path: KeyPath) -> list[str]:
    from .profile_models import ProfileModel  # noqa: PLC0415

    model: type[BaseModel] = ProfileModel
    for part in path[:-1]:
        if isinstance(part, str):
            model = _inner(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _list_of(given: object) -> str:
    """How a line that was written instead of a list is written as one."""
    if not isinstance(given, str):
        return ""
    try:
        words = shlex.split(given)
    except ValueError:
        words = []
    if not words or len(given) > 120 or _SECRET.search(given):
        return ", e.g. [pytest, -q]"
    # Flow lists end a word at these; quotes keep it whole.
    plain = [w if re.fullmatch(r"[\w./=+-]+", w) else f'"{w}"' for w in words]
    return f", e.g. [{', '.join(plain)}]"


# --- from the models ------------------------------------------------------------------------------


def _config(model: ProfileModel, name: str, digest: str) -> ProjectConfig:
    verify = model.verification
    return ProjectConfig(
        id=model.project.id,
        name=model.project.name,
        type=model.project.type,
        sources=tuple(model.sources),
        verification=VerifyConfig(
            commands=tuple(_command(c) for c in verify.commands),
            prepare=tuple(verify.prepare),
            tests=tuple(verify.tests),
            accept=verify.accept,
            unseal=tuple(verify.unseal),
            sealed=tuple(verify.sealed),
            env_allow=tuple(verify.env_allow),
            output_limit=verify.output_limit,
            isolation=verify.isolation,
        ),
        limits=Limits(**model.limits.model_dump()),
        git=GitConfig(model.git.commit, tuple(model.git.protected)),
        packet=PacketConfig(**model.packet.model_dump()),
        scan_code_fences=model.markers.code_fences,
        activation_auto=model.activation.auto,
        path=name,
        hash=digest,
    )


def _command(model: CommandModel) -> CheckCommand:
    writes = any("{junit}" in word for word in model.command)
    return CheckCommand(
        name=model.name,
        command=tuple(model.command),
        required=model.required,
        timeout_s=model.timeout_s,
        cwd=model.cwd,
        report=model.report or ("junit" if writes else "none"),
    )


def _reference(model: type[BaseModel], prefix: str) -> list[ReferenceRow]:
    rows: list[ReferenceRow] = []
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        inner = _inner(field.annotation)
        if inner is not None and get_origin(field.annotation) is None:
            rows += _reference(inner, f"{key}.")
            continue
        default = "required" if field.is_required() else _shown(field.default)
        rows.append(
            ReferenceRow(key, _type(field.annotation, default), default, field.description or "")
        )
        if inner is not None:
            rows += _reference(inner, f"{key}[].")
    return rows


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation, if there is one."""
    from pydantic import BaseModel  # noqa: PLC0415

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((m for a in get_args(annotation) if (m := _inner(a)) is not None), None)


def _type(annotation: Any, default: str) -> str:
    words = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    origin, inside = get_origin(annotation), get_args(annotation)
    if annotation in words:
        return words[annotation]
    if origin is Literal:
        return ", ".join(f"`{a}`" for a in inside)
    if origin is list:
        return "list of keys" if _inner(annotation) else "list of text"
    if type(None) in inside and default != "by the command":
        return f"{_type(inside[0], default)} or `none`"
    return _type(inside[0], default)


def _shown(default: object) -> str:
    if default is None:
        return "by the command"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return f"[{', '.join(map(str, default))}]"
    return str(default) if default != "" else "empty"
