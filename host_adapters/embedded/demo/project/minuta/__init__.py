"""Durations as people write them: `1h30m`, `45m`, `90s`."""

from .durations import format_duration, parse_duration, total

__all__ = ["format_duration", "parse_duration", "total"]
