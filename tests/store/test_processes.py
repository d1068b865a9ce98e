"""Real processes: killed at random points, and many of them on one database.

`RAGE_PROCESSES` says how many make up the crowd: 50 unless it is set.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from rage_plugin.store import open_store
from rage_plugin.store.inspection import inspect

from .ticks import run_row, started

APPENDER = """
import os, sys
from pathlib import Path
from rage_plugin.core.events import Event, Put
from rage_plugin.store import db, open_store
db.WAL_LIMIT = 100_000
store = open_store(Path(sys.argv[1]))
store.db._checkpoint_at = db.WAL_LIMIT
version = store.load("r1").run.version
os.write(1, b"%d\\n" % version)
while True:
    row = {"item": "0", "kind": "change", "tree": "t", "data": "x" * 1500, "at": 1.0}
    key = f"e{version}"
    puts = (Put("evidence", (key,), row), Put("runs", ("r1",), {"iteration": version}))
    both = [Event("seen", "Seen", puts, (key,)), Event("turn", "Turn")]
    version = store.append("r1", version, both, float(version))
    os.write(1, b"%d\\n" % version)
    store.observe("r1", "0", "tool", {"name": "read_file"}, 1.0)
"""


def test_no_acknowledged_step_is_lost_to_kill_9(path: Path) -> None:
    """F007: killed at random moments, each time on what the last one left behind.

    At every place, one by one, in `test_kill_points.py`.
    """
    store = open_store(path)
    store.append("r1", 0, [started()], 0.0)
    store.close()
    chance = random.Random(20)
    total = 0
    for _ in range(12):
        child = subprocess.Popen([sys.executable, "-c", APPENDER, path], stdout=subprocess.PIPE)
        assert child.stdout is not None
        lines = b"".join(child.stdout.readline() for _ in range(chance.randrange(1, 12)))
        time.sleep(chance.uniform(0.0, 0.02))
        child.send_signal(signal.SIGKILL)
        told = (lines + child.stdout.read()).split(b"\n")
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        # A number is acknowledged once its whole line was written.
        acknowledged = int(told[-2])
        store = open_store(path)
        kept = store.load("r1").run
        assert acknowledged <= kept.version <= acknowledged + 1
        assert kept.iteration == kept.version - 1
        assert len(store.events("r1")) == 2 * kept.version - 1, "half a tick was kept"
        assert store.verify_chain("r1", store.head("r1")) == []
        total = kept.version
        store.close()
    assert total > 40, "the children hardly got to write"
    store = open_store(path)
    assert store.rebuild("r1") == []
    store.close()
    assert list(inspect(path).problems) == []


CROWD = """
import os, sys
from pathlib import Path
from rage_plugin.core.errors import StaleWrite
from rage_plugin.core.events import Event, Put
from rage_plugin.store import db, open_store

path, processes, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
db.WAL_LIMIT = 200_000

def work(name):
    store = open_store(path)
    os.read(gate, 1)  # at its end: everybody begins at once
    done = 0
    while done < steps:
        state = store.load("r1")
        free = next((i.id for i in state.items.values() if i.state == "PENDING"), None)
        puts = [Put("runs", ("r1",), {"iteration": state.run.iteration + 1})]
        if free is not None:
            claim = {"host": "h", "session": name, "fence": 1, "at": 1.0}
            puts += [Put("items", ("r1", free), {"state": "CLAIMED", "reason": name})]
            puts += [Put("claims", ("r1", free), claim)]
        try:
            store.append("r1", state.run.version, [Event("turn", name, tuple(puts))], 1.0)
        except StaleWrite:
            continue
        done += 1
        store.observe("r1", "0", "tool", {"by": name}, 1.0)
        store.ledger.add("shared", "packet", 1.0, run="r1", bytes=1, tokens=1)
        if free is not None:
            os.write(1, f"{name} {free}\\n".encode())
    store.close()

gate, opened = os.pipe()
for number in range(processes):
    if os.fork() == 0:
        os.close(opened)
        code = 1
        try:
            work(f"p{number}")
            code = 0
        except BaseException as error:
            os.write(2, f"p{number}: {error!r}\\n".encode())
        finally:
            os._exit(code)
os.close(opened)
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(processes)]
sys.exit(any(codes))
"""


def test_many_processes_step_and_claim_on_one_database(path: Path) -> None:
    """F094: 0 BUSY surfaced, 0 lost updates, 0 double claims.

    The processes are forks of one that has imported everything and opened nothing.
    """
    processes, steps = int(os.environ.get("RAGE_PROCESSES", "50")), 20
    store = open_store(path)
    items = processes * 2
    store.append("r1", 0, [started(items=items)], 0.0)
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", CROWD, path, str(processes), str(steps)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    claims = [line.split() for line in done.stdout.splitlines()]
    assert sorted((item for _, item in claims), key=int) == [str(n) for n in range(items)]
    store = open_store(path)
    state = store.load("r1")
    assert state.run.iteration == processes * steps
    assert state.run.version == processes * steps + 1
    assert all(state.items[item].reason == name for name, item in claims)
    assert len(store.observations("r1", 10_000)) == processes * steps
    assert len(store.ledger.rows()) == processes * steps
    assert store.ledger.verify("shared") == []
    assert store.verify_chain("r1", store.head("r1")) == []
    assert store.rebuild("r1") == []
    store.close()
    assert list(inspect(path).problems) == []


STARTER = """
import sys
from pathlib import Path
from rage_plugin.core.errors import Refused
from rage_plugin.core.events import Event, Put
from rage_plugin.store import open_store
import json
store = open_store(Path(sys.argv[1]))
sys.stdin.readline()
event = Event("run_started", "", (Put("runs", (sys.argv[2],), json.loads(sys.argv[3])),))
try:
    store.append(sys.argv[2], 0, [event], 1.0)
except Refused as error:
    print("refused", error.what)
else:
    print("started")
"""


def test_of_many_starts_at_once_one_wins_and_the_others_name_it(path: Path) -> None:
    """Law 10: one active run a workspace, whoever asks at the same moment."""
    open_store(path).close()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, path, f"r{number}", json.dumps(run_row())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    told = [child.communicate()[0].strip() for child in children]
    winner = [number for number, line in enumerate(told) if line == "started"]
    assert len(winner) == 1, told
    others = [line for line in told if line != "started"]
    assert all(line.startswith(f"refused Run r{winner[0]} on #5 is active") for line in others)
    store = open_store(path)
    assert [run.id for run in store.runs("/w")] == [f"r{winner[0]}"]
    store.close()
