"""How a run that waits goes on: resume, adopt, an answer, a ruling.

Separate from `control.py`, whose words hold a run up. Each pause reason needs its own word of the
person (`core/dialogue.py`); a run that lacks it goes on waiting and says what it waits for.
"""

from __future__ import annotations

from dataclasses import replace

from . import briefing, control, loop
from .commands import Command
from .core import facts, lifecycle, limits
from .core.dialogue import needs
from .core.errors import Refused
from .core.events import Event
from .core.fold import apply
from .core.model import ItemSpec, ItemState, PauseReason, Run, RunState, RunStatus
from .core.ports import Progress
from .core.rows import evidence, put_run
from .holder import holder, liveness
from .hookspecs import Session
from .parts import Parts, write


def resume(parts: Parts, session: Session, command: Command, progress: Progress) -> loop.Ticked:
    """Bind the run to this session and take it as far as evidence goes without a model call.

    What a person typed with it (more to spend, `--confirm`) is recorded first; where the run needs
    more than that, it stays paused (F085).
    """
    run = control.current(parts)
    _refuse_driven(run, session)
    # More to spend for an item that came to much is a word that it may.
    may = command.confirm or command.budget is not None
    size = _size(parts, run.id) if may else (0, 0)

    def events(state: RunState) -> list[Event]:
        _refuse_driven(state.run, session)  # asked again: another resume may have been first
        now = parts.clock.now()
        said = _limited(state, command)
        if may:
            said += _confirmed(state, command, size, now)
        after = state
        for event in said:
            after = apply(after, event)
        if _waits(after, command):
            return said
        return [*said, lifecycle.resumed(after, (session.host, session.id), holder(), now)]

    state = write(parts, run.id, events)
    if state.run.status is not RunStatus.ACTIVE:
        return loop.Ticked(state, None)
    ticked = loop.tick(parts, run.id, loop.Lease.of(state.run), None, progress)
    if ticked.state.run.status is RunStatus.ACTIVE and ticked.text == briefing.GO_ON:
        return loop.Ticked(ticked.state, briefing.brief(parts, ticked.state))
    return ticked


def adopt(parts: Parts, session: Session, command: Command, progress: Progress) -> loop.Ticked:
    """Take over a run whose host is gone; one that lives, or another run, is refused (law 10)."""
    run = control.current(parts)
    if run.id != command.target:
        raise Refused(
            f"There is no run {command.target} to adopt: the one of this workspace is {run.id}",
            kept="Nothing was changed",
            next=f"/rage adopt {run.id}",
        )
    if run.status is RunStatus.ACTIVE:
        if not _own(run, session) and liveness(run.holder) == "alive":
            raise driven(run)
        # Paused first: whatever its old driver still writes is stale by then.
        detail = f"Adopted from {run.host}, session {run.session}"
        control.interrupt(parts, run.id, PauseReason.SESSION_ENDED, detail)
    return resume(parts, session, command, progress)


def rebind(parts: Parts, session: Session) -> RunState | None:
    """The active run of this very session whose process is gone: it goes on where it stood.

    None where there is none, or where a living process has the same id: a reused id is nobody's.
    """
    run = parts.store.active_run(parts.workspace)
    if run is None or run.status is not RunStatus.ACTIVE:
        return None
    if (run.host, run.session) != (session.host, session.id):
        return None
    if _own(run, session):
        return parts.store.load(run.id)
    if liveness(run.holder) != "dead":
        return None
    now, key = parts.clock.now(), (session.host, session.id)
    return write(parts, run.id, lambda s: [lifecycle.resumed(s, key, holder(), now)])


def _refuse_driven(run: Run, session: Session) -> None:
    if run.status is RunStatus.ACTIVE and not _own(run, session) and liveness(run.holder) != "dead":
        raise driven(run)


def driven(run: Run) -> Refused:
    """The refusal where another session drives the run, or may: the holder is named."""
    known = liveness(run.holder) == "alive"
    where = "" if known else ", on another machine or in a container"
    return Refused(
        f"Run {run.id} on {run.target} is being driven by {run.host}, session {run.session}{where}",
        kept="Nothing was changed",
        next="/rage pause it first" if known else f"/rage adopt {run.id}, if you know it is gone",
    )


def decided(parts: Parts, verb: str, word: str) -> RunState:
    """A person's answer to a question (`answer`), or their ruling on a deviation (`resolve`).

    It is recorded and told to the agent as a correction; the run still waits for its resume.
    """
    run = control.current(parts)
    state = parts.store.load(run.id)
    adopted = _as_it_stands(parts, state) if (verb, word) == ("resolve", "code") else None
    return write(parts, run.id, lambda s: _decision(s, verb, word, adopted, parts.clock.now()))


