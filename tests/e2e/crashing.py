"""Kills a real `rage run` at each commit of its database and around each git command that writes.

Run as a module by `test_crash_points.py`: everything is imported once, so that a run to kill and the
run that takes it up are two forks and not two interpreters.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import host_adapters.embedded
import host_adapters.embedded.oneshot  # noqa: F401
import rage_plugin.active
import rage_plugin.profile_models  # noqa: F401
from rage_plugin import cli
from rage_plugin.repository import Repository
from rage_plugin.store import RunStore, open_store
from rage_plugin.store.db import Db
from rage_plugin.store.inspection import inspect

from .project import ENVIRONMENT, Project, reply, shell

ROOT, ITEMS = "my parts ü", ("5", "6", "7")
PARTS = 4
"""Turns an item: what it leaves is judged each time, and passes the last time."""
WRITERS = frozenset({"update-ref", "unpack-objects", "commit-tree", "hook"})
"""After each but `update-ref` nothing comes before the next one."""
ITEM = """---
id: {item}
title: Part {item} is missing
gates:
  - gates/{item}.sh
---
- [ ] the file holds a line for each of its parts
"""
GATE = 'lines=$(cat "parts/{item}.txt" | wc -l)\ntest "$lines" -ge {parts}\n'
CHECK = 'for gate in "$@"; do\n  sh "$gate" || exit 1\ndone\n'
WORK = """for item in {items}; do
  if ! sh "gates/$item.sh"; then
    mkdir -p parts && echo line >> "parts/$item.txt"
    exit 0
  fi
done
"""
PROFILE = """limits: {max_iterations: 60, max_fix_attempts: 60}
verification: {commands: [{name: lines, command: [sh, check.sh, "{targets}"]}]}
"""


def project(folder: Path) -> None:
    """Three items of several turns each, and an agent that goes on from what the files hold."""
    files = {f"backlog/{item}-part.md": ITEM.format(item=item) for item in ITEMS}
    files |= {f"gates/{item}.sh": GATE.format(item=item, parts=PARTS) for item in ITEMS}
    files |= {"check.sh": CHECK, "work.sh": WORK.format(items=" ".join(ITEMS))}
    files |= {"rage.yaml": PROFILE, "README.md": "# parts\n"}
    made = Project(folder / ROOT, folder / "home", files)
    made.script([reply("", shell("sh work.sh")), reply("Done.")] * 100)


def opened(folder: Path) -> Project:
    """A copy of the project; making one begins a repository."""
    made = Project.__new__(Project)
    made.root, made.home = folder / ROOT, folder / "home"
    return made


@dataclass
class Killer:
    """Counts places, and kills its process at one of them; 0 is nowhere."""

    place: int = 0
    places: list[str] = field(default_factory=list)

    def here(self, what: str) -> None:
        self.places.append(what)
        if len(self.places) == self.place:
            os.kill(os.getpid(), signal.SIGKILL)


def tell(file: int, what: object) -> None:
    """A line of JSON to whoever listens."""
    os.write(file, json.dumps(what).encode() + b"\n")


def rage_run(made: Project, told: int, killer: Killer) -> None:
    """`rage run backlog` in this process, killed at the place; steps are told as acknowledged."""
    append, write, spawn = RunStore.append, Db.write, Repository._spawn

    def appended(self: RunStore, run: str, *args: Any) -> int:
        version = append(self, run, *args)
        tell(told, {"run": run, "version": version, "head": self.head(run)})
        return version

    def wrote(self: Db, work: Callable[[Any], Any]) -> Any:
        killer.here("before a commit of the database")
        result = write(self, work)
        killer.here("after a commit of the database")
        return result

    def spawned(self: Repository, args: list[str], *rest: Any, **more: Any) -> Any:
        verb = next(word for n, word in enumerate(args) if "-c" not in (word, args[n - 1]))
        if verb in WRITERS:
            killer.here(f"before git {verb}")
        result = spawn(self, args, *rest, **more)
        if verb == "update-ref":
            killer.here(f"after git {verb}")
        return result

    os.chdir(made.root)
    os.environ.clear()
    os.environ.update(ENVIRONMENT, HOME=str(made.home), XDG_STATE_HOME=str(made.home / "state"))
    script = f"script:{made.home / 'script.json'}"
    sys.argv = ["rage", "run", "backlog", "--model", script, "--json"]
    out = os.open(made.home / "out.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    err = os.open(made.home / "err.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(err, 2)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    with (
        mock.patch.object(RunStore, "append", appended),
        mock.patch.object(Db, "write", wrote),
        mock.patch.object(Repository, "_spawn", spawned),
    ):
        try:
            cli.main()
        except SystemExit as end:
            sys.stdout.flush()
            tell(told, {"code": end.code, "places": killer.places})


def forked(work: Callable[[int], None]) -> tuple[int, list[dict[str, Any]]]:
    """Do the work in a process of its own; its exit code (negative: a signal) and what it told."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            work(written)
            code = 0
        finally:
            os._exit(code)
    os.close(written)
    with os.fdopen(read, "rb") as told:
        lines = told.read().splitlines()
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status), [json.loads(line) for line in lines]


