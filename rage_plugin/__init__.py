"""RAGE (Review → Analyze → Generate → Execute): the public API, loaded only when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .core.errors import RageError, Refused
    from .core.model import ItemSpec
    from .holder import tool_mark
    from .hookspecs import (
        Allow,
        BacklogSource,
        Block,
        Continue,
        ExtensionSpec,
        Hold,
        HostSpec,
        ModelRequest,
        Reply,
        Session,
        Stop,
        ToolCall,
        ToolOutcome,
        Turn,
        Usage,
        hookimpl,
    )
    from .plugin import RagePlugin

__version__ = "0.1.0"

__all__ = [
    "Allow",
    "BacklogSource",
    "Block",
    "Continue",
    "ExtensionSpec",
    "Hold",
    "HostSpec",
    "ItemSpec",
    "ModelRequest",
    "RageError",
    "RagePlugin",
    "Refused",
    "Reply",
    "Session",
    "Stop",
    "ToolCall",
    "ToolOutcome",
    "Turn",
    "Usage",
    "hookimpl",
    "tool_mark",
]


_HOME = {
    "RagePlugin": "plugin",
    "RageError": "core.errors",
    "Refused": "core.errors",
    "ItemSpec": "core.model",
    "tool_mark": "holder",
}
"""Names that are not in `hookspecs`, and their modules."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f".{_HOME.get(name, 'hookspecs')}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
