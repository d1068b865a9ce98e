"""Rules of the state machine: crashes, other processes, time, edits by people, rulings."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rage_plugin.hookspecs import Turn

from .people import People
from .processes import Process, session
from .watched import CHATS
from .world import source_of

LINE = 'RAGE {"slice": "do it", "scope": ["src"]}'


class Happenings(People):
    """What comes over a run from outside."""

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
        process.begins()
        if paper is not None and paper.status == "active" and paper.owner == who and (
            paper.driver != process.holder
        ):  # fmt: skip
            paper.taken(who, process.holder)
            self.news(paper.id)
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
