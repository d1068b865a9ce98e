"""A workspace in memory: files, commits, checks and processes, behind the ports of `core/ports.py`.

It stands in for git, for check processes, for the backlog's files and for the table of processes,
which have tests of their own with real ones. What it keeps survives a `kill -9`, as they would. A
check's result is a fact of the files (`quality`), so that the model knows the truth and can tell a
false completion from a real one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from rage_plugin.bootstrap import Workspace
from rage_plugin.core.config import CheckCommand, Limits, ProjectConfig
from rage_plugin.core.errors import RageError, Refused
from rage_plugin.core.judgement import Judgement, JudgeRequest, Origin, Verdict
from rage_plugin.core.model import Base, Change, Item, ItemSpec, RunState, Verification
from rage_plugin.core.ports import Progress
from rage_plugin.parts import Parts
from rage_plugin.store import RunStore
from rage_plugin.store.db import Db
from rage_plugin.telemetry import Accounting

T = TypeVar("T")
FOLDER, REPOSITORY, BRANCH = "/w", "/w/.git", "rage/work"
LIMITS = Limits(item_tokens=1_500, run_tokens=4_000, max_iterations=6, run_iterations=20)


class Killed(BaseException):
    """`kill -9`: nothing of the process runs any more, no `except Exception` either."""


class FastDb(Db):
    """No sync (power loss is tested elsewhere), and a place for a kill around a commit."""

    at: Callable[[str], None] = staticmethod(lambda place: None)

    def _connect(self, synchronous: str) -> sqlite3.Connection:
        connection = super()._connect("OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self.at("write:before")
        result = super().write(work)
        self.at("write:after")
        return result


@dataclass(frozen=True)
class Made:
    """A commit: its files, and the trailers by which it is found again."""

    id: str
    parent: str
    files: Mapping[str, str]
    run: str = ""
    item: str = ""
    status: str = ""


def name_of(files: Mapping[str, str]) -> str:
    """A tree's hash: of its content, so that going back gives the tree that was."""
    return hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()[:10]


def code_of(item: str) -> str:
    """The one file that solves an item; items do not touch each other's, so reverts do not clash."""
    return f"src/{item}.py"


def source_of(item: str) -> str:
    return f"backlog/{item}.md"


@dataclass
class World:
    """Everything outside of RAGE's own state."""

    files: dict[str, str] = field(default_factory=lambda: {"src/start.py": "x"})
    """Path → content. An item's code file says how its checks turn out, e.g. `green 7`."""
    trees: dict[str, dict[str, str]] = field(default_factory=dict)
    commits: dict[str, Made] = field(default_factory=dict)
    head: str = "c0"
    branch: str = BRANCH
    judged: list[tuple[str, str, str]] = field(default_factory=list)
    """(item, tree, quality), in the order of the checks."""
    briefs: int = 0
    reverts: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    wall: float = 1_000_000.0
    passed: float = 0.0
    dies_at: str = ""
    """The place at which the running process is killed, e.g. `commit:after`; empty: it lives."""
    meanwhile: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What somebody else does while the running process is at a place; once."""
    specs: dict[str, ItemSpec] = field(default_factory=dict)
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        self.commits["c0"] = Made("c0", "", dict(self.files))

    # --- what the process table and the clock say ---

    def at(self, place: str) -> None:
        """The running process has come to a place."""
        if (act := self.meanwhile.pop(place, None)) is not None:
            dies, self.dies_at = self.dies_at, ""  # somebody else acts, and lives
            act()
            self.dies_at = dies
        if self.dies_at == place:
            self.dies_at = ""
            raise Killed(place)

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.passed

    # --- what a person and an agent do to files ---

    def add_item(self, spec: ItemSpec) -> None:
        """A backlog file is written and committed by a person."""
        self.specs[spec.id] = spec
        self.files[source_of(spec.id)] = "v0"
        head = self.commits[self.head]
        self._commit({**head.files, source_of(spec.id): "v0"})

    def tree(self) -> str:
        name = name_of(self.files)
        self.trees.setdefault(name, dict(self.files))
        return name

    def dirty(self) -> bool:
        return self.files != dict(self.commits[self.head].files)

    def tidy(self) -> None:
        """A person throws away what is not committed."""
        self.files = dict(self.commits[self.head].files)

    def quality(self, tree: str, item: str) -> str:
        """What checks say about an item in a tree: green, red, unverified, blocked."""
        return self.trees[tree].get(code_of(item), "red").split()[0]

    def spec(self, item: str) -> ItemSpec:
        """The item as its file tells it now: an edited file has another criterion."""
        found, version = self.specs[item], self.files.get(source_of(item), "v0")
        extra = () if version == "v0" else (f"criterion {version}",)
        return replace(found, criteria=(*found.criteria, *extra))

    def _commit(self, files: Mapping[str, str], **told: str) -> str:
        made = Made(f"c{len(self.commits)}", self.head, dict(files), **told)
        self.commits[made.id] = made
        self.head = made.id
        return made.id

    def of_item(self, run: str, item: str) -> list[Made]:
        """Commits with an item's trailers: more than one is an effect that took place twice."""
        return [c for c in self.commits.values() if (c.run, c.item) == (run, item)]


