"""What a tick costs after 100,000 of them: time, bytes, and a load; in one run, on a real disk.

Run from the root of the repository:

    python -m benchmarks.ticks [--ticks 100000] [--items 100] [--folder FOLDER] [--json]

`--ticks 4000` is a matter of a minute. Store, loop and decisions are the product's own; see
`rehearsal.py` for what stands in.

Machines are noisy and disks more so. Hence: medians; a 4 KiB write with `fdatasync` on the same
disk, in turns with the ticks; and after the last window the same number of ticks on the full
database *in turns with* ticks on a new one, so that both meet the same noise. Figures to reach:
`full / new` of times and `last / first` of bytes within 1 ± 0.2, at most 1,536 bytes an event.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.rehearsal import RUN, Rehearsal
from rage_plugin.store import RunStore, open_store

EVERY = 5
"""Ticks between two samples of a load and of the disk."""


@dataclass
class Window:
    """Costs of some ticks in a row; medians, in milliseconds where they are times."""

    ticks: int
    events: int = 0
    size: int = 0
    """Bytes that the database has grown by, its log copied back before and after."""
    tick: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)

    @property
    def bytes_a_tick(self) -> float:
        return self.size / self.ticks

    @property
    def bytes_an_event(self) -> float:
        return self.size / self.events

    def figures(self) -> dict[str, float]:
        """What is printed."""
        found = {f"{name}_ms": _median(getattr(self, name)) for name in MEASURED}
        if self.events:
            found["bytes_a_tick"] = self.bytes_a_tick
            found["bytes_an_event"] = self.bytes_an_event
            found["events_a_tick"] = self.events / self.ticks
        return {name: round(value, 3) for name, value in found.items()}


MEASURED = ("tick", "cpu", "load", "disk")


class Measured:
    """A database with a rehearsal on it."""

    def __init__(self, folder: Path, items: int, turns: int) -> None:
        folder.mkdir(parents=True)
        self.path = folder / "rage.db"
        self.store: RunStore = open_store(self.path)
        self.rehearsal = Rehearsal(self.store, items, turns)
        self._reference = os.open(folder / "reference", os.O_RDWR | os.O_CREAT)
        self._writes = 0

    def window(self, ticks: int, every: int = EVERY) -> Window:
        """Measure the next ticks, sizes too; a load and the disk `every` so many, 0 is never."""
        window, size, events = Window(ticks), self.size(), self._events()
        for number in range(ticks):
            self.step(window, sample=bool(every) and number % every == 0)
        window.size, window.events = self.size() - size, self._events() - events
        return window

    def step(self, window: Window, *, sample: bool) -> None:
        """Measure one tick, and with `sample` a load and the disk by itself."""
        cpu = time.process_time()
        window.tick.append(_milliseconds(self.rehearsal.tick))
        window.cpu.append((time.process_time() - cpu) * 1000)
        if sample:
            window.load.append(_milliseconds(lambda: self.store.load(RUN)))
            window.disk.append(_milliseconds(self._sync))

    def size(self) -> int:
        """Bytes of the database with all of its log copied back."""
        if not self.store.db.checkpoint():
            raise RuntimeError("the log could not be copied back")
        return self.path.stat().st_size

    def close(self) -> None:
        """Close what is open."""
        self.store.close()
        os.close(self._reference)

    def _events(self) -> int:
        query = "SELECT max(seq) FROM events WHERE run = ?"
        return int(self.store.db.read(lambda c: c.execute(query, (RUN,)).fetchone()[0]))

    def _sync(self) -> None:
        os.pwrite(self._reference, os.urandom(4096), self._writes % 256 * 4096)
        self._writes += 1
        os.fdatasync(self._reference)


def measure(
    folder: Path, ticks: int, items: int, window: int, say: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """Run `ticks` ticks and what is compared with them; each window's figures, and ratios."""
    turns = ticks // items
    # Both databases hold as many items, since a load reads all of them.
    items += -(-window // turns)
    grown = Measured(folder / "grown", items, turns)
    first = grown.window(window)
    say(f"first {window:,} ticks: {_median(first.tick):.2f} ms")
    began = time.monotonic()
    for number in range(window, ticks - window):
        grown.rehearsal.tick()
        if number % 10_000 == 0:
            say(f"{number:,} ticks, {time.monotonic() - began:.0f} s")
    last = grown.window(window)
    say(f"last {window:,} ticks: {_median(last.tick):.2f} ms")
    fresh = Measured(folder / "new", items, turns)
    full, new = Window(window), Window(window)
    for number in range(window):
        sample = number % EVERY == 0
        for place, figures in ((grown, full), (fresh, new)):
            place.step(figures, sample=sample)
    grown.close()
    fresh.close()
    found = {
        name: w.figures()
        for name, w in (("first", first), ("last", last), ("full", full), ("new", new))
    }
    return {
        **found,
        "last / first": _ratios(found["last"], found["first"]),
        "full / new": _ratios(found["full"], found["new"]),
    }


def table(found: dict[str, dict[str, float]]) -> str:
    """The figures for a terminal; `full` and `new` are the windows that ran in turns."""
    columns = ("first", "last", "last / first", "full", "new", "full / new")
    lines = [f"{'':16}" + "".join(f"{column:>14}" for column in columns)]
    for name in found["first"]:
        cells = (f"{found[c][name]:,.3f}" if name in found[c] else "" for c in columns)
        lines.append(f"{name:16}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)


def _ratios(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: round(one[name] / other[name], 3) for name in one}


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a tick costs after very many of them.")
    parser.add_argument("--ticks", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--folder", help="where the databases are made; on a real disk")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    window = min(1_000, chosen.ticks // 4)

    def say(line: str) -> None:
        if not chosen.json:
            print(line, flush=True)

    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        found = measure(Path(folder), chosen.ticks, chosen.items, window, say)
    print(json.dumps(found) if chosen.json else table(found))


if __name__ == "__main__":
    main()
