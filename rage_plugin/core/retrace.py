"""One tick decided again, step by step beside what the log holds of it.

Separate from `replay.py`, which goes through a whole log. The log says what came of each act: a
verdict, a commit, a ref; everything else has to follow from what the tick saw.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from . import facts
from .decide import (
    Begin,
    Commit,
    Fail,
    Judge,
    Record,
    Rest,
    Step,
    Walk,
    count_turn,
    next_step,
)
from .errors import RageError
from .events import Event, encode
from .fold import apply
from .judgement import CheckRecord, Judgement, Origin, Verdict
from .model import Evidence, PauseReason, Phase, Verification
from .ports import LoggedEvent


def followed(walk: Walk, step: Record) -> Walk:
    """The walk after an event was recorded."""
    return replace(
        walk,
        state=apply(walk.state, step.event),
        edges=walk.edges + step.edge,
        counted=walk.counted or step.counts,
        used=walk.used or step.uses_proposal,
        asked=walk.asked or step.asks,
        waits=walk.waits or step.waits,
        judgement=None if step.uses_judgement else walk.judgement,
    )


class Different(Exception):
    """The log and the policy of today part here."""


class Tick:
    """One tick decided again beside the rows that follow it in the log.

    Its rows share a version; an effect is written apart, so that what follows one has the next.
    """

    def __init__(self, walk: Walk, rows: Sequence[LoggedEvent], tick: int) -> None:
        self._walk = walk
        self._rows = rows
        self._at = tick
        self.decisions = 0
        self.whole = True
        """Whether the log keeps all that the decisions so far were made from."""

    def decide(self) -> None:
        """Take step after step to the end of the tick; raises `Different` at the first other."""
        over = False
        while not over:
            try:
                step = next_step(self._walk)
                over = self._take(step)
            except (RageError, ValueError, KeyError, TypeError, AttributeError) as error:
                told = f"that this cannot be: {error}"
                raise self._different(told, self._next()) from error
            self.decisions += 1

    def _take(self, step: Step) -> bool:
        """Hold one step against the log; whether the tick ends with it."""
        match step:
            case Record():
                self._record(step, _told(step.event))
                return False
            case Judge():
                return self._judge()
            case Commit():
                return self._commit(step)
            case Fail():
                return self._fail(step)
            case Begin():
                return self._begin(step)
            case _:
                told = "that the agent goes on" if isinstance(step, Rest) else "nothing more"
                if (logged := self._next()) is not None:
                    raise self._different(told, logged)
                if isinstance(step, Rest) and (found := self._receipt()) is not None:
                    self._at = found - 1
                    raise self._different(told, self._rows[found].event)
                return True

    # --- the rows of the tick ---------------------------------------------------------------

    def _next(self, *, apart: bool = False) -> Event | None:
        """The tick's next event; with `apart` what was written next, by whomever."""
        here = self._rows[self._at]
        if self._at + 1 == len(self._rows):
            return None
        row = self._rows[self._at + 1]
        return row.event if row.version == here.version + apart else None

    def _record(self, step: Record, told: str, *, apart: bool = False) -> None:
        """The log's next event has to be the step's."""
        logged = self._next(apart=apart)
        if logged is None:
            raise self._different(told, None)
        if _plain(logged) != _plain(step.event):
            mine, said = _parts(logged, step.event)
            raise self._different(mine, logged, said)
        self._at += 1
        self._walk = followed(self._walk, step)

    def _different(self, mine: str, logged: Event | None, said: str = "") -> Different:
        if logged is None:
            row = self._rows[self._at]
            what = f"event {row.seq} ({row.event.kind}): the log ends the tick here"
        else:
            row = self._rows[self._at + 1]
            what = f"event {row.seq} ({row.event.kind}): the log says {said or _told(logged)}"
        return Different(f"{what}, the policy of today says {mine}")

    # --- the steps that act -----------------------------------------------------------------

    def _judge(self) -> bool:
        logged, item = self._next(), self._walk.state.working
        if _gave_up(logged, PauseReason.CHECK_COULD_NOT_RUN):
            return True
        row = _evidence(logged, "judgement")
        if logged is not None and row is not None:
            judgement, whole = _judgement(row, logged)
            self.whole = self.whole and whole
        elif (
            logged is not None
            and logged.kind in ("turn", "intent", "item_done", "item_unverified")
            and item.verification in (Verification.PASS, Verification.UNVERIFIED)
        ):
            # The verdict stood already: it is not recorded twice.
            verdict = Verdict.PASS
            judgement = Judgement(
                item.verification, verdict, item.base_tree, item.tree, item.reason
            )
        else:
            raise self._different("check the candidate", logged)
        self._walk = replace(self._walk, judgement=judgement)
        return False

    def _commit(self, step: Commit) -> bool:
        told, logged, apart = f"commit as {step.status}", self._next(), False
        if _gave_up(logged, PauseReason.COMMIT_FAILED):
            return True
        # A project may do without commits: then the receipt follows at once.
        if not step.empty and (logged is None or logged.kind in ("turn", "intent")):
            if not self._walk.counted and self._walk.seen.turn:
                turn = Record(count_turn(self._walk), edge=False, counts=True)
                self._record(turn, told)
            logged = self._next()
            key = str(logged.data.get("key")) if logged is not None else ""
            walk = self._walk
            self._record(Record(facts.intended(walk.state, "commit", key, walk.seen.now)), told)
            logged, apart = self._next(apart=True), True
            if not self._own(logged, "item_done", "item_unverified"):
                return True
        state, row = self._walk.state, _evidence(logged, "commit")
        if logged is None or row is None or json.loads(row.data).get("status") != step.status:
            raise self._different(told, logged)
        commit = next((p.values["commit"] for p in logged.puts if "commit" in p.values), "")
        key = next((str(p.key[0]) for p in logged.puts if p.table == "outbox"), "")
        receipt = facts.committed(state, str(commit), key, row, step.then)
        self._record(Record(receipt), told, apart=apart)
        self._walk = replace(self._walk, judgement=None)
        return False

    def _fail(self, step: Fail) -> bool:
        told, walk = f"the item fails: {step.why}", self._walk
        apart = walk.seen.tree != walk.state.working.base_tree
        logged = self._next(apart=apart)
        if apart and (early := self._next()) is not None:
            raise self._different(told, early)
        if _gave_up(logged, PauseReason.WORKSPACE_MOVED):
            return True
        if apart and not self._own(logged, "item_failed"):
            if self._receipt() is None and not self._died():
                raise self._different(told, None)
            return True
        row = _evidence(logged, "failed")
        if logged is None or row is None:
            raise self._different(told, logged)
        ref = str(logged.data.get("ref", ""))
        event = facts.item_failed(walk.state, step.why, ref, row)
        self._record(Record(event), told, apart=apart)
        left = self._next()
        if left is not None and json.loads(row.data).get("left"):
            self._record(Record(left), told)
        return False

    def _begin(self, step: Begin) -> bool:
        told, logged, state = f"begin {step.item}", self._next(), self._walk.state
        if _gave_up(logged, PauseReason.WORKSPACE_MOVED):
            return True
        row = _evidence(logged, "review")
        if logged is None or row is None:
            raise self._different(told, logged)
        review = replace(state, run=replace(state.run, phase=Phase.REVIEW))
        start = next((p.values for p in logged.puts if "base_tree" in p.values), {})
        tree, commit = str(start.get("base_tree", "")), str(start.get("base_commit", ""))
        event = facts.item_began(review, step.item, tree, commit, row, logged.why)
        self._record(Record(event), told)
        # Its criteria may be others than at the start, or its brief could not be made.
        logged = self._next()
        for reason in (PauseReason.SPEC_DEVIATION, PauseReason.WORKSPACE_MOVED):
            if _gave_up(logged, reason):
                return True
        if logged is not None:
            raise self._different(told, logged)
        return True

    def _own(self, logged: Event | None, *kinds: str) -> bool:
        """Whether an event is the receipt of this tick's effect.

        A crash, or a person's word that came meanwhile, ends a tick before its receipt.
        """
        if logged is None or logged.kind not in kinds:
            return False
        key = (self._walk.state.run.id, self._walk.state.working.id)
        return any(put.table == "items" and put.key == key for put in logged.puts)

    def _receipt(self) -> int | None:
        """Where, before the next tick, it says that this tick's item failed; not by a person."""
        for at in self._between():
            event = self._rows[at].event
            if self._own(event, "item_failed") and _evidence(event, "failed") is not None:
                return at
        return None

    def _died(self) -> bool:
        """Whether the tick may have ended in the middle of an effect: nobody went on from it."""
        rest = [self._rows[at].event.kind for at in self._between()]
        over = self._at + len(rest) + 1 == len(self._rows)
        return over or not {"resumed", "run_paused", "run_stopped"}.isdisjoint(rest)

    def _between(self) -> Iterator[int]:
        """The rows from here to the next tick."""
        for at in range(self._at + 1, len(self._rows)):
            if self._rows[at].event.kind == "tick":
                return
            yield at


