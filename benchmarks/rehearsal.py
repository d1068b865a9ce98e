"""A run whose git, checks and backlog are values: a tick costs what deciding and storing cost.

The intake, the loop, the decision, the events and the store are the product's own; what stands in
here answers at once and in the sizes that the real rooms answer in. Apart from `ticks.py`, which
measures it, since tests replay the same run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import count

from rage_plugin import intake, loop
from rage_plugin.commands import Command
from rage_plugin.core.config import CheckCommand, Limits, ProjectConfig
from rage_plugin.core.judgement import CheckRecord, Judgement, JudgeRequest, Origin, Verdict
from rage_plugin.core.model import Base, Change, Item, ItemSpec, RunState, Verification
from rage_plugin.core.ports import Progress
from rage_plugin.hookspecs import Session, Turn
from rage_plugin.parts import Parts
from rage_plugin.store import RunStore

RUN, BRANCH = "453f8f32", "rage/sums-are-wrong"
ENDLESS = Limits(
    max_iterations=None,
    run_iterations=None,
    item_tokens=None,
    run_tokens=None,
    wall_seconds=None,
    max_fix_attempts=1 << 40,
    noop_turns=1 << 40,
    token_multiple=None,
    scope_multiple=None,
)
ROOT, GATE = "/home/somebody/projects/sums", "tests/test_sums.py::test_add"
CELLS = ("target", "base", "red", "regression", "green")
WORDS = (
    "parser",
    "reader",
    "writer",
    "index",
    "cache",
    "lock",
    "queue",
    "report",
    "totals",
    "date",
)


def digest(*parts: object) -> str:
    """40 hexadecimal digits, as git names things."""
    return hashlib.sha1(repr(parts).encode(), usedforsecurity=False).hexdigest()


def spell(number: int) -> str:
    """A number as words: figures are taken out of an error before it is compared."""
    return " ".join(WORDS[int(figure)] for figure in str(number))


class Rehearsal:
    """Drives one run, a turn at a time, on a real store.

    Two turns of three leave a change that fails; each error comes twice, so approaches are retired.
    The third leaves none. An item's last turn passes: it is committed, and the next item begins.
    """

    def __init__(self, store: RunStore, items: int, turns: int) -> None:
        """Start the run: `items` items of `turns` turns each."""
        self._store, self._turns, self._done = store, turns, 0
        self._git = _Git()
        self._room = _Rooms(items, self._git)
        self._parts = Parts(
            workspace=f"{ROOT}/.git",
            root=ROOT,
            config=ProjectConfig(limits=ENDLESS),
            store=store,
            backlog=self._room,
            verifier=self._room,
            deliver=self._git,
            packets=self._room,
            survey=self._room,
            clock=self._room,
            sink=lambda state, event: None,
        )
        session = Session("embedded", "6f1d0c6e8a4b4f7f9f0f5f0e3c1d2b3a", "/home/somebody")
        command = Command("start", "backlog")
        holder = "v2:3abda07c2c59:69c18213-5667-4bae-83f3-e10f0ca886d8:4026531836:4387:1580216"
        started = intake.start(self._parts, session, command, RUN, holder)
        self._lease = loop.Lease.of(started.state.run)

    def tick(self) -> RunState:
        """One turn of the agent, and the tick that follows it."""
        number, self._done = self._done, self._done + 1
        last = self._done % self._turns == 0
        room, text = self._room, f"The {spell(number)} is handled now; the tests should pass."
        room.turn(number, changed=last or number % 3 < 2, green=last)
        if number % 3 == 0:
            line = {"slice": f"Handle {spell(number)}", "gate": "tests/test_sums.py"}
            text = f"{text}\nRAGE {json.dumps({**line, 'scope': ['src', 'tests']})}"
        ended = loop.Ended(Turn(text), tokens=2_345, elapsed=31.12335808600073)
        return loop.tick(self._parts, RUN, self._lease, ended, lambda line: None).state


class _Git:
    """Commits that are numbers."""

    def __init__(self) -> None:
        self.tree, self._head = digest("base"), digest("head")

    def preflight(self, snapshot: bool) -> str:
        return ""

    def branch(self) -> str:
        return BRANCH

    def begin(self, run: str, target: str, title: str) -> str:
        return BRANCH

    def snapshot(self, run: str) -> str:
        return ""

    def head(self) -> str:
        return self._head

    def pin(self, run: str, base: Base) -> None:
        return None

    def holds(self, run: str, item: str, commit: str) -> bool:
        return True

    def commit(
        self, run: str, item: Item, base: Base, tree: str, evidence: str, status: str
    ) -> str:
        self.tree, self._head = tree, digest("commit", tree)
        return self._head

    def keep(self, run: str, item: str, tree: str) -> str:
        return f"refs/rage/{run}/{item}"

    def revert(self, run: str, item: str, commit: str) -> str:
        return digest("revert", commit)

    def made(self, commit: str) -> tuple[str, str]:
        return self._head, self.tree


class _Rooms:
    """Backlog, packets, survey, trees and checks, answering from memory."""

    def __init__(self, items: int, git: _Git) -> None:
        self._specs = [_item(number) for number in range(items)]
        self._ticks, self._git = count(), git
        self._tree, self._number, self._green = git.tree, 0, False

    def turn(self, number: int, *, changed: bool, green: bool) -> None:
        """What a turn leaves behind."""
        self._number, self._green = number, green
        if changed:
            self._tree = digest("tree", number)

    def now(self) -> float:
        return 1_790_000_000.5553772 + next(self._ticks)

    monotonic = now

    # --- backlog, packets, survey ---

    def resolve(self, target: str) -> Sequence[ItemSpec]:
        return self._specs

    def title(self, target: str) -> str:
        return "Sums are wrong"

    def packet(self, state: RunState, instruction: str) -> str:
        return instruction

    def brief(self, state: RunState, spec: ItemSpec, pointers: Sequence[str]) -> str:
        return spec.title

    def review(self, item: str, gates: Sequence[str]) -> dict[str, object]:
        return {
            "head": self._git.head()[:12],
            "dirty": [],
            "instructions": ["AGENTS.md"],
            "branches": [],
        }

    def pointers(self) -> Sequence[str]:
        return ("AGENTS.md",)

    # --- trees and checks ---

    def preflight(self) -> None:
        return None

    def commands(self) -> Sequence[CheckCommand]:
        return (CheckCommand("tests", ("python", "-m", "pytest", "-q", "{targets}")),)

    def check_targets(self, targets: Sequence[str]) -> None:
        return None

    def open(self, run: str) -> Base:
        return Base(self._git.tree, self._git.head())

    def snapshot(self, base: Base) -> str:
        return self._tree

    def changes(self, tree: str, other: str) -> Sequence[Change]:
        if tree == other:
            return ()
        return [Change("M", f"src/sums/module_{n}.py") for n in range(1 + self._number % 4)]

    def added(self, tree: str, other: str) -> str:
        return "    return total\n" * 20

    def size(self, tree: str, other: str) -> tuple[int, int]:
        return len(self.changes(tree, other)), 30

    def cosmetic(self, tree: str, other: str) -> bool:
        return False

    def restore(self, base: Base, tree: str) -> Sequence[str]:
        return ()

    def judge(self, request: JudgeRequest, progress: Progress) -> Judgement:
        trees = request.base.tree, request.tree
        if self._green:
            message = f"{GATE} was red and is green"
            checks = tuple(_check(cell, *trees, Verdict.PASS) for cell in CELLS)
            return Judgement(
                *(Verification.PASS, Verdict.PASS, *trees, message, Origin.GIVEN),
                red=(GATE,),
                checks=checks,
            )
        # A failing gate is seen at once; only where it passes are the other cells run.
        cells = CELLS[:4] if self._number % 5 == 0 else CELLS[:1]
        error = f"{GATE} fails: assert {spell(self._number // 6)!r} in ['one', 'two']"
        return Judgement(
            *(Verification.FAIL, Verdict.FAIL, *trees, error),
            failing=(GATE,),
            reasons=(error,),
            checks=tuple(_check(cell, *trees, Verdict.FAIL) for cell in cells),
        )


def _item(number: int) -> ItemSpec:
    criteria = ("two numbers are added", "an empty list gives 0", "the result is exact")
    return ItemSpec(
        id=str(number + 1),
        title=f"Sums of the {spell(number)} are wrong",
        body="",
        source=f"backlog/{number + 1}-sums.md",
        criteria=criteria,
        gates=(GATE,),
    )


def _check(cell: str, base: str, candidate: str, verdict: Verdict) -> CheckRecord:
    tree, failed = base if cell in ("base", "red") else candidate, int(verdict is Verdict.FAIL)
    command = hashlib.sha256(cell.encode()).hexdigest()
    return CheckRecord(
        cell=cell,
        command="tests",
        tree=tree,
        command_hash=command,
        environment_hash=hashlib.sha256().hexdigest(),
        verdict=verdict,
        passed=12 - failed,
        failed=failed,
        skipped=0,
        seconds=19.457587349001187,
        cached=False,
        isolation="overlay",
        artifact=f"{ROOT}/.git/rage/artifacts/checks/{tree[:12]}-{command[:12]}-0.txt",
    )
