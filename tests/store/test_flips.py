"""Whatever happens to the files of a database is found by its audit, and the audit changes nothing.

`RAGE_FLIPS=5000` asks for more random flips than the 500 of every run of the tests.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rage_plugin.core.events import GENESIS, Event, Put, link
from rage_plugin.store import RunStore, open_store
from rage_plugin.store.heads import SEAL
from rage_plugin.store.inspection import AuditResult, inspect

from .ticks import approach, correction, evidence, failure, gate, observed, run_row, slice_, started

FLIPS = int(os.environ.get("RAGE_FLIPS", "500"))
CHUNKS = 4
"""Parts of a long test, so that they can run side by side."""
UNSEALED = (
    "the file is not as RAGE left it when it was last closed: the disk changed it, "
    "or another program wrote to it"
)


def work(store: RunStore, run: str, turns: int) -> None:
    """A run as it really grows: rows of every kind, tool output of some size, model calls."""
    chance = random.Random(run)
    workspace = f"/home/person/{run}"
    version = store.append(run, 0, [started(run, workspace, items=4)], 1.0)
    if run == "aa11":
        rows = (
            slice_("s1", "0", superseded=1),
            slice_("s2", "0"),
            gate("g1", "s1"),
            gate("g2", "s2"),
            failure("f1", "0", "AssertionError: 3 != 4", 3.0),
            correction(1, superseded_by="c2"),
            correction(2),
            approach("a1", "0", 2.0, None),
            Put("blockers", ("b1",), {"item": "0", "reason": "SPEC_DEVIATION", "at": 2.0}),
            Put("outbox", ("commit:0",), {"kind": "commit", "state": "intent", "at": 2.0}),
            Put("claims", (run, "0"), {"host": "h", "session": "s", "fence": 1, "at": 2.0}),
        )
        rows = tuple(Put(p.table, p.key, {**p.values, "run": run}) for p in rows)
        version = store.append(run, version, [Event("planned", "The plan holds", rows)], 2.0)
    for turn in range(turns):
        key, at = f"{run}-{turn:04}", 10.5 + turn
        output = "".join(chance.choices("abcdefghij \n", k=chance.randrange(200, 3_000)))
        row = evidence(run, key, chance.choice(["change", "judgement"]), "1", f"{turn:040x}")
        row = Put("evidence", (key,), {**row.values, "data": output})
        events = [Event("judged", "The checks of the item were run", (row,), (key,))]
        events += [Event("turn", f"Turn {turn} ended", data={"n": turn})] * (turn % 2)
        store.ledger.add(f"chat-{run}", "packet", at, run=run, bytes=400, tokens=100)
        store.observe(run, "1", "tool", {"name": "bash", "output": output[:300]}, at)
        version = store.append(run, version, events, at)
    store.ledger.add(f"chat-{run}", "call", 99.0, run=run, input_tokens=9)
    store.observe(run, "1", "tool", {"name": "read_file"}, 99.0)


def fill(folder: Path) -> RunStore:
    store = open_store(folder / "rage.db")
    for run, turns in (("aa11", 12), ("bb22", 8), ("cc33", 5)):
        work(store, run, turns)
    return store


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database that was closed in order: no log lies beside it."""
    folder = tmp_path_factory.mktemp("closed") / "rage"
    fill(folder).close()
    assert sorted(path.name for path in folder.iterdir()) == ["heads", "rage.db"]
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a process leaves it that is killed: much was copied back, the rest is a log."""
    first = tmp_path_factory.mktemp("first") / "rage"
    store = fill(first)
    store.close()
    store = open_store(first / "rage.db")
    work(store, "dd44", 6)
    folder = tmp_path_factory.mktemp("killed") / "rage"
    shutil.copytree(first, folder)
    store.close()
    assert (folder / "rage.db-wal").stat().st_size > 100_000
    return folder


@pytest.fixture
def again(tmp_path: Path) -> Callable[[Path], Path]:
    """The database of a fresh copy of a folder."""

    def copied(folder: Path) -> Path:
        target = tmp_path / "copy"
        shutil.rmtree(target, ignore_errors=True)
        return Path(shutil.copytree(folder, target)) / "rage.db"

    return copied


def content(path: Path) -> list[object] | None:
    """All that a plain connection reads: the schema and every row; None where it reads nothing."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            connection.text_factory = bytes
            schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
            found: list[object] = sorted(schema.fetchall())
            for name in [row[1] for row in found if row[0] == b"table"]:
                table = name.decode()
                found.append(connection.execute(f'SELECT rowid, * FROM "{table}"').fetchall())
            return found
    except (sqlite3.Error, UnicodeError):
        return None


