"""Records what SQLite writes, and makes of it what a disk may hold after the power was cut.

The model of the disk: what was written to a file before its last sync is there. Of each later write
every sector of 512 bytes may be there or not, in any order, and so may each truncation; where a file
grew and the data did not arrive there are zeros or anything at all. Names appear and vanish in
order, and are certain once the folder was synced. Nothing is left of shared memory.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from .file_calls import Call

SECTOR = 512


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that the writer knew at this moment, e.g. that a step was acknowledged."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Synced:
    """A sync that is over: what stood in the log before entry `covers` is safe."""

    path: str
    covers: int


@dataclass(frozen=True, slots=True)
class Beside:
    """What the small files beside the database hold, by name."""

    files: dict[str, bytes]


Entry = Call | Mark | Synced | Beside


@dataclass
class Recorder:
    """An observer that keeps the log; `beside` is the folder of the small files."""

    beside: Path
    log: list[Entry] = field(default_factory=list)
    _covers: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, bytes] = field(default_factory=dict)

    def before(self, call: Call) -> None:
        """A write counts from when it begins, a sync covers what began before it."""
        self._look()
        if call.kind == "sync":
            self._covers[call.path] = len(self.log)
        elif call.kind != "create":
            self.log.append(call)

    def after(self, call: Call) -> None:
        if call.kind == "sync":
            self.log.append(Synced(call.path, self._covers.pop(call.path)))
        elif call.kind == "create":
            self.log.append(call)

    def mark(self, kind: str, number: int) -> None:
        """What the writer knows from now on."""
        self._look()
        self.log.append(Mark(kind, number))

    def _look(self) -> None:
        paths = sorted(self.beside.iterdir()) if self.beside.is_dir() else []
        files = {path.name: path.read_bytes() for path in paths}
        if files != self._seen:
            self._seen = files
            self.log.append(Beside(files))


class _File:
    """One file between its creation and its deletion."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Call]] = []
        self.safe = 0

    def content(self, chance: random.Random) -> bytes:
        """What of it the disk may hold."""
        # From nothing of what was not synced to all of it: either is likely, and all between.
        kept = chance.choice((chance.random(), 0.0, 0.1, 0.5, 0.9, 1.0))
        filling = chance.choice((None, b"\0"))
        data = bytearray()
        for number, call in self.calls:
            safe = number < self.safe
            if call.kind == "truncate":
                if safe or chance.random() < kept:
                    del data[call.offset :]
                    data.extend(bytes(max(0, call.offset - len(data))))
            elif safe or chance.random() < kept:
                _put(data, call.offset, call.data, filling, chance)
            elif chance.random() < 0.5:
                for start, piece in _sectors(call):
                    if chance.random() < 0.5:
                        _put(data, start, piece, filling, chance)
        return bytes(data)


def _sectors(call: Call) -> list[tuple[int, bytes]]:
    """A write cut where the disk's sectors end."""
    start, end = call.offset, call.offset + len(call.data)
    cuts = [start, *range((start // SECTOR + 1) * SECTOR, end, SECTOR), end]
    return [(a, call.data[a - start : b - start]) for a, b in pairwise(cuts)]


def _put(
    data: bytearray, start: int, piece: bytes, filling: bytes | None, chance: random.Random
) -> None:
    if (missing := start - len(data)) > 0:
        data.extend(chance.randbytes(missing) if filling is None else filling * missing)
    data[start : start + len(piece)] = piece


def image(log: Sequence[Entry], cut: int, chance: random.Random, folder: Path) -> None:
    """Write into `folder` what may be left of the first `cut` entries of a log."""
    files: dict[str, _File] = {}
    names: list[dict[str, _File]] = [{}]
    """What the folder held, since it was synced last."""
    unsynced_names: set[str] = set()
    for number, entry in enumerate(log[:cut]):
        if isinstance(entry, Mark | Beside):
            continue
        if isinstance(entry, Synced):
            files[entry.path].safe = max(files[entry.path].safe, entry.covers)
            # The first sync of a journal or log syncs its folder too, so that it is found again.
            if entry.path in unsynced_names and not entry.path.endswith(".db"):
                unsynced_names.clear()
                names = names[-1:]
        elif entry.kind == "create":
            files[entry.path] = _File()
            unsynced_names.add(entry.path)
            names.append({**names[-1], entry.path: files[entry.path]})
        elif entry.kind == "delete":
            names.append({p: f for p, f in names[-1].items() if p != entry.path})
            if entry.folder:
                names = names[-1:]
        else:
            files[entry.path].calls.append((number, entry))
    for path, file in chance.choice(names).items():
        (folder / Path(path).name).write_bytes(file.content(chance))


def notes(log: Sequence[Entry], cut: int, chance: random.Random, folder: Path) -> None:
    """Write into `folder` what may be left of the small files; a deletion was synced."""
    held: dict[str, list[bytes]] = {}
    for entry in log[:cut]:
        if isinstance(entry, Beside):
            held = {n: [*held.get(n, [b""]), data] for n, data in entry.files.items()}
    folder.mkdir()
    for name, versions in held.items():
        version = chance.choice(versions)
        half = chance.random() < 0.2
        (folder / name).write_bytes(
            version[: chance.randrange(len(version) + 1)] if half else version
        )