def _gave_up(event: Event | None, reason: PauseReason) -> bool:
    """Whether an act was tried and could not be carried out."""
    puts = event.puts if event is not None else ()
    return any(p.table == "runs" and p.values.get("pause_reason") == reason for p in puts)


def _evidence(event: Event | None, kind: str) -> Evidence | None:
    """The evidence row of a kind that an event sets."""
    for put in event.puts if event is not None else ():
        if put.table == "evidence" and put.values.get("kind") == kind:
            return Evidence(id=str(put.key[0]), **put.values)  # type: ignore[arg-type]
    return None


def _judgement(row: Evidence, event: Event) -> tuple[Judgement, bool]:
    """The judgement of an evidence row; and whether its failures' identity follows from it."""
    told = json.loads(row.data)
    lists: dict[str, tuple[str, ...]] = {}
    for field in fields(Judgement):
        kept = told.get(field.name)
        if isinstance(kept, list) and field.name != "checks":
            if len(kept) > facts.NAMES:
                # Names that are only counted, so that the row comes out as it was.
                more = int(kept[-1].removeprefix("+").removesuffix(" more"))
                kept = [*kept[: facts.NAMES], *[""] * more]
            lists[field.name] = tuple(kept)
    names = {field.name for field in fields(CheckRecord)}
    checks = []
    for put in event.puts:
        if put.table == "checks":
            values = {k: v for k, v in put.values.items() if k in names}
            values |= {"cached": bool(values["cached"]), "verdict": Verdict(str(values["verdict"]))}
            checks.append(CheckRecord(**values))  # type: ignore[arg-type]
    judgement = Judgement(
        verification=Verification(told["verification"]),
        verdict=Verdict(told["verdict"]),
        base_tree=told["base_tree"],
        tree=told["tree"],
        message=told.get("message", ""),
        origin=Origin(told["origin"]) if told.get("origin") else None,
        checks=tuple(checks),
        blocked=bool(told.get("blocked")),
        **lists,
    )
    cut = any(len(lists.get(n, ())) > facts.NAMES for n in ("failing", "regressions"))
    return judgement, not cut


