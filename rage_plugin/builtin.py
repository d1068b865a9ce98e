"""RAGE's own sources, report parsers and sinks, registered exactly as a third party's are."""

from __future__ import annotations

import pluggy

from .backlog import MarkdownPlugin
from .deliver import JsonlSink
from .verify import JUnitPlugin


def register(manager: pluggy.PluginManager) -> None:
    """Register every built-in extension; a distribution does the same by an entry point."""
    for plugin in (MarkdownPlugin(), JUnitPlugin(), JsonlSink()):
        manager.register(plugin)
