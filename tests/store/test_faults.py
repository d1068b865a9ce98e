"""What goes wrong outside: each is one clear line, and what was there stays as it was."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rage_plugin.core.errors import RageError
from rage_plugin.core.events import Event
from rage_plugin.store import RunStore, db, open_store
from rage_plugin.store.db import SCHEMA_VERSION, Db

from .ticks import evidence, started


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(path: Path) -> str:
    """The one line with which opening or reading is refused; the file must not change."""
    before = digest(path)
    with pytest.raises(RageError) as caught:
        store = open_store(path)
        try:
            store.load("r1")
            store.append("r1", 1, [Event("turn", "One")], 2.0)
        finally:
            store.close()
    assert digest(path) == before
    assert caught.value.kept
    assert caught.value.next
    line = caught.value.line()
    assert "\n" not in line
    return line


@pytest.fixture
def filled(path: Path) -> Path:
    """A closed database with a run of some size."""
    store = open_store(path)
    store.append("r1", 0, [started(items=200)], 1.0)
    store.close()
    return path


def test_a_file_that_is_no_database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database, whatever its name says\n" * 200)
    assert "file is not a database" in refused(path)


@pytest.mark.parametrize("left", [100, 5_000, 20_000])
def test_a_truncated_database(filled: Path, left: int) -> None:
    os.truncate(filled, left)
    line = refused(filled)
    assert "cannot be used" in line
    assert "Next: mv " in line


def test_a_database_with_a_page_overwritten(filled: Path) -> None:
    with sqlite3.connect(filled) as connection:
        root = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'runs'"
        ).fetchone()[0]
    connection.close()
    with filled.open("r+b") as file:
        file.seek((root - 1) * 4_096)
        file.write(b"\xa5" * 4_096)
    assert "malformed" in refused(filled)


def test_a_flipped_bit_of_the_schema_format(filled: Path) -> None:
    """Damage that SQLite gives no code of its own is told like any other."""
    data = bytearray(filled.read_bytes())
    data[47] ^= 0x40
    filled.write_bytes(bytes(data))
    assert "cannot be used" in refused(filled)


def test_a_database_cut_to_nothing_beside_its_log(path: Path) -> None:
    """SQLite would throw the log away; acknowledged steps may be in it."""
    store = open_store(path)
    store.append("r1", 0, [started()], 1.0)
    log = Path(f"{path}-wal")
    kept = log.read_bytes()
    store.close()
    path.write_bytes(b"")
    log.write_bytes(kept)
    with pytest.raises(RageError, match="it is empty and its write-ahead log is not"):
        open_store(path)
    assert log.read_bytes() == kept


def test_a_database_cut_to_nothing_that_held_a_run(filled: Path) -> None:
    """Nobody begins anew over the history of runs that are noted beside it."""
    filled.write_bytes(b"")
    Path(f"{filled}-wal").unlink(missing_ok=True)
    assert "logs that it held are noted" in refused(filled)


def test_a_database_of_somebody_else(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    assert "it holds bookmarks and is not a RAGE database" in refused(path)


def test_a_database_of_a_newer_schema(filled: Path) -> None:
    with sqlite3.connect(filled) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    line = refused(filled)
    assert f"written by a newer RAGE (schema 99, this one knows {SCHEMA_VERSION})" in line
    assert "pip install --upgrade rage-plugin" in line


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "rage").write_text("in the way")
    with pytest.raises(RageError, match="Cannot open or write"):
        open_store(tmp_path / "rage" / "rage.db")
    assert (tmp_path / "rage").read_text() == "in the way"


READ_ONLY = """
import os, sys
from pathlib import Path
from rage_plugin.core.errors import RageError
from rage_plugin.store import open_store, schema
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for name in sys.argv[1:]:
    try:
        store = open_store(Path(name))
        store.observe("r1", "0", "tool", {}, 1.0)
    except RageError as error:
        print(error.line())
    else:
        print("opened")
