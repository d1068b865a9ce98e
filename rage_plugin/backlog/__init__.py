"""The backlog: where items are read from, what they say, and which of them a target stands for."""

from .markdown import MarkdownPlugin, MarkdownSource
from .room import BacklogRoom

__all__ = ["BacklogRoom", "MarkdownPlugin", "MarkdownSource"]