def audited(path: Path, *asked: str) -> AuditResult:
    """An audit that raised nothing and left every byte as it was."""
    files = [file for file in (path, Path(f"{path}-wal")) if file.exists()]
    before = [file.read_bytes() for file in files]
    result = inspect(path, *asked)
    assert [file.read_bytes() for file in files] == before
    return result


def flip(file: Path, bit: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(bit // 8)
        (byte,) = opened.read(1)
        opened.seek(bit // 8)
        opened.write(bytes([byte ^ 1 << bit % 8]))


def bits(file: Path, seed: int, count: int) -> Iterator[int]:
    chance = random.Random(seed)
    return (chance.randrange(8 * file.stat().st_size) for _ in range(count))


@pytest.mark.parametrize("part", range(CHUNKS))
def test_every_flipped_bit_of_a_closed_database_is_found(
    closed: Path, again: Callable[[Path], Path], part: int
) -> None:
    """F048: in bytes that hold nothing by the seal alone, in all others also without it."""
    path = again(closed)
    whole, told = content(path), Counter[str]()
    assert audited(path).problems == ()
    for bit in bits(path, part, FLIPS // CHUNKS):
        flip(path, bit)
        problems = audited(path).problems
        assert problems, f"bit {bit}"
        if problems == (UNSEALED,):
            assert content(path) == whole, f"bit {bit}"
        told["by the seal alone" if problems == (UNSEALED,) else "found"] += 1
        flip(path, bit)
    print(dict(told))
    assert audited(path).problems == ()
    assert told["found"] > FLIPS // CHUNKS / 5


@pytest.mark.parametrize("part", range(CHUNKS))
def test_a_flipped_bit_of_the_log_is_found(
    killed: Path, again: Callable[[Path], Path], part: int
) -> None:
    """F048: SQLite ends its log where a check sum fails; what is cut off so is noted outside."""
    path = again(killed)
    log = Path(f"{path}-wal")
    whole, told = content(path), Counter[str]()
    assert audited(path).problems == ()
    for bit in bits(log, part, FLIPS // CHUNKS):
        flip(log, bit)
        found = bool(audited(path).problems)
        assert found or content(path) == whole, f"bit {bit}"
        told["found" if found else "in bytes that nobody reads"] += 1
        flip(log, bit)
    print(dict(told))
    assert told["in bytes that nobody reads"] < FLIPS // CHUNKS / 10


@pytest.mark.parametrize("name", ["rage.db", "rage.db-wal"])
def test_every_truncation_is_found(
    closed: Path, killed: Path, again: Callable[[Path], Path], name: str
) -> None:
    """F048: a hundred lengths of each file, of the file itself with and without a log."""
    chance = random.Random(name)
    for number in range(100):
        path = again(closed if name == "rage.db" and number % 2 else killed)
        file = path.parent / name
        whole = content(path)
        os.truncate(file, chance.randrange(file.stat().st_size))
        assert audited(path).problems or content(path) == whole, file.stat().st_size
        if name == "rage.db":
            assert audited(path).problems, file.stat().st_size


def test_a_missing_log_is_found(killed: Path, again: Callable[[Path], Path]) -> None:
    path = again(killed)
    Path(f"{path}-wal").unlink()
    assert "dd44" in " ".join(audited(path).problems)


def test_a_missing_log_with_nothing_but_notes_in_it_is_found(
    closed: Path, tmp_path: Path, again: Callable[[Path], Path]
) -> None:
    """Rows that no sync acknowledged are missed too, unless a power cut may have taken them."""
    store = open_store(again(closed))
    store.observe("aa11", "1", "tool", {}, 1.0)
    store.ledger.add("chat", "packet", 1.0, bytes=1)
    path = Path(shutil.copytree(store.db.path.parent, tmp_path / "killed")) / "rage.db"
    store.close()
    assert audited(path).problems == ()
    Path(f"{path}-wal").unlink()
    told = " ".join(audited(path).problems)
    assert "ledger: row" in told
    assert "observations: row" in told
    for note in (path.parent / "heads").glob("+*"):
        line = note.read_bytes().split(b" ")
        head = b" ".join([*line[:2], b"0" * 36, b""])
        note.write_bytes(head + b"%08x\n" % zlib.crc32(head))
    result = audited(path)
    assert result.problems == ()
    assert "a power cut may lose" in " ".join(result.notes)


def test_a_missing_index_of_the_log_is_no_fault(
    killed: Path, again: Callable[[Path], Path]
) -> None:
    path = again(killed)
    Path(f"{path}-shm").unlink()
    assert audited(path).problems == ()


def test_an_older_copy_of_the_database_is_found(
    closed: Path, killed: Path, again: Callable[[Path], Path]
) -> None:
    """F048: sound in itself; also after the run went on from there, further than it had been."""
    path = again(killed)
    for part in path.parent.glob("rage.db*"):
        part.unlink()
    shutil.copyfile(closed / "rage.db", path)
    assert "dd44" in " ".join(audited(path).problems)

    path = again(closed)
    store = open_store(path)
    version = store.run("cc33").version
    store.append("cc33", version, [Event("turn", "Forgotten")], 50.0)
    store.close()
    shutil.copyfile(closed / "rage.db", path)
    assert "cc33: event" in " ".join(audited(path).problems)
    store = open_store(path)
    for number in range(version, version + 3):
        store.append("cc33", number, [Event("turn", "Instead")], 51.0)
    store.close()
    assert "cc33: event" in " ".join(audited(path).problems)


def test_a_copy_of_the_whole_folder_is_sound_and_the_head_of_a_report_tells_its_age(
    closed: Path, again: Callable[[Path], Path]
) -> None:
    path = again(closed)
    store = open_store(path)
    store.append("cc33", store.run("cc33").version, [Event("turn", "Last")], 50.0)
    head = store.head("cc33")
    store.close()
    assert audited(path, "cc33", head).problems == ()
    older = again(closed)
    assert audited(older).problems == ()
    assert "no log holds the head" in audited(older, "cc33", head).problems[0]
    assert "no log holds the head" in audited(older, None, head).problems[0]


def test_a_head_of_an_earlier_report_proves_what_was_there_then(
    closed: Path, again: Callable[[Path], Path]
) -> None:
    path = again(closed)
    store = open_store(path)
    earlier = store.events("cc33")[2].hash
    store.close()
    result = audited(path, "cc33", earlier)
    assert result.problems == ()
    assert "went on for" in result.notes[0]
    assert audited(path, "bb22", earlier).problems


def forge(path: Path, *statements: str) -> sqlite3.Connection:
    """Somebody with the same user id, who cleans up behind himself."""
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    triggers = triggers.fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    relink(connection)
    for _, sql in triggers:
        connection.execute(sql)
    return connection


def relink(connection: sqlite3.Connection) -> None:
    """Number and chain every event anew."""
    runs = [row[0] for row in connection.execute("SELECT DISTINCT run FROM events")]
    for run in runs:
        rows = connection.execute(
            "SELECT rowid, version, at, kind, body FROM events WHERE run = ? ORDER BY seq", (run,)
        ).fetchall()
        previous = GENESIS
        for seq, (rowid, version, at, kind, body) in enumerate(rows, start=1):
            digest = link(previous, run, seq, at, kind, body, version)
            connection.execute(
                "UPDATE events SET seq = ?, prev = ?, hash = ? WHERE rowid = ?",
                (seq, previous, digest, rowid),
            )
            previous = digest


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE events SET body = replace(body, 'ended', 'began') WHERE run = 'aa11'"],
        ["DELETE FROM events WHERE run = 'cc33' AND seq = (SELECT max(seq) FROM events WHERE run = 'cc33')",
         "DELETE FROM evidence WHERE id = 'cc33-0004'", "UPDATE runs SET version = version - 1 WHERE id = 'cc33'"],
        ["UPDATE events SET version = version + 1 WHERE run = 'bb22' AND seq > 5",
         "UPDATE runs SET version = version + 1 WHERE id = 'bb22'"],
        ["UPDATE events SET seq = 1000 WHERE run = 'bb22' AND seq = 3",
         "UPDATE events SET seq = 3 WHERE run = 'bb22' AND seq = 4",
         "UPDATE events SET seq = 4 WHERE run = 'bb22' AND seq = 1000"],
    ],
    ids=["rewrite", "dropped tail", "versions", "swapped"],
)  # fmt: skip
def test_a_log_that_was_chained_anew_is_found_by_the_note_and_by_the_head(
    closed: Path, again: Callable[[Path], Path], statements: list[str]
) -> None:
    """F048, F136: also by somebody who can compute hashes; the head from a report always tells."""
    path = again(closed)
    store = open_store(path)
    heads = {run: store.head(run) for run in ("aa11", "bb22", "cc33")}
    store.close()
    forge(path, *statements).close()
    assert "was acknowledged" in " ".join(audited(path).problems)
    shutil.rmtree(path.parent / "heads")
    found = [audited(path, run, head).problems for run, head in heads.items()]
    assert any("no log holds the head" in line for lines in found for line in lines)


def test_a_perfect_forgery_is_found_by_the_head_of_a_report_alone(
    closed: Path, again: Callable[[Path], Path]
) -> None:
    """The limit, and what stands against it: everything beside the database was forged as well."""
    path = again(closed)
    store = open_store(path)
    head = store.head("aa11")
    store.close()
    forge(
        path, "UPDATE events SET body = replace(body, 'ended', 'began') WHERE run = 'aa11'"
    ).close()
    shutil.rmtree(path.parent / "heads")
    result = audited(path)
    assert result.problems == ()
    assert "no head is noted" in result.notes[0]
    assert "no log holds the head" in audited(path, "aa11", head).problems[0]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DROP TRIGGER events_no_update", "trigger events_no_update is missing"),
        ("CREATE TRIGGER t AFTER INSERT ON items BEGIN SELECT 1; END", "trigger t is not one of"),
        ("DROP INDEX runs_one_active", "index runs_one_active is missing"),
        ("CREATE TABLE more (a)", "table more is not one of RAGE's"),
        ("DROP VIEW v_runs", "view v_runs is missing"),
        ("ALTER TABLE items ADD COLUMN more", "table items is not as RAGE made it"),
        ("PRAGMA user_version = 1", "not one of RAGE's"),
        ("PRAGMA user_version = 77", "the schema's version is 77"),
        ("PRAGMA application_id = 5", "application id is 5"),
        ("PRAGMA journal_mode = DELETE", "journal mode is delete"),
        ("UPDATE _sqlite_migrations SET name = 'x' WHERE id = 1", "migrations names"),
        ("UPDATE _sqlite_migrations SET applied_at = 'x'", "cannot be read"),
        ("INSERT INTO failures (id, run, item, signature, message, at) VALUES ('x', 'zz', '0', '', '', 1)",
         "belongs to a row of runs that is not there"),
        ("UPDATE evidence SET rowid = 1000 WHERE rowid = 1", "another order"),
        ("UPDATE evidence SET data = CAST(data AS BLOB) WHERE rowid = 3", "data is b'"),
        ("UPDATE items SET tokens = 0.5 WHERE id = '1'", "tokens is 0.5"),
        ("UPDATE items SET title = CAST(X'ff' AS TEXT)", "title is"),
        ("UPDATE observations SET data = '{}' WHERE id = 3", "observation 3 was altered"),
        ("UPDATE observations SET digest = '' WHERE id = 3", "observation 3 was altered"),
        ("UPDATE observations SET digest = '' WHERE id < 9", "observation 9 was altered"),
        ("DELETE FROM observations WHERE id = 3", "rows are gone"),
        ("DELETE FROM observations WHERE id > 9", "observations: row"),
        ("DELETE FROM runs WHERE id = 'cc33'", "there is no run cc33"),
    ],
)  # fmt: skip
def test_every_other_change_is_named(
    closed: Path, again: Callable[[Path], Path], statement: str, problem: str
) -> None:
    path = again(closed)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    problems = audited(path).problems
    assert problem in " | ".join(problems)
    assert UNSEALED in problems


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE ledger SET bytes = 1 WHERE rowid = 2", "ledger of session chat-aa11: row 2 was altered"),
        ("DELETE FROM ledger WHERE session = 'chat-bb22'", "rows are gone"),
        ("DELETE FROM ledger WHERE session = 'chat-cc33'", "ledger: row"),
        ("UPDATE events SET body = CAST(X'7bff' AS TEXT) WHERE rowid = 3", "event 3 was altered"),
        ("UPDATE events SET body = CAST(body AS BLOB) WHERE rowid = 3", "event 3 was altered"),
        ("UPDATE events SET at = 'x' WHERE rowid = 3", "event 3 was altered"),
        ("UPDATE events SET seq = 'x' WHERE rowid = 3", "event 3 is missing"),
        ("UPDATE events SET version = 4 WHERE run = 'bb22' AND seq = 4", "event 4 was altered"),
        ("UPDATE events SET run = 'aa12' WHERE run = 'aa11'", "there is no run aa12"),
        ("UPDATE events SET kind = X'00' WHERE rowid = 3", "event 3 was altered"),
        ("DELETE FROM events WHERE run = 'cc33'", "run cc33"),
    ],
)  # fmt: skip
def test_every_change_behind_the_triggers_is_named(
    closed: Path, again: Callable[[Path], Path], statement: str, problem: str
) -> None:
    """Values of another type and bytes that are no text are problems and not exceptions."""
    path = again(closed)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in ("events", "ledger"):
            for verb in ("update", "delete"):
                connection.execute(f"DROP TRIGGER {table}_no_{verb}")
        connection.execute(statement)
    assert problem in " | ".join(audited(path).problems)


