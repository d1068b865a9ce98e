"""The built-in sink: one JSON line for each thing that a run tells, for scripts and dashboards.

Separate because it is an extension: registered through pluggy exactly like a third party's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from rage_plugin.hookspecs import hookimpl

FILE = "events.jsonl"
"""In the folder that the run names as `state_folder`."""

# An item is done once and a run ends once. A run may pause twice for the same reason.
_ONCE = frozenset({"item_done", "run_done", "run_stopped"})


class JsonlSink:
    """Appends what a run tells to a file; `OSError` where that cannot be written."""

    def __init__(self, file: str = FILE) -> None:
        self.file = file

    @hookimpl
    def rage_sink(self, run: Mapping[str, object], event: str) -> None:
        """Append one line; what happens once is not written again when told twice (F112)."""
        folder = run.get("state_folder")
        if not isinstance(folder, str) or not folder:
            return
        body = {"event": event, **run}
        text = json.dumps(body, ensure_ascii=False, sort_keys=True, default=str)
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        path = Path(folder) / self.file
        with FileLock(f"{path}.lock"), path.open("a+b") as file:
            if event in _ONCE and _holds(path, key):
                return
            line = json.dumps({"key": key, **body}, default=str).encode("ascii") + b"\n"
            # A line that a kill cut short is closed, so that this one stands alone.
            file.write((b"\n" if _cut_short(path) else b"") + line)


def _holds(path: Path, key: str) -> bool:
    mark = f'{{"key": "{key}"'.encode("ascii")
    with path.open("rb") as lines:
        return any(line.startswith(mark) and line.endswith(b"}\n") for line in lines)


def _cut_short(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, 2) == 0:
            return False
        file.seek(-1, 2)
        return file.read(1) != b"\n"
