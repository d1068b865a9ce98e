"""A wish: a `start` or `resume` typed in a shell, for the chat that is bound to the workspace.

A shell has no agent. The wish lies in a file until the next message of a chat takes it up; it is
void once any other command changed a run, or after `LASTS_S`, so that it never surprises anybody.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from .flag import lower_flag, raise_flag

LASTS_S = 3600.0
"""Seconds after which a wish is forgotten."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed, when, and on which run (empty for a `start`)."""

    text: str
    run: str
    at: float

    def age(self) -> str:
        """How long ago it was typed, for a person."""
        minutes = max(0, round((time.time() - self.at) / 60))
        return f"{minutes} minute{'s' * (minutes != 1)} ago"


def make(state: Path, text: str, run: str = "") -> None:
    """Record a wish in a workspace's state folder; it replaces the one before."""
    (state / "wish.json").write_text(json.dumps(asdict(Wish(text, run, time.time()))), "utf-8")
    raise_flag(_name(state))


def take(state: Path) -> Wish | None:
    """The wish of a workspace, once; None when there is none or it is too old."""
    path = state / "wish.json"
    try:
        raw = json.loads(path.read_text("utf-8"))
        wish = Wish(str(raw["text"]), str(raw["run"]), float(raw["at"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        wish = None
    void(state)
    return wish if wish is not None and 0 <= time.time() - wish.at <= LASTS_S else None


def void(state: Path) -> None:
    """Forget a wish: something else happened since."""
    path = state / "wish.json"
    if path.exists():
        path.unlink(missing_ok=True)
        lower_flag(_name(state))


def _name(state: Path) -> str:
    return "wish-" + hashlib.sha256(os.fsencode(state)).hexdigest()[:12]