def test_notes_that_cannot_be_read_are_no_problem(
    closed: Path, again: Callable[[Path], Path]
) -> None:
    """A power cut may leave them empty, torn or full of zeros."""
    path = again(closed)
    heads = path.parent / "heads"
    (heads / "aa11").write_bytes(b"")
    (heads / "bb22").write_bytes(bytes(132))
    flip(heads / "cc33", 300)
    (heads / SEAL).write_bytes((heads / SEAL).read_bytes()[:70])
    result = audited(path)
    assert result.problems == ()
    assert sum("cannot be read" in note for note in result.notes) == 4
    store = open_store(path)
    for run in ("aa11", "bb22", "cc33"):
        store.append(run, store.run(run).version, [Event("turn", "On")], 99.0)
    store.close()
    result = audited(path)
    assert (result.problems, result.notes) == ((), ())


def test_a_run_that_is_gone_without_a_trace_is_found(
    closed: Path, again: Callable[[Path], Path]
) -> None:
    path = again(closed)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER events_no_delete")
        for table in ("evidence", "items", "events"):
            connection.execute(f"DELETE FROM {table} WHERE run = 'cc33'")
        connection.execute("DELETE FROM runs WHERE id = 'cc33'")
    assert "was acknowledged (heads/cc33) and is not there" in " ".join(audited(path).problems)