def _decision(
    state: RunState, verb: str, word: str, adopted: ItemSpec | None, now: float
) -> list[Event]:
    wanted = PauseReason.NEEDS_CLARIFICATION if verb == "answer" else PauseReason.SPEC_DEVIATION
    blocker = lifecycle.open_blocker(state)
    if blocker is None or blocker.reason != wanted:
        what = "an answer" if verb == "answer" else "a ruling"
        raise Refused(
            f"Run {state.run.id} does not wait for {what}",
            kept="Nothing was changed",
            next="/rage status",
        )
    events = [lifecycle.ruled(state, blocker, word, now)]
    after = apply(state, events[0])
    if adopted is not None:
        row = evidence(after, "ruling", "", {"adopted": blocker.detail}, now)
        events.append(facts.adopted(after, adopted, row))
        after = apply(after, events[-1])
    told = {
        "spec": f"What was agreed holds; take back: {blocker.detail}",
        "code": f"This stands as it is: {blocker.detail}",
    }
    said = told[word] if verb == "resolve" else f"{blocker.detail or 'The open question'}: {word}"
    own = word if verb == "answer" else ""
    return [*events, lifecycle.corrected(after, said[:2000], now, said=own)]


def _as_it_stands(parts: Parts, state: RunState) -> ItemSpec | None:
    """The current item as its source tells it, where its criteria are not those of the start."""
    blocker = lifecycle.open_blocker(state)
    if state.item is None or blocker is None:
        return None
    # Only what the person was asked about: the file may have been changed again since.
    if not blocker.detail or blocker.detail != briefing.deviation(parts, state):
        return None
    spec = briefing.spec_of(parts, state)
    if spec is None:
        raise Refused(
            f"{state.item.id} is no longer in {state.item.source}",
            kept="Nothing was changed",
            next=f"restore {state.item.source}, or /rage resolve spec",
        )
    return spec


def _limited(state: RunState, command: Command) -> list[Event]:
    """The limits that a person typed with the word that continues a run."""
    chosen = limits.typed(
        limits.read(state.run), command.budget, command.max_iterations, command.time, state
    )
    events: list[Event] = []
    if (text := limits.dump(chosen)) != state.run.limits:
        events.append(lifecycle.limits_changed(state, text, "A person changed the limits"))
    if state.run.pause_reason is PauseReason.LIMIT_ITEMS or command.items is not None:
        settled = sum(i.state is not ItemState.PENDING for i in state.items.values())
        more = None if command.items is None else settled + command.items
        put = put_run(state.run.id, {"items_limit": more})
        events.append(Event("limits", "A person changed how many items are worked on", (put,)))
    return events


def _confirmed(state: RunState, command: Command, size: tuple[int, int], now: float) -> list[Event]:
    """An item may go on although it came to much, or, with `--confirm`, holds a critical note."""
    blocker = lifecycle.open_blocker(state)
    critical = blocker is not None and blocker.reason == PauseReason.CRITICAL_ISSUE
    if critical and blocker is not None and command.confirm:
        return [lifecycle.ruled(state, blocker, "confirmed", now)]
    if state.run.pause_reason is PauseReason.CIRCUIT_BREAKER:
        return lifecycle.confirmed(state, size)
    return []


def _waits(state: RunState, command: Command) -> bool:
    """Whether a paused run needs more of the person than was said."""
    run = state.run
    if run.status is not RunStatus.PAUSED or run.pause_reason is None:
        return False
    match needs(run.pause_reason):
        case "answer" | "ruling":
            return lifecycle.open_blocker(state) is not None
        case "confirm":
            more = run.pause_reason is PauseReason.CIRCUIT_BREAKER and command.budget is not None
            return not (command.confirm or more)
        case "more":
            # The refused call asked for room; whether there is some shows at the next one.
            raised = command.budget is not None or command.time is not None
            run = replace(run, noop_turns=0, provider_errors=0, refused_call="")
            fresh = replace(state, run=run)
            reached = limits.run_limit(fresh) or limits.item_limit(fresh)
            refused = limits.refused_call(state.run) is not None and not raised
            return reached is not None or refused
    return False


def _own(run: Run, session: Session) -> bool:
    """Whether this process drives the run for this session; an id alone may be reused."""
    same = (run.host, run.session) == (session.host, session.id)
    return same and run.holder == holder()


def _size(parts: Parts, run: str) -> tuple[int, int]:
    """Files and lines that the current item's change comes to now."""
    state = parts.store.load(run)
    if state.item is None or not state.item.base_tree:
        return 0, 0
    base = loop.base_of(state.run, state.item)
    return parts.verifier.size(base.tree, parts.verifier.snapshot(base))