def killed(blank: Path, folder: Path, place: int) -> dict[str, Any]:
    """Kill a run at a place, take it up with the same command, and tell what became of it."""
    shutil.copytree(blank, folder, symlinks=True)
    made = opened(folder)
    status, told = forked(lambda told: rage_run(made, told, Killer(place)))
    assert status == -signal.SIGKILL, (status, told)
    database = made.root / ".git" / "rage" / "rage.db"
    wrong = list(inspect(database).problems) if told else []
    again, told_again = forked(lambda told: rage_run(made, told, Killer()))
    store = open_store(database)
    result = json.loads((made.home / "out.json").read_text() or "null")
    run = told[-1]["run"] if told else result["run"]
    hashes, known = [event.hash for event in store.events(run)], store.run(run)
    store.close()
    trailers = "%H%x09%(trailers:key=Rage-Item,valueonly,separator=)%x09"
    trailers += "%(trailers:key=Rage-Run,valueonly,separator=)%x09"
    trailers += "%(trailers:key=Rage-Status,valueonly,separator=)"
    log = made.git("log", "--reverse", f"--format={trailers}", "main..HEAD")
    return {
        "place": place,
        "run": run,
        "status": known.status if known else None,
        "acknowledged": told[-1] if told else None,
        "wrong": [*wrong, *inspect(database).problems],
        "exit": [again, told_again[-1].get("code")],
        "result": result,
        "hashes": hashes,
        "commits": [line.split("\t") for line in log.splitlines()],
        "dirty": made.git("status", "--porcelain"),
        "parts": [path.read_text() for path in sorted(made.root.glob("parts/*.txt"))],
        "said": (made.home / "err.txt").read_text()[-2000:],
    }


def main(shard: int, shards: int, everything: bool) -> None:
    """Kill at the chosen places of this shard; one JSON object a line, the places first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder / "blank")
        shutil.copytree(folder / "blank", folder / "whole")
        made = opened(folder / "whole")
        status, told = forked(lambda told: rage_run(made, told, Killer()))
        assert (status, told[-1]["code"]) == (0, 0), (made.home / "err.txt").read_text()
        places = told[-1]["places"]
        tell(1, {"places": places, "steps": len(told) - 1})
        for place in chosen(places, everything)[shard::shards]:
            tell(1, killed(folder / "blank", folder / str(place), place))


def chosen(places: Sequence[str], everything: bool) -> list[int]:
    """All places, or those around the second item's commit and every twelfth of the others."""
    if everything:
        return list(range(1, len(places) + 1))
    begin = [n for n, what in enumerate(places, 1) if what == "before git unpack-objects"][1]
    around = range(begin - 1, begin + 9)
    return sorted({*around, *range(1, len(places) + 1, 12)})


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "all")