def test_files_that_are_no_database(closed: Path, again: Callable[[Path], Path]) -> None:
    path = again(closed)
    path.write_bytes(b"not a database, whatever its name says\n" * 200)
    assert "file is not a database" in audited(path).problems[0]
    path.write_bytes(b"")
    assert "is empty" in audited(path).problems[0]
    path.unlink()
    assert "is not there" in audited(path).problems[0]
    path = again(closed)
    Path(f"{path}-journal").write_bytes(b"")
    assert "SQLite would write it over the database" in audited(path).problems[0]


READ_ONLY = """
import os, sys
from pathlib import Path
from rage_plugin.store import schema
from rage_plugin.store.inspection import inspect
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
result = inspect(Path(sys.argv[1]))
print(result.problems, result.runs)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not write")
def test_a_folder_that_may_only_be_read(killed: Path) -> None:
    """SQLite wants to write an index of the log beside it: then a copy is looked at."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "rage"
        shutil.copytree(killed, folder)
        (folder / "rage.db-shm").unlink()
        Path(name).chmod(0o755)
        folder.chmod(0o555)
        there = sorted(path.name for path in folder.iterdir())
        child = subprocess.run(
            [sys.executable, "-c", READ_ONLY, folder / "rage.db"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.stdout == "() 4\n", child.stderr
        assert sorted(path.name for path in folder.iterdir()) == there


def test_an_odd_name_of_a_run_gets_a_note_of_its_own(tmp_path: Path) -> None:
    """F048: names that a file system would not keep apart, or take as a path."""
    store = open_store(tmp_path / "büro #1?" / "rage.db")
    names = ["a", "A", "../a", "a/b", "+seal", "ä", "\udcff", "x" * 300]
    for number, name in enumerate(names):
        row = Put("runs", (name,), run_row(f"/{number}"))
        if name != "\udcff":
            store.append(name, 0, [Event("run_started", "", (row,))], 1.0)
    store.observe("a", "", "tool", {}, 1.0)
    assert store.audit().problems == ()
    assert len(store.heads.names()) == len(names)
    store.close()
    result = audited(tmp_path / "büro #1?" / "rage.db")
    assert (result.problems, result.notes, result.runs) == ((), (), len(names) - 1)


def test_an_audit_of_a_run_that_goes_on_is_sound(tmp_path: Path) -> None:
    """The audit looks at one snapshot, and at the notes before it."""
    with closing(open_store(tmp_path / "rage.db")) as store:
        store.append("r1", 0, [started()], 1.0)
        for number in range(1, 60):
            store.observe("r1", "0", "tool", {}, 1.0)
            store.append("r1", number, [observed(f"e{number}")], 2.0)
            if number % 10 == 0:
                result = store.audit("r1", store.head("r1"))
                assert result.problems == ()
                assert (result.events, result.head) == (number + 1, store.head("r1"))


def test_a_folder_that_is_gone_or_closed_troubles_no_writer(tmp_path: Path) -> None:
    """What is noted beside the database never keeps a step from being taken."""
    store = open_store(tmp_path / "rage.db")
    store.append("r1", 0, [started()], 1.0)
    shutil.rmtree(tmp_path / "heads")
    (tmp_path / "heads").write_text("in the way")
    assert store.append("r1", 1, [observed("e1")], 2.0) == 2
    store.observe("r1", "0", "tool", {}, 1.0)
    store.close()
    result = audited(tmp_path / "rage.db")
    assert result.problems == ()
    assert "no head is noted" in " ".join(result.notes)
