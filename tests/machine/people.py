"""Rules of the state machine: what people type, in whichever chat."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rage_plugin.core.model import RunState
from rage_plugin.hookspecs import Reply, Turn

from .model import MORE, Paper
from .processes import session
from .ticked import Ticked
from .watched import CHATS
from .world import REPOSITORY

NOBODY = ["", " ", "null", "None", "NULL", "undefined", "\t", "nil"]
WORDS = ["keep the signature", "write docs in German", "prefer pathlib", "name it twice"]
"""Corrections that do not contradict each other."""


class People(Ticked):
    """Start, resume, adopt, pause, stop, correct, accept, reject, and ids that are nobody's."""

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
        paper = self._paper()
        limits = paper.limits
        match more.split(" ", maxsplit=1)[0]:
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
