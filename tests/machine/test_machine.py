"""Any order of what people, agents, checks, crashes and clocks can do, against a plain model.

The plugin is the real one, with its hooks in a real pluggy manager, the loop, `control`, `resume`,
`intake`, `answers`, and SQLite in a real file (without syncs: `world.FastDb`). In memory are the
rooms for git, checks, backlog and packets (`world.py`) and the table of processes
(`processes.py`): they have their own tests with real ones.

10,000 rule steps in CI, the same ones every time; `RAGE_MACHINE_STEPS=100000` for more.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from rage_plugin.core.model import RunState
from rage_plugin.hookspecs import Continue, Hold, ToolOutcome, Turn

from .happenings import LINE, Happenings
from .watched import Watched
from .world import LIMITS, code_of, source_of

STEPS = int(os.environ.get("RAGE_MACHINE_STEPS", "10000"))
SHARDS, LENGTH = 4, 50
CLAIM = 'RAGE {"no_change": "it works already"}'
MARKERS = {
    "[NEEDS CLARIFICATION: which port?]": "NEEDS_CLARIFICATION",
    "[SPEC_DEVIATION: another API]": "SPEC_DEVIATION",
    "[CRITICAL: it loses data]": "CRITICAL_ISSUE",
}
PLACES = ["judge", "commit:before", "commit:after", "restore:after", "keep:before",
          "write:before", "write:after"]  # fmt: skip
ACTS = ["nothing", "green", "green", "red", "red", "same", "unverified", "blocked", "undo", "stray"]


class Machine(Happenings):
    """Agents at work in all of it."""

    @initialize(begins=st.booleans())
    def open(self, begins: bool) -> None:
        if begins:
            self.start("a", "#9", snapshot=False)

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
        for _ in range(self._paper().limits.run_iterations or 0):
            if not self.driven:
                return
            self.turn(False, act, text, how, 50)
        assert not self.driven, "law 8: whatever the model does, it ends"

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
        asked = marked and current not in self.decided and world.branch == before.run.branch
        if asked and not done and not killed:
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
@pytest.mark.timeout(0 if STEPS > 10_000 else 900)  # a failure is made small before it is told
def test_any_sequence(shard: int) -> None:
    """F007, F026, F028, F094, F141-F143, F147."""

    Watched.steps = number = 0
    while Watched.steps < STEPS // SHARDS:  # an example may end before its last step

        @seed(1_000 * shard + number)
        class Shard(Machine):
            pass

        run_state_machine_as_test(
            Shard,
            settings=settings(
                max_examples=30,
                stateful_step_count=LENGTH,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            ),
        )
        number += 1
    print(f"shard {shard}: {Watched.steps} steps")
    assert Watched.steps >= STEPS // SHARDS
