"""The power is cut at any moment: nothing that was acknowledged is lost, nothing half is kept.

100 crash images; `RAGE_POWER_LOSS=1000` makes as many as it says.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from benchmarks.rehearsal import RUN
from rage_plugin.core.errors import RageError
from rage_plugin.store import RunStore, db, heads, open_store

from .crash_images import Entry, Mark, Recorder, Synced, image, notes
from .file_calls import Call, watched
from .script import Step, problems, record, version_of

IMAGES = int(os.environ.get("RAGE_POWER_LOSS", "100"))
WAL_LIMITS = (400_000, 200_000, 100_000, 4 << 20)
"""Of each recording: the log is copied back seldom, often, after each step, only at the end."""
NEXT_BOOT = "b" * 36


@pytest.fixture(autouse=True)
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that starts over is cut."""
    limit = db._PRAGMAS.replace(f"journal_size_limit = {(4 << 20) // 4}", "journal_size_limit = 9")
    assert limit != db._PRAGMAS
    monkeypatch.setattr(db, "_PRAGMAS", limit)


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    return record(tmp_path_factory.mktemp("script"))


def recorded(path: Path, steps: Sequence[Step], chance: random.Random) -> list[Entry]:
    """Two writers take turns with the steps and note what they see; one comes and goes."""
    recorder, noted = Recorder(path.parent / "heads"), 0

    def note(store: RunStore) -> None:
        nonlocal noted
        if noted % 2:
            store.ledger.add("s", "packet", 1.0, run=RUN, tokens=noted)
        else:
            store.observe(RUN, "1", "tool", {"number": noted, "text": "x" * 700}, 1.0)
        noted += 1
        recorder.mark("noted", noted)

    with watched(recorder):
        stores = [open_store(path), open_store(path)]
        for version, step in enumerate(steps):
            store = chance.choice(stores)
            for _ in range(chance.randrange(4)):
                note(chance.choice(stores))
            recorder.mark("begun", version + 1)
            store.append(RUN, version, step.events, step.at)
            recorder.mark("acknowledged", version + 1)
            if chance.random() < 0.2:
                for each in stores if chance.random() < 0.5 else stores[:1]:
                    each.close()
                stores = [open_store(path) if not s.db._open else s for s in stores]
        for store in stores:
            store.close()
    return recorder.log


def moment(log: Sequence[Entry], chance: random.Random) -> int:
    """A moment to cut the power: any, or one of those in which most can be lost."""
    kinds: list[list[int]] = [[], [], [], []]
    for number, entry in enumerate(log, 1):
        match entry:
            case Mark("acknowledged") | Synced():
                kinds[0].append(number)
            case Call("write", path) if path.endswith(".db"):
                kinds[1].append(number)
            case Call("create" | "delete" | "truncate"):
                kinds[2].append(number)
        kinds[3].append(number)
    return min(len(log), chance.choice(chance.choice(kinds)) + chance.randrange(3))


def lost(folder: Path, log: Sequence[Entry], cut: int, steps: Sequence[Step]) -> list[str]:
    """What is wrong with the database of an image: it is opened, read, and gone on with."""
    told = [(entry.kind, entry.number) for entry in log[:cut] if isinstance(entry, Mark)]
    last = dict(told)
    acknowledged = last.get("acknowledged", 0)
    before = told[: told.index(("begun", acknowledged))] if acknowledged else []
    safe_notes = sum(kind == "noted" for kind, _ in before)
    try:
        store = open_store(folder / "rage.db")
    except RageError as error:
        return [f"it does not open: {error.line()}"]
    try:
        version = version_of(store)
        found = problems(store, steps)
        if not acknowledged <= version <= last.get("begun", 0):
            found.append(f"it is at {version}, and {acknowledged} steps were acknowledged")
        seen = [int(str(o["data"]["number"])) for o in store.observations(RUN, 10_000)]  # type: ignore[index]
        notes = sorted([*seen, *(entry.tokens for entry in store.ledger.rows())])
        if notes != list(range(len(notes))) or store.ledger.verify("s"):
            found.append(f"the notes are not the first ones: {notes}")
        if not safe_notes <= len(notes) <= last.get("noted", 0) + 1:
            found.append(f"{len(notes)} notes are there, {safe_notes} came before a step")
        if version < len(steps) and not found:
            store.append(RUN, version, steps[version].events, steps[version].at)
            found += problems(store, steps)
    except RageError as error:
        found = [f"it cannot be used: {error.line()}"]
    finally:
        store.close()
    return found


def images(
    folder: Path, steps: Sequence[Step], recording: int, count: int
) -> list[tuple[int, list[str]]]:
    """The number of each image in which something is wrong, and what."""
    with mock.patch.object(db, "WAL_LIMIT", WAL_LIMITS[recording]):
        log = recorded(folder / "real" / "rage.db", steps, random.Random(recording))
    found = []
    for number in range(count):
        chance = random.Random(f"{recording} {number}")
        cut, place = moment(log, chance), folder / f"image-{number}"
        place.mkdir()
        image(log, cut, chance, place)
        notes(log, cut, chance, place / "heads")
        with mock.patch.object(heads, "_boot", lambda: NEXT_BOOT):
            wrong = lost(place, log, cut, steps)
        if wrong:
            found.append((number, wrong))
    return found


@pytest.mark.parametrize("recording", range(len(WAL_LIMITS)))
def test_no_acknowledged_step_is_lost_to_a_power_cut(
    tmp_path: Path, steps: list[Step], recording: int
) -> None:
    """F007: torn, dropped and reordered writes; first opening, checkpoints, closing included.

    The audit finds nothing wrong either, whatever became of the heads that are noted beside.
    """
    assert images(tmp_path, steps, recording, -(-IMAGES // len(WAL_LIMITS))) == []


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_without_its_sync_a_step_is_lost(
    tmp_path: Path, steps: list[Step], monkeypatch: pytest.MonkeyPatch, synchronous: str
) -> None:
    """What shows that the images above can lose something."""
    connect = db.Db._connect
    monkeypatch.setattr(db.Db, "_connect", lambda self, _: connect(self, synchronous))
    found = images(tmp_path, steps, 3, 30)
    assert any("steps were acknowledged" in line for _, wrong in found for line in wrong)


class Everything(random.Random):
    """Loses nothing: of each choice the last, and every write."""

    def random(self) -> float:
        return 0.0

    def choice(self, options: Sequence[object]) -> object:  # type: ignore[override]
        return options[-1]


def test_what_is_recorded_is_what_was_written(tmp_path: Path, steps: list[Step]) -> None:
    """An image in which nothing is lost is the database as it lies there, byte for byte."""
    path = tmp_path / "real" / "rage.db"
    recorder = Recorder(path.parent / "heads")
    copies = []
    with watched(recorder):
        store = open_store(path)
        for version, step in enumerate(steps):
            store.append(RUN, version, step.events, step.at)
            store.observe(RUN, "1", "tool", {}, 1.0)
            there = {
                p.name: p.read_bytes() for p in path.parent.glob("rage.db*") if "-shm" not in p.name
            }
            copies.append((len(recorder.log), there))
        store.close()
    copies.append((len(recorder.log), {"rage.db": path.read_bytes()}))
    for number, (cut, there) in enumerate(copies):
        folder = tmp_path / str(number)
        folder.mkdir()
        image(recorder.log, cut, Everything(), folder)
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == there
