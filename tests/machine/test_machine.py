"""Any order of what people, agents, checks, crashes and clocks can do, against a plain model.

The plugin is the real one, with its hooks in a real pluggy manager, the loop, `control`, `resume`,
`intake`, `answers`, and SQLite in a real file (without syncs: `world.FastDb`). In memory are the
rooms for git, checks, backlog and packets (`world.py`) and the table of processes
(`processes.py`): they have their own tests with real ones.

10,000 rule steps in CI, the same ones every time; `RAGE_MACHINE_STEPS=100000` for more.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rage_plugin.core.model import ItemSpec, RunState
from rage_plugin.core.replay import replay
from rage_plugin.flag import active_flag
from rage_plugin.hookspecs import Continue, Hold, Reply, ToolOutcome, Turn

from .model import MORE, UNCOUNTED, Paper
from .processes import Process, Table, session
from .world import LIMITS, REPOSITORY, World, code_of, name_of, source_of

STEPS = int(os.environ.get("RAGE_MACHINE_STEPS", "10000"))
SHARDS, LENGTH = 4, 50
CHATS = {"a": ("chat", "s1"), "b": ("chat", "s2"), "c": ("other", "s1")}
NOBODY = ["", " ", "null", "None", "NULL", "undefined", "\t", "nil"]
LINE = 'RAGE {"slice": "do it", "scope": ["src"]}'
CLAIM = 'RAGE {"no_change": "it works already"}'
MARKERS = {
    "[NEEDS CLARIFICATION: which port?]": "NEEDS_CLARIFICATION",
    "[SPEC_DEVIATION: another API]": "SPEC_DEVIATION",
    "[CRITICAL: it loses data]": "CRITICAL_ISSUE",
}
WORDS = ["keep the signature", "write docs in German", "prefer pathlib", "name it twice"]
PLACES = ["judge", "commit:before", "commit:after", "restore:after", "keep:before",
          "write:before", "write:after"]  # fmt: skip
ACTS = ["nothing", "green", "green", "red", "red", "same", "unverified", "blocked", "undo", "stray"]
ENDS = {"pause": "USER", "stop": ""}


class Machine(RuleBasedStateMachine):
    """Three chats of two hosts on one repository."""

    steps: ClassVar[int] = 0
    template: ClassVar[bytes] = b""

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
        self.looks = 0

    @initialize(begins=st.booleans())
    def open(self, begins: bool) -> None:
        self.observer = self.table.open("").store
        if begins:
            self.start("a", "#9", snapshot=False)

    def teardown(self) -> None:
        for run in self.last:
            assert self.observer.verify_chain(run) == []
            assert not (told := replay(self.observer.events(run)).differences), told
        if self.last and self.looks % 3 == 0:
            for run in self.last:
                assert self.observer.rebuild(run) == []
        for run in self.last:
            self._alerts(run)
        self.stack.close()

    # --- seeing ------------------------------------------------------------------------------

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
        Machine.steps += 1
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
            assert item.iteration <= (self.papers[run].limits.max_iterations or 0)
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

    # --- what follows from a tick ------------------------------------------------------------

    def ticked(
        self,
        before: RunState,
        judged: int,
        *,
        turn: str = "",
        word: str = "",
        place: str = "",
        killed: bool = False,
    ) -> None:
        """Check what a turn's end (`turn` is its reason) or a resume came to, and write it down."""
        paper, world = self._paper(), self.world
        assert not world.faults, world.faults[0]
        state, kinds = self.now(), [kind for kind, _ in self.news(paper.id)]
        checked, current = world.judged[judged:], before.run.current_item or ""
        upset = killed or bool(word)
        assert len(checked) <= 1
        if word == "correct" and place == "before":
            assert not checked, "a result of an older plan is not even judged"
        if turn == "interrupt" or (turn == "error" and paper.errors + 1 < LIMITS.provider_errors):
            assert not checked
        for item, _, quality in checked:
            assert item == current
            recorded = state.items[item].attempts > paper.attempts.get(item, 0)
            if quality in ("red", "tampered", "unchanged") and (recorded or not upset):
                paper.attempt(item)
        self._items(before, state, checked, upset=upset)
        self._streaks(kinds, turn, stale=word == "correct" and place == "before")
        run, item = state.run, state.items.get(state.run.current_item or "")
        if "turn" in kinds and turn:
            assert run.tokens == paper.spent
        if turn and run.pause_reason is not None and not upset and "turn" not in kinds:
            assert run.pause_reason in UNCOUNTED
        paper.status, paper.reason = self._status(state, before, kinds, turn, word, killed=killed)
        if paper.status == "active" and item is not None and not upset:
            assert paper.items[item.id] == "open", "an active run works on something"
            assert paper.quiet <= LIMITS.noop_turns
            assert paper.errors < LIMITS.provider_errors
            assert run.iteration < (paper.limits.run_iterations or 0)
            assert item.iteration < (paper.limits.max_iterations or 0)

    def _items(self, before: RunState, state: RunState, checked: list[Any], *, upset: bool) -> None:
        paper, current = self._paper(), before.run.current_item or ""
        quality = checked[0][2] if checked else ""
        new = self.plain(state)
        for key, was in paper.items.items():
            if new[key] == was:
                continue
            match was, new[key]:
                case "waiting", "open":
                    assert not upset or state.run.current_item == key
                case "open", "done":
                    assert key == current
                    assert self.world.quality(state.items[key].tree, key) == "green"
                case "open", "unverified":
                    assert key == current
                    tree = state.items[key].tree
                    claimed = tree == state.items[key].base_tree
                    assert claimed or self.world.quality(tree, key) == "unverified"
                case "open", "failed":
                    assert key == current
                    spent = state.items[key]
                    assert (
                        paper.attempts.get(key, 0) > LIMITS.max_fix_attempts
                        or spent.iteration >= (paper.limits.max_iterations or 0)
                        or spent.tokens >= (paper.limits.item_tokens or 0)
                        or "tokens" in spent.reason
                        or "limit" in spent.reason
                    )
                case edge:
                    raise AssertionError(f"{key}: {edge}")
        if not upset and state.run.pause_reason not in ("COMMIT_FAILED", "WORKSPACE_MOVED"):
            if quality == "green":
                assert new[current] == "done", (state.run, state.items[current])
            if quality == "unverified":
                assert new[current] == "unverified", (state.run, state.items[current])
            if quality == "blocked":
                assert state.run.pause_reason == "CHECK_COULD_NOT_RUN"
        paper.items = new

    def _streaks(self, kinds: list[str], turn: str, *, stale: bool) -> None:
        paper = self._paper()
        if "turn" not in kinds:
            return
        brought = any(k in ("phase", "judged") or k.startswith("item_") for k in kinds)
        if brought:
            paper.quiet = 0
        elif turn != "error" and not stale:
            paper.quiet += 1
        paper.errors = paper.errors + 1 if turn == "error" else 0

    def _status(
        self,
        state: RunState,
        before: RunState,
        kinds: list[str],
        turn: str,
        word: str,
        *,
        killed: bool,
    ) -> tuple[str, str]:
        paper, run = self._paper(), state.run
        status, reason = str(run.status), str(run.pause_reason or "")
        if paper.status in ENDS.values() or paper.status != "active":
            return paper.status, paper.reason  # somebody's word came in between
        if killed:
            return status, reason
        if self.world.branch != run.branch:
            assert (status, reason) == ("paused", "WORKSPACE_MOVED")
        elif paper.all_done:
            assert status == "done"
        elif turn == "interrupt":
            assert status == "paused"
        if reason == "COMMIT_FAILED":
            # A crash left a commit without its receipt, and the files were changed since.
            assert self.world.of_item(run.id, run.current_item or ""), "nothing moved HEAD"
        if status == "paused":
            item = state.items.get(run.current_item or "")
            turns, passed = item.iteration if item else 0, self.world.passed
            assert paper.may_pause(reason, run.iteration, turns, passed), reason
        else:
            assert status in ("active", "done")
            assert (status == "done") == paper.all_done
        return status, reason

    # --- what people type --------------------------------------------------------------------

    def typed(self, who: str, text: str) -> Reply:
        said = self.chats[who].says(text)
        assert said is not None
        return said

    def refused(self, said: Reply | None, before: RunState | None) -> None:
        """Nothing was changed, and the person was told."""
        assert said is not None
        assert said.error
        if self.paper is not None:
            assert self.now() == before

    def before(self) -> RunState | None:
        return self.now() if self.paper is not None else None

    def alive(self, name: str) -> bool:
        return self.table.liveness(name) == "alive"

    @rule(
        who=st.sampled_from("abc"),
        goal=st.sampled_from(["#9", "#9", "#4"]),
        snapshot=st.booleans(),
    )
    def starts(self, who: str, goal: str, snapshot: bool) -> None:
        self.start(who, goal, snapshot)

    def start(self, who: str, goal: str, snapshot: bool) -> None:
        before, paper = self.before(), self.paper
        text = f"/rage start {goal}" + (" --snapshot" if snapshot else "")
        if paper is not None and not paper.over and paper.target == goal:
            if paper.status == "paused":
                self._resumed(who, text)
            elif paper.owner == who or not self.alive(paper.driver):
                self._taken_or_kept(who, text)
            else:
                self._names_holder(self.typed(who, text), before)
            self.check()
            return
        if paper is not None and not paper.over:
            self._names_holder(self.typed(who, text), before)
            self.check()
            return
        clean = snapshot or not self.world.dirty()
        known = {r.id for r in self.observer.runs(REPOSITORY)}
        said = self.typed(who, text)
        new = [r for r in self.observer.runs(REPOSITORY) if r.id not in known]
        if not new:
            assert not clean, (said, self.world.faults)
            self.refused(said, before)
        else:
            run = new[0]
            items = self.plain(self.observer.load(run.id))
            driver = self.chats[who].holder
            self.paper = self.papers[run.id] = Paper(run.id, goal, who, driver, items)
            self.paper.began = self.world.passed
            self.news(run.id)
            if items:
                assert clean
                assert said.then is not None
                assert list(items.values()).count("open") == 1
            else:
                assert said.then is None
                self.paper.status = "done"
        self.check()

    def _names_holder(self, said: Reply, before: RunState | None) -> None:
        self.refused(said, before)
        paper = self._paper()
        host, name = CHATS[paper.owner]
        for part in (paper.target, host, f"session {name}"):
            assert part in said.text

    def _taken_or_kept(self, who: str, text: str) -> None:
        """The owner's own start: it goes on here, whichever process the chat now has."""
        paper, judged, before = self._paper(), len(self.world.judged), self.now()
        process = self.chats[who]
        said = self.typed(who, text)
        assert not said.error
        if paper.driver == process.holder:
            assert self.now() == before
            return
        paper.taken(who, process.holder)
        self.ticked(before, judged)

    @rule(
        who=st.sampled_from("abc"),
        more=st.sampled_from(["", "", "--budget +3k", "--max-iterations +6", "--time +9h",
                              "--confirm", "adopt", "adopt other"]),
    )  # fmt: skip
    def takes(self, who: str, more: str) -> None:
        if more.startswith("adopt"):
            self.adopt(who, more == "adopt")
        else:
            self.resume(who, more)

    def resume(self, who: str, more: str) -> None:
        before, paper = self.before(), self.paper
        text = f"/rage resume {more}".strip()
        if paper is None or paper.over:
            self.refused(self.typed(who, text), before)
        elif paper.status == "paused":
            self._resumed(who, text, more)
        elif paper.owner != who and self.alive(paper.driver):
            self._names_holder(self.typed(who, text), before)
        else:
            self._raise(more)
            judged = len(self.world.judged)
            self.typed(who, text)
            paper.taken(who, self.chats[who].holder)
            self.ticked(self.now_before(before), judged)
        self.check()

    @staticmethod
    def now_before(before: RunState | None) -> RunState:
        assert before is not None
        return before

    def _raise(self, more: str) -> None:
        from dataclasses import replace

        paper = self._paper()
        limits = paper.limits
        match more.split(" ")[0]:
            case "--budget":
                paper.limits = replace(limits, run_tokens=(limits.run_tokens or 0) + 3_000,
                                       item_tokens=(limits.item_tokens or 0) + 3_000)  # fmt: skip
            case "--max-iterations":
                paper.limits = replace(limits, run_iterations=(limits.run_iterations or 0) + 6,
                                       max_iterations=(limits.max_iterations or 0) + 6)  # fmt: skip
            case "--time":
                paper.limits = replace(limits, wall_seconds=(limits.wall_seconds or 0) + 9 * 3600)

    def _resumed(self, who: str, text: str, more: str = "") -> None:
        """A person's word to a run that waits."""
        paper, judged, before = self._paper(), len(self.world.judged), self.now()
        self._raise(more)
        stays = self._stays(before, more)
        said = self.typed(who, text)
        if stays:
            assert said.then is None
            self.news(paper.id)
            assert self.now().run.status == "paused"
            return
        if paper.reason == "CRITICAL_ISSUE":
            self.decided.add(before.run.current_item or "")
        paper.taken(who, self.chats[who].holder)
        self.ticked(before, judged)

    def _stays(self, state: RunState, more: str) -> bool:
        paper, run = self._paper(), state.run
        if paper.reason in ("SPEC_DEVIATION", "NEEDS_CLARIFICATION"):
            return True
        if paper.reason in ("CIRCUIT_BREAKER", "CRITICAL_ISSUE"):
            spends = paper.reason == "CIRCUIT_BREAKER" and more.startswith("--budget")
            return more != "--confirm" and not spends
        if paper.reason not in MORE:
            return False
        item, limits = state.items[run.current_item or ""], paper.limits
        reached = (
            run.tokens >= (limits.run_tokens or 0)
            or item.tokens >= (limits.item_tokens or 0)
            or run.iteration >= (limits.run_iterations or 0)
            or item.iteration >= (limits.max_iterations or 0)
            or run.active_seconds >= (limits.wall_seconds or 0)
        )
        room = more.startswith(("--budget", "--time"))
        return reached or (bool(run.refused_call) and not room)

    def adopt(self, who: str, right: bool) -> None:
        before, paper = self.before(), self.paper
        name = paper.id if paper is not None and right else "00000000"
        text = f"/rage adopt {name}"
        if paper is None or paper.over or not right:
            self.refused(self.typed(who, text), before)
        elif paper.status == "paused":
            self._resumed(who, text)
        elif paper.owner != who and self.alive(paper.driver):
            self._names_holder(self.typed(who, text), before)
        else:
            judged = len(self.world.judged)
            self.typed(who, text)
            paper.taken(who, self.chats[who].holder)
            self.ticked(self.now_before(before), judged)
        self.check()

    @rule(who=st.sampled_from("abc"), verb=st.sampled_from(["pause"] * 5 + ["stop"]))
    def word(self, who: str, verb: str) -> None:
        self.say(who, verb)
        self.check()

    def say(self, who: str, verb: str) -> None:
        """`pause`, `stop` or `correct`, from any terminal."""
        before, paper = self.before(), self.paper
        fresh = [w for w in WORDS if paper is None or w not in paper.words]
        instead = not fresh
        text = f"/rage {verb}"
        if verb == "correct":
            text += f" {'--instead ' if instead else ''}{(fresh or WORDS)[0]}"
        said = self.typed(who, text)
        if paper is None or paper.over:
            self.refused(said, before)
            return
        assert not said.error
        assert said.then is None
        if verb == "correct":
            paper.told((fresh or WORDS)[0], instead)
        elif verb == "stop":
            paper.status, paper.reason = "stopped", ""
        elif paper.status == "active":
            paper.status, paper.reason = "paused", "USER"

    @rule(who=st.sampled_from("abc"), plain=st.booleans())
    def correct(self, who: str, plain: bool) -> None:
        if not plain:
            self.say(who, "correct")
        else:
            before, mine, paper = self.before(), self.mine(who), self.paper
            unused = [w for w in WORDS if paper is None or w not in paper.words]
            if unused:
                assert self.chats[who].says(unused[0]) is None
                if mine and paper is not None:
                    paper.told(unused[0])
                elif paper is not None:
                    assert self.now() == before
        self.check()

    @rule(who=st.sampled_from("abc"), name=st.sampled_from(NOBODY), verb=st.sampled_from(
        ["start #9", "start #4", "resume", "adopt"]))  # fmt: skip
    def nobody(self, who: str, name: str, verb: str) -> None:
        """F028, law 10: an id that is no id binds nothing and is nobody's."""
        before, paper = self.before(), self.paper
        process, known = self.chats[who], len(self.observer.runs(REPOSITORY))
        stranger = session(CHATS[who][0], name)
        full = f"/rage {verb} {paper.id if paper else 'x'}" if verb == "adopt" else f"/rage {verb}"
        said = process.says(full, stranger)
        assert said is not None
        assert said.error
        process.begins(stranger)
        hook = process.manager.hook
        assert hook.rage_turn_end(session=stranger, turn=Turn("DONE")) is None
        assert process.says("not a command", stranger) is None
        assert len(self.observer.runs(REPOSITORY)) == known
        if paper is not None:
            assert self.now() == before
        self.check()

    @precondition(lambda self: self.paper is not None)
    @rule(who=st.sampled_from("abc"), item=st.sampled_from("1234"), yes=st.booleans(),
          dies=st.sampled_from(["", "", "", "revert:after", "write:before"]))  # fmt: skip
    def decides(self, who: str, item: str, yes: bool, dies: str) -> None:
        self.decide(who, item, yes, dies)

    def decide(self, who: str, item: str, yes: bool, dies: str = "") -> None:
        """`accept` and `reject`, also of a run that is over."""
        before, paper = self.before(), self._paper()
        self.world.dies_at = dies
        said = self.chats[who].says(f"/rage {'accept' if yes else 'reject'} {item}"
                                    + ("" if yes else " --why no"))  # fmt: skip
        if not self.chats[who].alive:
            assert self.now() == before
            self.reopened(who)
        elif paper.items.get(item) != "unverified":
            self.refused(said, before)
        elif said is not None and said.error:
            assert not yes, said.text
            self.refused(said, before)
        else:
            paper.items[item] = "done" if yes else "failed"
            if yes:
                self.accepted.add((paper.id, item))
            self._ended()
        self.news(paper.id)
        self.check(person=item)

    def _ended(self) -> None:
        """A run that waited for this word waits for the next thing, or is done."""
        paper = self._paper()
        if paper.status != "paused" or paper.reason not in ("UNVERIFIED", "ITEM_FAILED"):
            return
        needs = {"3": ("1",)}
        ready = any(
            s == "waiting" and all(paper.items.get(n, "done") == "done" for n in needs.get(k, ()))
            for k, s in paper.items.items()
        )
        if ready:
            paper.reason = "USER"
        elif paper.all_done:
            paper.status, paper.reason = "done", ""
        else:
            paper.reason = "ITEM_FAILED" if "failed" in paper.items.values() else "UNVERIFIED"

    # --- what happens to processes and the world ---------------------------------------------

    def reopened(self, who: str) -> None:
        self.chats[who] = Process(self.table, session(*CHATS[who]))

    @precondition(lambda self: self.held)
    @rule(who=st.sampled_from("aabc"), what=st.sampled_from(["kill", "begin", "both", "end"]))
    def processes(self, who: str, what: str) -> None:
        if what in ("kill", "both"):
            self.kill(who)
        if what in ("begin", "both"):
            self.begins(who)
        if what == "end":
            self.ends(who)

    def kill(self, who: str) -> None:
        """F007: `kill -9`, and the host is started anew with the same chat."""
        self.chats[who].kill()
        self.reopened(who)
        self.check()

    def begins(self, who: str) -> None:
        """The chat is opened again: its own run goes on in it after a crash, nobody else's."""
        before, paper, process = self.before(), self.paper, self.chats[who]
        judged = len(self.world.judged)
        process.begins()
        if paper is not None and paper.status == "active" and paper.owner == who and (
            paper.driver != process.holder
        ):  # fmt: skip
            paper.taken(who, process.holder)
            self.ticked(self.now_before(before), judged)
        elif paper is not None:
            assert self.now() == before
        self.check()

    @precondition(lambda self: self.held)
    @rule(who=st.sampled_from("abc"), text=st.sampled_from(
        ["/rage status", "/rage resume", "/rage start #9", "a word"]))  # fmt: skip
    def twin(self, who: str, text: str) -> None:
        """A reused id: another living process with a chat of the same name is not the owner."""
        paper, before = self._paper(), self.before()
        if paper.status != "active" or not self.alive(paper.driver):
            return
        other = Process(self.table, session(*CHATS[who]))
        other.begins()
        other.says(text)
        assert other.asks(10) is None
        assert other.rests(Turn(LINE)) is None
        assert self.now() == before
        other.kill()
        self.check()

    def ends(self, who: str) -> None:
        before, mine = self.before(), self.mine(who)
        self.chats[who].ends()
        if mine:
            self._paper().status, self._paper().reason = "paused", "SESSION_ENDED"
        elif before is not None:
            assert self.now() == before
        self.check()

    @precondition(lambda self: self.held)
    @rule(what=st.sampled_from(["tidy", "branch", "note", "hours", "criteria", "day", "-day"]),
          item=st.sampled_from("124"))  # fmt: skip
    def outside(self, what: str, item: str) -> None:
        """What a person and the time do to the workspace; wall time jumps either way."""
        world = self.world
        match what:
            case "tidy":
                world.tidy()
                world.branch = "rage/work"
            case "branch":
                world.branch = "elsewhere"
            case "note":
                world.files["notes.txt"] = f"note {self.looks}"
            case "criteria":
                world.files[source_of(item)] = f"v{self.looks}"
            case "hours":
                world.passed += 3 * 3_600.0
            case _:
                world.wall += 400 * 86_400.0 if what == "day" else -86_400.0
        self.check()

    @precondition(lambda self: self.held)
    @rule(who=st.sampled_from("abc"), verb=st.sampled_from(
        ["resolve spec", "resolve code", "answer yes"]))  # fmt: skip
    def rule_on(self, who: str, verb: str) -> None:
        self.ruling(who, verb)

    def ruling(self, who: str, verb: str) -> None:
        """F143: only a person's word lets other criteria stand for those of the start."""
        before, paper, judged = self.now(), self._paper(), len(self.world.judged)
        current = before.run.current_item or ""
        asks = "NEEDS_CLARIFICATION" if verb.startswith("answer") else "SPEC_DEVIATION"
        said = self.typed(who, f"/rage {verb}")
        if paper.status != "paused" or paper.reason != asks:
            self.refused(said, before)
            self.check()
            return
        self.news(paper.id)
        assert not said.error
        *kept, new = self.now().directives
        assert [w for w in paper.words if w in kept] == kept
        paper.told(new)
        paper.words = [*kept, new]
        self.decided.add(current)
        paper.taken(who, self.chats[who].holder)
        self.ticked(before, judged)
        self.check(adopted=current if verb == "resolve code" else "")

    # --- what agents do ----------------------------------------------------------------------

    @precondition(lambda self: self.held)
    @rule(
        other=st.sampled_from([False] * 7 + [True]),
        act=st.sampled_from(ACTS),
        text=st.sampled_from([LINE, LINE, "Done, all tests pass.", "", 'RAGE {"slice": 5}', CLAIM]),
        reason=st.sampled_from(["done"] * 6 + ["error", "error", "interrupt", "limit"]),
        tokens=st.sampled_from([0, 50, 400, 1_500]),
        tool=st.sampled_from(["", "", "ok", "error", "error"]),
        word=st.sampled_from([""] * 6 + ["pause", "stop", "correct"]),
        place=st.sampled_from(["before", "before", "judge", "commit:before", "commit:after"]),
        dies=st.sampled_from([""] * 8 + PLACES),
    )  # fmt: skip
    def any_turn(self, **how: Any) -> None:
        """One turn of a chat's agent: mostly of the one that drives."""
        self.turn(**how)

    @precondition(lambda self: self.driven)
    @rule(
        acts=st.lists(st.sampled_from(ACTS), min_size=2, max_size=8),
        text=st.sampled_from([LINE, LINE, "Done."]),
        tokens=st.sampled_from([50, 50, 700]),
        tool=st.sampled_from(["", "error"]),
    )
    def plain_turns(self, acts: list[str], text: str, tokens: int, tool: str) -> None:
        """A while in which nothing comes in between."""
        for act in acts:
            if self._paper().status == "active":
                self.turn(False, act, text, "done", tokens, tool)

    @precondition(lambda self: self.driven)
    @rule(act=st.sampled_from(["nothing", "nothing", "red"]), how=st.sampled_from(
        ["done", "error", "limit"]), text=st.sampled_from([LINE, "All tests pass."]))  # fmt: skip
    def dull_turns(self, act: str, how: str, text: str) -> None:
        """The same again and again, until the run has had enough: that has to come."""
        for _ in range(LIMITS.max_iterations or 0):
            if self._paper().status == "active":
                self.turn(False, act, text, how, 50)
        paper = self._paper()
        lifted = paper.limits.max_iterations != LIMITS.max_iterations
        assert paper.status != "active" or lifted or act == "red"

    @precondition(lambda self: self.driven)
    @rule(act=st.sampled_from(ACTS), text=st.sampled_from(sorted(MARKERS)))
    def asking_turn(self, act: str, text: str) -> None:
        """F061-F063: the agent says that only a person can decide."""
        self.turn(False, act, f"{LINE}\n{text}", "done", 50)

    @precondition(lambda self: self.driven)
    @rule(act=st.sampled_from(["green", "red", "unverified"]), dies=st.sampled_from(PLACES))
    def last_turn(self, act: str, dies: str) -> None:
        """The process is killed at an effect, or around a commit of the database."""
        self.turn(False, act, LINE, "done", 50, dies=dies)

    @precondition(lambda self: self.driven)
    @rule(
        act=st.sampled_from(["green", "red", "unverified"]),
        word=st.sampled_from(["pause", "stop", "correct", "correct"]),
        place=st.sampled_from(["before", "judge", "commit:before", "commit:after"]),
    )
    def crossed_turn(self, act: str, word: str, place: str) -> None:
        """A person's word comes in while the turn, its checks or its commit are under way."""
        self.turn(False, act, LINE, "done", 50, word=word, place=place)

    @precondition(lambda self: self.held and not self.driven)
    @rule(who=st.sampled_from("aab"), yes=st.booleans())
    def on(self, who: str, yes: bool) -> None:
        """A run goes on after a crash, or a person lets it, with whatever it needs."""
        paper = self._paper()
        if paper.status == "active" and yes:
            self.begins(paper.owner)
            return
        if paper.status == "active":
            self.resume(who, "")
            return
        self.world.branch = "rage/work"
        reasons = {"LIMIT_TOKENS": "--budget +3k", "LIMIT_ITERATIONS": "--max-iterations +6",
                   "LIMIT_TIME": "--time +9h", "CIRCUIT_BREAKER": "--confirm",
                   "CRITICAL_ISSUE": "--confirm"}  # fmt: skip
        if paper.reason == "NEEDS_CLARIFICATION":
            self.ruling(who, "answer 8080")
            return
        if paper.reason == "SPEC_DEVIATION":
            self.ruling(who, "resolve code" if yes else "resolve spec")
            return
        waiting = [k for k, state in paper.items.items() if state == "unverified"]
        if paper.reason == "UNVERIFIED" and waiting:
            self.decide(who, waiting[0], yes)
            return
        more = reasons.get(paper.reason, "")
        self._resumed(who, f"/rage resume {more}".strip(), more)
        self.check()

    def turn(
        self,
        other: bool,
        act: str,
        text: str,
        reason: Any,
        tokens: int,
        tool: str = "",
        word: str = "",
        place: str = "",
        dies: str = "",
    ) -> None:
        paper, world = self._paper(), self.world
        driver = next((k for k, p in self.chats.items() if p.holder == paper.driver), "a")
        who = next(k for k in "abc" if k != driver) if other else driver
        process, before, mine = self.chats[who], self.now(), self.mine(who)
        world.passed += 1
        told = process.asks(tokens)
        if not mine:
            assert told is None
            process.tool({"path": "x"}, ToolOutcome("ok"))
            assert not isinstance(process.rests(Turn(text, reason)), Continue)
            assert not process.bound
            assert process.tool({"path": "x"}, ToolOutcome("ok")) is None
            assert process.rests(Turn(text, reason)) is None
            assert self.now() == before
            self.check()
            return
        current = before.run.current_item or ""
        if isinstance(told, Hold):
            reason, act = "limit", "nothing"
        else:
            assert told == "\n".join(["PACKET", paper.id, *paper.words])
            process.used(tokens)
            paper.spent += tokens
            if tool:
                outcome = ToolOutcome("ok") if tool == "ok" else ToolOutcome("error", "no such")
                process.tool({"path": "x"}, outcome)
        self.news(paper.id)
        self._edit(act, current, before)
        done = ""
        if word and place == "before":
            self.say(who, word)
            done = word
        elif word:
            performed: list[str] = []
            second = next(k for k in "abc" if k != who)

            def meanwhile() -> None:
                self.say(second, word)
                performed.append(word)

            world.meanwhile[place] = meanwhile
        else:
            performed = []
        judged = len(world.judged)
        must = self._must(before, reason, text) and not done and not dies
        world.dies_at = dies
        result = process.rests(Turn(text, reason, "boom" if reason == "error" else ""))
        if word and place != "before":
            done = performed[0] if performed else ""
        killed = not process.alive
        if must and not done:
            assert len(world.judged) == judged + 1
        marked = MARKERS.get(text.rpartition("\n")[2], "")
        if marked and not done and not killed and current not in self.decided:
            if world.branch == before.run.branch:
                assert len(world.judged) == judged
                assert self.now().run.pause_reason in (marked, "SPEC_DEVIATION")
        self.ticked(before, judged, turn=reason, word=done, place=place, killed=killed)
        if killed:
            assert result is None
            self.reopened(who)
        else:
            assert isinstance(result, Continue) == (paper.status == "active")
        self.check()

    def _edit(self, act: str, item: str, before: RunState) -> None:
        files, path, number = self.world.files, code_of(item), self.looks
        match act:
            case "green" | "red" | "unverified" | "blocked":
                files[path] = f"{act} {number}"
            case "same":
                files[path] = f"red again{' ' * (number % 7)}"
            case "stray":
                files["other/x.txt"] = f"{number}"
            case "undo":
                base = self.world.trees[before.items[item].base_tree]
                self.world.files = dict(base)

    def _must(self, before: RunState, reason: str, text: str) -> bool:
        """Whether this turn's work has to be looked at: evidence comes before limits."""
        item = before.items[before.run.current_item or ""]
        tree, paper = self.world.tree(), self._paper()
        base = self.world.trees[item.base_tree]
        strays = [p for p in {*self.world.files, *base} if self.world.files.get(p) != base.get(p)]
        return (
            item.gates != "[]"
            and "[" not in text
            and source_of(item.id) not in strays
            and tree not in (item.base_tree, *before.judged_trees)
            and all(p.startswith("src/") for p in strays)
            and self.world.branch == before.run.branch
            and (reason in ("done", "limit")
                 or (reason == "error" and paper.errors + 1 >= LIMITS.provider_errors))
        )  # fmt: skip


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.timeout(0 if STEPS > 10_000 else 180)
def test_any_sequence(shard: int) -> None:
    """F007, F026, F028, F094, F141-F143, F147."""

    @seed(1_000 + shard)
    class Shard(Machine):
        pass

    Machine.steps = 0
    run_state_machine_as_test(
        Shard,
        settings=settings(
            max_examples=-(-STEPS // SHARDS // LENGTH) + 2,
            stateful_step_count=LENGTH,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )
    print(f"shard {shard}: {Machine.steps} steps")
    assert Machine.steps >= STEPS // SHARDS
