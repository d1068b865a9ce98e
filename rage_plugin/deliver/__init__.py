"""Git effects of a run: preflight, the run's branch, commits of exactly what was checked, sinks."""

from __future__ import annotations

from .room import DeliverRoom
from .sinks import JsonlSink

__all__ = ["DeliverRoom", "JsonlSink"]
