"""What the state machine sees, and the invariants that it holds after every rule."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from rage_plugin.core.model import ItemSpec, RunState
from rage_plugin.core.replay import replay
from rage_plugin.flag import active_flag

from .model import Paper
from .processes import Process, Table, session
from .world import LIMITS, REPOSITORY, World, name_of, source_of

CHATS = {"a": ("chat", "s1"), "b": ("chat", "s2"), "c": ("other", "s1")}


class Watched(RuleBasedStateMachine):
    """Three chats of two hosts on one repository, and what holds whatever they do."""

    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.world = World()
        for number, gates in (("1", ("t",)), ("2", ()), ("3", ("t",)), ("4", ("t",))):
            needs = ("1",) if number == "3" else ()
            spec = ItemSpec(number, f"Item {number}", "text", source_of(number), ("c",), gates,
                            needs)  # fmt: skip
            self.world.add_item(spec)
        self.world.targets = {"#9": ("1", "2", "3"), "#4": ("4",)}
        self.table = Table(self.world, folder / "rage.db")
        self.stack.enter_context(self.table.installed())
        self.stack.callback(self.table.close)
        self.observer = self.table.open("").store
        self.chats = {k: Process(self.table, session(*v)) for k, v in CHATS.items()}
        self.paper: Paper | None = None
        self.last: dict[str, RunState] = {}
        """Every run as it was seen last."""
        self.seq: dict[str, int] = {}
        self.hashes: dict[tuple[str, str], str] = {}
        self.papers: dict[str, Paper] = {}
        self.accepted: set[tuple[str, str]] = set()
        self.decided: set[str] = set()
        """Items of which a person decided what an agent had asked."""
        self.looks = self.kills = 0

    def reopened(self, who: str) -> None:
        """The host of a chat is started anew; nothing is bound in it yet."""
        self.kills += 1
        self.chats[who] = Process(self.table, session(*CHATS[who]))

    def teardown(self) -> None:
        for run in self.last:
            assert self.observer.verify_chain(run) == []
            told = replay(self.observer.events(run)).differences
            log = [(e.version, e.event.kind, e.event.why[:60]) for e in self.observer.events(run)]
            assert not told, (told, log)
        if self.last and self.looks % 3 == 0:
            for run in self.last:
                assert self.observer.rebuild(run) == []
        for run in self.last:
            self._alerts(run)
        self.stack.close()

    def now(self, run: str = "") -> RunState:
        return self.observer.load(run or self._paper().id)

    def _paper(self) -> Paper:
        assert self.paper is not None
        return self.paper

    @property
    def held(self) -> bool:
        """Whether a run holds the workspace."""
        return self.paper is not None and not self.paper.over

    @property
    def driven(self) -> bool:
        """Whether a living process drives an active run."""
        return any(self.mine(who) for who in self.chats)

    def mine(self, who: str) -> bool:
        paper, process = self.paper, self.chats[who]
        return paper is not None and paper.status == "active" and paper.driver == process.holder

    def news(self, run: str) -> list[tuple[str, dict[str, Any]]]:
        """Events since the last look."""
        known = self.seq.get(run, 0)
        rows = self.observer.db.read(
            lambda c: c.execute(
                "SELECT seq, kind, body FROM events WHERE run = ? AND seq > ?", (run, known)
            ).fetchall()
        )
        if rows:
            self.seq[run] = rows[-1]["seq"]
        return [(row["kind"], json.loads(row["body"])) for row in rows]

    def check(self, *, person: str = "", adopted: str = "") -> RunState | None:
        """What holds after every rule; `person` names an item that a person's word is about."""
        Watched.steps += 1
        self.looks += 1
        self.world.dies_at = ""
        self.world.meanwhile.clear()
        assert not self.world.faults, self.world.faults[0]
        runs = self.observer.runs(REPOSITORY)
        assert sum(r.status in ("active", "paused") for r in runs) <= 1
        for row in runs:
            self._grows(row.id, person, adopted)
        if self.paper is None:
            assert not runs
            return None
        state = self.last[self.paper.id]
        self._agrees(state)
        if self.looks % 12 == 0:
            fresh = self.table.open("").store
            assert fresh.load(self.paper.id) == state
        return state

    def _grows(self, run: str, person: str, adopted: str) -> None:
        """What only moves one way, for each run there ever was."""
        new, old = self.observer.load(run), self.last.get(run)
        self.last[run] = new
        for key, item in new.items.items():
            known = self.hashes.setdefault((run, key), item.criteria_hash)
            if known != item.criteria_hash:
                assert key == adopted, "criteria change on a person's word alone"
                self.hashes[run, key] = item.criteria_hash
            made = [c for c in self.world.of_item(run, key) if c.status != "reverted"]
            assert len(made) <= 1, "one commit an item"
            assert item.attempts <= LIMITS.max_fix_attempts + 1
            most = self.papers[run].limits.max_iterations or 0
            assert item.iteration <= most + self.kills, "a crash may cost the look at the limits"
            if item.state == "DONE":
                self._proven(run, key, new)
        if old is None:
            return
        for name in ("version", "fence", "plan_version", "tokens", "iteration", "active_seconds"):
            assert getattr(new.run, name) >= getattr(old.run, name), name
        for key, item in old.items.items():
            if item.state in ("DONE", "FAILED", "SKIPPED"):
                assert new.items[key] == item, "what is over stays as it is"
        if old.run.status in ("stopped", "done", "failed"):
            assert new.run.status == old.run.status
            for key, item in old.items.items():
                assert key == person or new.items[key] == item

    def _proven(self, run: str, key: str, state: RunState) -> None:
        """A done item: checks said so about the very files that are committed, or a person did."""
        item = state.items[key]
        assert item.verification == "pass"
        if item.origin == "person":
            assert (run, key) in self.accepted
            return
        made = self.world.commits[item.commit]
        assert (made.run, made.item, made.status) == (run, key, "verified")
        assert name_of(made.files) == item.tree
        assert self.world.quality(item.tree, key) == "green"

    def _agrees(self, state: RunState) -> None:
        """The run is what the model says."""
        paper, run = self._paper(), state.run
        assert (run.status, run.pause_reason or "") == (paper.status, paper.reason)
        assert (run.fence, run.plan_version) == (paper.fence, paper.plan)
        assert self.plain(state) == paper.items
        assert {k: i.attempts for k, i in state.items.items() if i.attempts} == paper.attempts
        assert list(state.directives) == paper.words
        assert json.loads(run.limits)["run_tokens"] == paper.limits.run_tokens
        assert json.loads(run.limits)["item_tokens"] == paper.limits.item_tokens
        assert json.loads(run.limits)["run_iterations"] == paper.limits.run_iterations
        assert json.loads(run.limits)["max_iterations"] == paper.limits.max_iterations
        assert json.loads(run.limits)["wall_seconds"] == paper.limits.wall_seconds
        assert run.tokens <= paper.spent
        assert self.observer.ledger.spent(run.id) == paper.spent
        if paper.limits.run_tokens is not None:
            assert paper.spent <= paper.limits.run_tokens, "a hard cap"
        flag = Path(active_flag())
        raised = paper.id in flag.read_text() if flag.exists() else False
        assert raised or not self.driven, "command-hook hosts look for it"
        assert not (raised and paper.over)
        if not paper.over and paper.status == "active":
            assert (run.host, run.session) == CHATS[paper.owner]
            assert run.holder == paper.driver

    @staticmethod
    def plain(state: RunState) -> dict[str, str]:
        words = {"PENDING": "waiting", "DONE": "done", "FAILED": "failed"}
        return {
            key: "unverified"
            if item.state == "IN_PROGRESS" and item.verification == "unverified" and item.next
            else words.get(item.state, "open")
            for key, item in state.items.items()
        }

    def _alerts(self, run: str) -> None:
        """F044: once a budget."""
        told = [
            put[2]["alerted"]
            for logged in self.observer.events(run)
            if logged.event.kind == "budget_alert"
            for put in [(p.table, p.key, p.values) for p in logged.event.puts]
        ]
        assert len(told) == len(set(told))