class Backlog:
    """Targets and items from memory."""

    def __init__(self, world: World) -> None:
        self._world = world

    def resolve(self, target: str) -> Sequence[ItemSpec]:
        if target not in self._world.targets:
            raise Refused(f"There is no item {target}")
        return [self._world.spec(i) for i in self._world.targets[target]]

    def title(self, target: str) -> str:
        return f"Target {target}"


class Verifier:
    """Trees and checks over the world's files."""

    def __init__(self, world: World) -> None:
        self._world = world

    def preflight(self) -> None:
        pass

    def commands(self) -> Sequence[CheckCommand]:
        return [CheckCommand("tests", ("check",))]

    def check_targets(self, targets: Sequence[str]) -> None:
        pass

    def open(self, run: str) -> Base:
        return Base(self._world.tree(), self._world.head)

    def snapshot(self, base: Base) -> str:
        return self._world.tree()

    def changes(self, tree: str, other: str) -> Sequence[Change]:
        old, new = self._world.trees[tree], self._world.trees[other]
        status = {(False, True): "A", (True, False): "D"}
        return [
            Change(status.get((p in old, p in new), "M"), p)
            for p in sorted({*old, *new})
            if old.get(p) != new.get(p)
        ]

    def added(self, tree: str, other: str) -> str:
        old, new = self._world.trees[tree], self._world.trees[other]
        return "\n".join(text for p, text in sorted(new.items()) if old.get(p) != text)

    def size(self, tree: str, other: str) -> tuple[int, int]:
        count = len(self.changes(tree, other))
        return count, 3 * count

    def judge(self, request: JudgeRequest, progress: Progress) -> Judgement:
        world, base, tree = self._world, request.base.tree, request.tree
        quality = world.quality(tree, request.item)
        paths = {c.path for c in self.changes(base, tree)}
        sealed = paths & set(request.sealed) - set(request.unseal)
        if sealed:
            quality = "tampered"
        elif tree == base:
            quality = "unverified" if request.claim_no_change else "unchanged"
        world.judged.append((request.item, tree, quality))
        world.at("judge")
        message = f"{quality}: {world.trees[tree].get(code_of(request.item), '')[:80]}"
        if quality == "green":
            return Judgement(
                Verification.PASS, Verdict.PASS, base, tree, message, Origin.GIVEN, ("t",)
            )
        if quality == "unverified":
            return Judgement(
                Verification.UNVERIFIED, Verdict.PARTIAL, base, tree, message, reasons=(message,)
            )
        verdict = Verdict.COULD_NOT_RUN if quality == "blocked" else Verdict.FAIL
        blocked = quality == "blocked"
        return Judgement(
            Verification.FAIL, verdict, base, tree, message, reasons=(message,), blocked=blocked
        )

    def cosmetic(self, tree: str, other: str) -> bool:
        return False

    def restore(self, base: Base, tree: str) -> Sequence[str]:
        world = self._world
        world.at("restore:before")
        old, new, left = world.trees[base.tree], world.trees[tree], []
        for change in self.changes(base.tree, tree):
            if world.files.get(change.path) != new.get(change.path):
                if world.files.get(change.path) != old.get(change.path):
                    left.append(change.path)
            elif change.path in old:
                world.files[change.path] = old[change.path]
            else:
                del world.files[change.path]
        world.at("restore:after")
        return left