def _plain(event: Event) -> tuple[str, object]:
    """An event as the log would give it back."""
    return event.kind, json.loads(encode(event))


def _told(event: Event) -> str:
    """What an event says, in a few words."""
    if "from" in event.data and "to" in event.data:
        return f"{event.data['from']} → {event.data['to']} ({event.why})"
    return f"{event.kind}: {event.why}" if event.why else event.kind


def _parts(logged: Event, mine: Event) -> tuple[str, str]:
    """Where two events part: what today's says, and what the log says."""
    if (logged.kind, _told(logged)) != (mine.kind, _told(mine)):
        return _told(mine), _told(logged)
    for before, now in zip(logged.puts, mine.puts, strict=False):
        if before.table != now.table:
            return f"a row of {now.table}", f"a row of {before.table}"
        for name in [*before.values, *now.values]:
            if before.values.get(name) != now.values.get(name):
                where = f"{now.table} {' '.join(map(str, now.key))}: {name} is"
                return f"{now.values.get(name)!r}", f"{where} {before.values.get(name)!r}"
        if before.key != now.key:
            return f"{now.table} {now.key}", f"{before.table} {before.key}"
    if len(logged.puts) != len(mine.puts):
        return f"{len(mine.puts)} rows", f"{len(logged.puts)} rows"
    return f"{json.dumps(mine.data)} from {mine.evidence}", (
        f"{json.dumps(logged.data)} from {logged.evidence}"
    )
