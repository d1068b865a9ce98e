"""RAGE (Review → Analyze → Generate → Execute): the public API, loaded only when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .core.errors import RageError
    from .hookspecs import (
        Allow,
        Block,
        Continue,
        ExtensionSpec,
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
    "Block",
    "Continue",
    "ExtensionSpec",
    "HostSpec",
    "ModelRequest",
    "RageError",
    "RagePlugin",
    "Reply",
    "Session",
    "Stop",
    "ToolCall",
    "ToolOutcome",
    "Turn",
    "Usage",
    "hookimpl",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "RagePlugin":
        from .plugin import RagePlugin  # noqa: PLC0415

        return RagePlugin
    if name == "RageError":
        from .core.errors import RageError  # noqa: PLC0415

        return RageError
    from . import hookspecs  # noqa: PLC0415

    return getattr(hookspecs, name)


def __dir__() -> list[str]:
    return sorted(__all__)