class Deliver:
    """Commits, found by run and item before one is made."""

    def __init__(self, world: World) -> None:
        self._world = world

    def branch(self) -> str:
        return self._world.branch

    def head(self) -> str:
        return self._world.head

    def snapshot(self, run: str) -> str:
        if self._world.dirty():
            self._world._commit(self._world.files)
        return ""

    def preflight(self, snapshot: bool) -> str:
        if self._world.dirty() and not snapshot:
            raise Refused("Tracked files are modified", next="git stash")
        return ""

    def begin(self, run: str, target: str, title: str) -> str:
        return self._world.branch

    def pin(self, run: str, base: Base) -> None:
        pass

    def holds(self, run: str, item: str, commit: str) -> bool:
        at: str = self._world.head
        while at and at != commit:
            at = self._world.commits[at].parent
        return bool(at)

    def commit(
        self, run: str, item: Item, base: Base, tree: str, evidence: str, status: str
    ) -> str:
        world = self._world
        world.at("commit:before")
        for found in world.of_item(run, item.id):
            if name_of(found.files) == tree:
                return found.id
        if world.head != base.commit or name_of(world.commits[world.head].files) != base.tree:
            raise RageError("HEAD moved while the item was worked on")
        made = world._commit(world.trees[tree], run=run, item=item.id, status=status)
        world.at("commit:after")
        return made

    def keep(self, run: str, item: str, tree: str) -> str:
        self._world.at("keep:before")
        return f"refs/rage/{run}/{item}"

    def revert(self, run: str, item: str, commit: str) -> str:
        world = self._world
        made = world.commits[commit]
        before = world.commits[made.parent].files
        for other in world.commits.values():
            if other.item == f"-{item}" and other.run == run:
                return other.id
        files, now = dict(world.commits[world.head].files), world.files
        for path in {*made.files, *before}:
            if made.files.get(path) == before.get(path):
                continue
            if now.get(path) != made.files.get(path):
                raise RageError(f"{path} changed since: the commit cannot be taken back")
            for place in (files, now):
                place.pop(path, None)
                if path in before:
                    place[path] = before[path]
        world.reverts.append(commit)
        told = world._commit(files, run=run, item=f"-{item}", status="reverted")
        world.at("revert:after")
        return told

    def made(self, commit: str) -> tuple[str, str]:
        made = self._world.commits[commit]
        name = name_of(made.files)
        self._world.trees.setdefault(name, dict(made.files))
        return made.parent, name


class Packets:
    """What is shown names the run, the item and every directive that holds."""

    def __init__(self, world: World) -> None:
        self._world = world

    def packet(self, state: RunState, instruction: str) -> str:
        return "\n".join(["PACKET", state.run.id, *state.directives])

    def brief(self, state: RunState, spec: ItemSpec, pointers: Sequence[str]) -> str:
        self._world.briefs += 1
        return f"BRIEF {spec.id}"


class Survey:
    """Nothing of note."""

    def review(self, item: str, gates: Sequence[str]) -> dict[str, object]:
        return {"head": "h"}

    def pointers(self) -> Sequence[str]:
        return ()


def compose(world: World, database: Path) -> Workspace:
    """The rooms of one process: everything from memory, and the real store on a real file."""
    db = FastDb(database)
    db.at = world.at
    store = RunStore(db)
    parts = Parts(
        workspace=REPOSITORY,
        root=FOLDER,
        config=ProjectConfig(limits=world.limits),
        store=store,
        backlog=Backlog(world),
        verifier=Verifier(world),
        deliver=Deliver(world),
        packets=Packets(world),
        survey=Survey(),
        clock=world,
        sink=lambda state, event: None,
    )
    accounting = Accounting(store.ledger, lambda text: len(text) // 4, exact=False)
    return Workspace(parts, store, accounting, database.parent)
