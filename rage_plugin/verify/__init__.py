"""Trees and checks: what the work tree holds, and what a command says about a tree of it."""

from __future__ import annotations

from .reports import JUnitReports as JUnitPlugin
from .room import VerifyRoom

__all__ = ["JUnitPlugin", "VerifyRoom"]