"""


def test_a_read_only_folder() -> None:
    """Root may write anywhere, so the child gives up root first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("empty", "full"):
            (folder / part).mkdir()
        store = open_store(folder / "full" / "rage.db")
        store.append("r1", 0, [started()], 1.0)
        store.close()
        before = digest(folder / "full" / "rage.db")
        for part in ("empty", "full"):
            (folder / part).chmod(0o555)
        (folder / "full" / "rage.db").chmod(0o444)
        places = [
            folder / "empty" / "rage.db",
            folder / "empty/new/rage.db",
            folder / "full/rage.db",
        ]
        child = subprocess.run(
            [sys.executable, "-c", READ_ONLY, *places], capture_output=True, text=True, check=True
        )
        lines = child.stdout.splitlines()
        assert len(lines) == 3
        assert all(line.startswith("Cannot open or write ") for line in lines), lines
        assert list((folder / "empty").iterdir()) == []
        assert digest(folder / "full" / "rage.db") == before
        for part in ("empty", "full"):
            (folder / part).chmod(0o755)


def grow(store: RunStore) -> None:
    version = store.load("r1").run.version
    for number in range(version, version + 500):
        put = evidence("r1", f"e{number}", "change", tree="t" * 2_000)
        store.append("r1", number, [Event("seen", "Seen", (put,))], 1.0)


def test_a_database_that_may_not_grow(store: RunStore, path: Path) -> None:
    """The step that did not fit is gone as a whole; after more room the run goes on."""
    store.append("r1", 0, [started()], 1.0)
    pages = store.db._durable().execute("PRAGMA page_count").fetchone()[0]
    store.db._durable().execute(f"PRAGMA max_page_count = {pages + 20}")
    with pytest.raises(RageError) as caught:
        grow(store)
    assert "The disk refused a write" in caught.value.line()
    assert "rage resume" in caught.value.line()
    kept = store.load("r1").run.version
    assert kept == len({e.version for e in store.events("r1")})
    assert store.verify_chain("r1") == []
    assert store.rebuild("r1") == []
    store.db._durable().execute("PRAGMA max_page_count = 1000000")
    assert store.append("r1", kept, [Event("turn", "Goes on")], 2.0) == kept + 1


FULL_DISK = """
import resource, sys
from pathlib import Path
from rage_plugin.core.errors import RageError
from rage_plugin.core.events import Event
from rage_plugin.store import open_store
store = open_store(Path(sys.argv[1]))
version = store.load("r1").run.version
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    while True:
        version = store.append("r1", version, [Event("turn", "x" * 3000)], 1.0)
except RageError as error:
    print(version)
    print(error.line())
"""


def test_the_kernel_refuses_the_write(filled: Path) -> None:
    """A real failing write, by a limit on the size of files: what was acknowledged is kept."""
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, filled], capture_output=True, text=True, check=True
    )
    version, line = child.stdout.splitlines()
    assert line.startswith("The disk refused a write")
    store = open_store(filled)
    assert store.load("r1").run.version == int(version) > 10
    assert store.verify_chain("r1") == []
    assert store.rebuild("r1") == []
    store.close()


def test_a_lock_that_is_never_released_is_one_line_after_bounded_tries(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUSY never surfaces as such: waits are bounded and differ by the jitter handed in."""
    monkeypatch.setattr(db, "BUSY_SECONDS", 0.01)
    slept: list[float] = []
    jitter = iter([0.0, 0.5, 1.0, 0.0, 0.5])
    store = RunStore(Db(filled, sleep=slept.append, jitter=lambda: next(jitter)))
    other = sqlite3.connect(filled, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RageError, match="Another process kept") as caught:
        store.append("r1", 1, [Event("turn", "Ours")], 2.0)
    assert "Nothing was written" in caught.value.line()
    assert slept == pytest.approx([0.025, 0.1, 0.225, 0.1, 0.25])
    assert store.load("r1").run.version == 1, "readers are not kept out"
    other.execute("ROLLBACK")
    other.close()
    assert store.append("r1", 1, [Event("turn", "Ours")], 2.0) == 2
    store.close()


def test_a_lock_that_is_released_in_between_is_never_seen(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "BUSY_SECONDS", 0.01)
    other = sqlite3.connect(filled, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = RunStore(Db(filled, sleep=lambda _: other.in_transaction and other.execute("ROLLBACK")))
    assert store.append("r1", 1, [Event("turn", "Ours")], 2.0) == 2
    other.close()
    store.close()
