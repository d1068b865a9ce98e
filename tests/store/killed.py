"""Kills a writer with SIGKILL at each place in turn, and has another process take up its work.

Run as a module by `test_kill_points.py`: everything is imported before a database is opened, so that
a process to kill is a fork and not an interpreter. Syncs cost nothing here, by memory or by leaving
them out: what a killed process wrote is with the kernel. `test_power_loss.py` cuts the power.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from benchmarks.rehearsal import RUN
from rage_plugin.store import RunStore, db, open_store

from .file_calls import Call, watched
from .script import Step, differences, problems, record, version_of

STRIDE = 5
"""Steps that a process takes; one of them finds the log long enough to be copied back."""


@dataclass
class Killer:
    """Counts calls, and kills its process before or after one of them."""

    place: int
    before_it: bool
    calls: Counter[str] = field(default_factory=Counter)

    def before(self, call: Call) -> None:
        self.calls[shown(call)] += 1
        self._here(call, before=True)

    def after(self, call: Call) -> None:
        self._here(call, before=False)

    def _here(self, call: Call, *, before: bool) -> None:
        if self.calls.total() == self.place and before is self.before_it:
            tell(shown(call))
            os.kill(os.getpid(), signal.SIGKILL)


def shown(call: Call) -> str:
    """What a call does to which file, e.g. `sync wal`."""
    return f"{call.kind} {call.path.rpartition('rage.db')[2].removeprefix('-') or 'db'}"


def tell(what: object) -> None:
    """A line of JSON to whoever listens; a number that was told is an acknowledged step."""
    os.write(1, json.dumps(what).encode() + b"\n")


def forked(work: Callable[[], object]) -> tuple[int, list[object]]:
    """Do the work in a process of its own; its exit status and what it told."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(written, 1)
            work()
            code = 0
        finally:
            os._exit(code)
    os.close(written)
    with os.fdopen(read, "rb") as told:
        lines = told.read().splitlines()
    return os.waitpid(child, 0)[1], [json.loads(line) for line in lines]


def take(
    store: RunStore, steps: Sequence[Step], until: int, say: Callable[[object], None] = tell
) -> None:
    """Take the steps that are missing; each is told once it is recorded."""
    for version in range(version_of(store), until):
        step = steps[version]
        store.observe(RUN, "1", "tool", {"before": version, "text": "x" * 300}, 1.0)
        say(store.append(RUN, version, step.events, step.at))


def stages(folder: Path, steps: Sequence[Step]) -> dict[int, Path]:
    """The database's folder before some steps, as a process leaves it that is killed there."""
    live, copies = folder / "live", {0: folder / "before-0"}
    copies[0].mkdir()

    def work() -> None:
        store = open_store(live / "rage.db")
        for version in range(STRIDE, len(steps) - 1, STRIDE):
            take(store, steps, version)
            copies[version] = folder / f"before-{version}"
            shutil.copytree(live, copies[version])
            tell([version, str(copies[version])])

    status, told = forked(work)
    assert status == 0
    return copies | {line[0]: Path(line[1]) for line in told if isinstance(line, list)}


def killed(path: Path, steps: Sequence[Step], first: int, killer: Killer) -> None:
    """Open, take some steps, and after the last of all close; killed somewhere on the way."""
    last = first + STRIDE if first + STRIDE < len(steps) - 1 else len(steps)
    with watched(killer, sync=False):
        store = open_store(path)
        take(store, steps, last)
        if last == len(steps):
            store.close()
    tell(killer.calls)


def point(stage: Path, steps: Sequence[Step], first: int, killer: Killer) -> dict[str, object]:
    """Kill at one place of some steps, then take up what is left; without it, count the places."""
    with tempfile.TemporaryDirectory(dir=stage.parent) as name:
        path = Path(name) / "rage" / "rage.db"
        shutil.copytree(stage, path.parent)
        status, told = forked(lambda: killed(path, steps, first, killer))
        if status == 0:
            return {"calls": told[-1]}
        assert status == signal.SIGKILL, status
        *acknowledged, where = told
        # An audit takes longer than all the rest, so not each time for a page among pages.
        look = differences if killer.place % 10 and str(where).startswith("write") else problems
        store = open_store(path)
        found, wrong = version_of(store), look(store, steps)
        take(store, steps, len(steps), lambda version: None)
        end, later = version_of(store), look(store, steps)
        store.close()
        return {
            "where": where,
            "acknowledged": acknowledged[-1] if acknowledged else first,
            "found": found,
            "end": end,
            "wrong": wrong + later,
        }


def main(shard: int, shards: int) -> None:
    """Kill at every place of this shard; one JSON object a line."""
    db.WAL_LIMIT = 300_000
    db._PRAGMAS = db._PRAGMAS.replace(f"size_limit = {(4 << 20) // 4}", "size_limit = 9")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        folder = Path(name)
        steps = record(folder)
        before = stages(folder, steps)
        gc.freeze()
        for first, stage in before.items():
            for place in count(shard + 1, shards):
                result = point(stage, steps, first, Killer(place, before_it=True))
                print(json.dumps(result), flush=True)
                if "calls" in result:
                    break
                # After a write is before the next call; a sync, and what is no write, ends more.
                if not str(result["where"]).startswith("write"):
                    result = point(stage, steps, first, Killer(place, before_it=False))
                    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
