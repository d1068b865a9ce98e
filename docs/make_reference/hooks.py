"""Every hook with its signature and docstring, and the values that hooks take and return."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable
from pathlib import Path

from rage_plugin import hookspecs

from . import words
from .markdown import prose, table


def sections() -> tuple[str, ...]:
    """In the order of the page."""
    return (
        _hooks("Hooks that a host calls", hookspecs.HostSpec, words.HOST_HOOKS),
        _hooks("Hooks that RAGE calls", hookspecs.ExtensionSpec, words.EXTENSION_HOOKS),
        _values(),
    )


def _hooks(title: str, spec: type, intro: str) -> str:
    parts = [f"## {title}", intro.strip()]
    for name, function in vars(spec).items():
        if not name.startswith("rage_"):
            continue
        first = getattr(function, "rage_spec", {}).get("firstresult")
        which = "The first result that is not None counts." if first else "Every plugin is called."
        code = f"```python\n{_signature(name, function)}\n```"
        parts += [f"### {name}", code, f"{prose(inspect.getdoc(function))} {which}"]
    return "\n\n".join(parts)


def _signature(name: str, function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name != "self"]
    text = f"{name}({', '.join(map(str, kept))}) -> {signature.return_annotation}"
    return text.replace("'", "")


def _values() -> str:
    """The dataclasses of the hooks, and the class that a source is."""
    parts = ["## Values of the hooks", "In `rage_plugin.hookspecs`; all but the last are frozen."]
    for value in vars(hookspecs).values():
        if not isinstance(value, type) or value.__module__ != hookspecs.__name__:
            continue
        if hasattr(value, "__dataclass_fields__"):
            docs = _attribute_docs(Path(hookspecs.__file__), value.__name__)
            fields = value.__dataclass_fields__
            rows = [(f"`{n}`", f"`{f.type}`", docs.get(n, "")) for n, f in fields.items()]
            parts += [f"### {value.__name__}", prose(inspect.getdoc(value))]
            parts.append(table(("field", "type", "meaning"), rows))
    source = hookspecs.BacklogSource
    members = [
        (f"`{_signature(n, f)}`", prose(inspect.getdoc(f)))
        for n, f in vars(source).items()
        if inspect.isfunction(f)
    ]
    parts += ["### BacklogSource", prose(inspect.getdoc(source))]
    parts.append(table(("member", "meaning"), [("`name: str`", "What it is called."), *members]))
    return "\n\n".join(filter(None, parts))


def _attribute_docs(path: Path, name: str) -> dict[str, str]:
    """The strings that stand below the fields of a class."""
    body = next(
        node.body
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    found = {}
    for node, after in itertools.pairwise(body):
        text = after.value if isinstance(after, ast.Expr) else None
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and text:
            found[node.target.id] = prose(ast.literal_eval(text))
    return found
