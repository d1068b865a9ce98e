"""The embedded host: a small real agent host that registers RAGE as any other host would.

It is what `rage chat` and `rage run` start, and the example to read before writing an adapter.
Importing it loads nothing; the names below come in on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .host import Host
    from .models import Model, ModelError, ModelReply
    from .ui import Terminal, Ui

__all__ = ["Host", "Model", "ModelError", "ModelReply", "Terminal", "Ui"]

_HOME = {
    "Host": "host",
    "Model": "models",
    "ModelError": "models",
    "ModelReply": "models",
    "Terminal": "ui",
    "Ui": "ui",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f".{_HOME[name]}", __name__), name)
