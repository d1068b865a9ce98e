"""What a turn's end or a resume may come to, by the truth of the world and the model's paper."""

from __future__ import annotations

from typing import Any

from rage_plugin.core.model import RunState

from .model import ENDS, UNCOUNTED
from .watched import Watched
from .world import LIMITS


class Ticked(Watched):
    """Checks each outcome and writes it down."""

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
        for key, _, quality in checked:
            assert key == current
            recorded = state.items[key].attempts > paper.attempts.get(key, 0)
            if quality in ("red", "tampered", "unchanged") and (recorded or not upset):
                paper.attempt(key)
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
            # A crash left a commit or a revert without its receipt: HEAD is not where it was.
            known = {i.commit for i in state.items.values()}
            made = [c for c in self.world.commits.values() if c.run == run.id and c.id not in known]
            assert made, "nothing moved HEAD"
        if status == "paused":
            item = state.items.get(run.current_item or "")
            turns, passed = item.iteration if item else 0, self.world.passed
            assert paper.may_pause(reason, run.iteration, turns, passed), reason
        else:
            assert status in ("active", "done")
            assert (status == "done") == paper.all_done
        return status, reason
