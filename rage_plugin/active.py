"""The hooks of an active run, registered when it starts and unregistered when it ends.

A fault in here never harms the chat (law 9): it is written to a log, the run pauses with a reason,
the person sees one line, and the host gets a neutral result. Only the guard fails closed.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pluggy

from . import bootstrap, briefing, commands, control, holder, kill, loop, report, resume, wish
from .answers import answer, owned
from .bound import Bound
from .core import limits
from .core.errors import RageError, UsageError
from .core.model import PauseReason, RunState, RunStatus
from .flag import lower_flag, raise_flag
from .guard import decide as guard
from .hookspecs import (
    Allow,
    Block,
    Continue,
    Hold,
    ModelRequest,
    Reply,
    Session,
    Stop,
    ToolCall,
    ToolOutcome,
    Turn,
    Usage,
    hookimpl,
)

if TYPE_CHECKING:
    from .plugin import RagePlugin


class ActiveHooks:
    """Everything that needs a run; `RagePlugin` creates it on the first command."""

    def __init__(self, manager: pluggy.PluginManager, plugin: RagePlugin) -> None:
        self._manager = manager
        self._plugin = plugin
        self._lock = threading.RLock()
        """Hooks may arrive on several threads."""
        self.bound: dict[tuple[str, str], Bound] = {}
        self._rooms: dict[str, bootstrap.Workspace] = {}
        self._calls: dict[tuple[str, str], int] = {}
        """Model calls of a chat when its last run ended, where the host counts them."""

    # --- what a person types ---------------------------------------------------------------

    def message(self, session: Session, text: str) -> Reply | None:
        """A command is answered; another message of an active run's session is a correction."""
        try:
            if commands.is_command(text):
                return self._command(session, commands.parse(text))
            bound = self._driven(session)
            if bound is not None:
                self._correction(bound, text)
                return None
            return self._wish(session, text)
        except UsageError as error:
            return Reply(error.line(), error=True)
        except RageError as error:
            return Reply(error.line(), error=True)
        except Exception:  # noqa: BLE001 - law 9
            return Reply(self._fault(session), error=True)

    def _command(self, session: Session, command: commands.Command) -> Reply:
        if command.verb == "help":
            return Reply(commands.help_text())
        room = self._room(session)
        room.settle()
        if command.verb == "context":
            self._idle(session, room)
        try:
            result = answer(room, session, command, self._plugin.progress)
        except KeyboardInterrupt:
            self._interrupted(session, room)
            raise
        if result.state is not None and command.verb not in ("status", "report"):
            wish.void(room.state)
        if result.state is not None:
            self._switch(session, room, result.state)
            if result.then is not None:
                self._book(room, session, result.state, "brief", result.then)
        return Reply(result.text, then=result.then, error=result.failed)

    def _switch(self, session: Session, room: bootstrap.Workspace, state: RunState) -> None:
        """Register or unregister the other hooks as the run now stands."""
        run, key = state.run, (session.host, session.id)
        known = self.bound.get(key)
        if run.status is not RunStatus.ACTIVE:
            self._release(run.id)
        elif known and (known.run, known.lease) == (run.id, loop.Lease.of(run)):
            # It drives on: a turn under way keeps its beginning and the plan that it began under.
            if not known.working:
                known.plan = run.plan_version
        elif (run.host, run.session, run.holder) == (*key, holder.holder()):
            self._idle(session, room)
            room.accounting.begin(run.id)
            self._flag(raise_flag, run.id)
            with self._lock:
                since = room.parts.clock.monotonic()
                lease = loop.Lease.of(run)
                self.bound[key] = Bound(run.id, room, session, lease, since, run.plan_version)
                if not self._manager.is_registered(self):
                    self._manager.register(self)
            kill.driving(room.state, run.id, session.one_run)

    def _release(self, run: str) -> None:
        """A run rests: its hooks are gone and the calls of its chat are idle ones again."""
        self._flag(lower_flag, run)
        self._unbind(run)

    def _unless_killed(self, bound: Bound) -> Callable[[str], None]:
        """Told before each check and each effect of a tick: none begins once the run is killed."""

        def tell(line: str) -> None:
            if kill.ordered(bound.room.state, bound.run):
                raise RageError("The run was killed", kept="Commits stay", next="/rage report")
            self._plugin.progress(line)

        return tell

    def _let_go(self, bound: Bound, state: RunState) -> None:
        """A run is no longer this session's: it rests, or another session took it over."""
        if bound.holds(state):
            self._release(bound.run)
        else:
            self._unbind(bound.run)

    def _unbind(self, run: str) -> None:
        """This process drives the run no more; whoever drives it now keeps the flag up."""
        with self._lock:
            for key in [k for k, b in self.bound.items() if b.run == run]:
                gone = self.bound.pop(key)
                session = gone.session
                kill.rest(gone.room.state, run)
                self._calls[key] = session.calls() if session.calls else 0
            if not self.bound and self._manager.is_registered(self):
                self._manager.unregister(self)

    def _idle(self, session: Session, room: bootstrap.Workspace) -> None:
        """Book the calls of a chat without a run, where its host counts them."""
        key = (session.host, session.id)
        if key in self.bound or session.calls is None:
            return
        calls = session.calls()
        if idle := calls - self._calls.get(key, 0):
            room.accounting.idle(session.id, idle, room.parts.clock.now())
        self._calls[key] = calls

    def _interrupted(self, session: Session, room: bootstrap.Workspace) -> None:
        """A command was interrupted while it worked on this session's run: that run waits."""
        run = room.store.active_run(room.parts.workspace)
        if run is not None and (run.host, run.session) == (session.host, session.id):
            detail = "Interrupted while a command was carried out"
            control.interrupt(room.parts, run.id, PauseReason.INTERRUPT, detail)
            self._release(run.id)

    def _flag(self, edit: Callable[[str], None], run: str) -> None:
        """Without the flag the hosts that look for it stay idle; this session's run goes on."""
        try:
            edit(run)
        except RageError as error:
            self._plugin.progress(error.line())

    def _correction(self, bound: Bound, text: str) -> None:
        state = control.correct(bound.room.parts, text, bound.run)
        if not bound.working:
            bound.plan = state.run.plan_version  # the turn that begins with it is under it
        self._plugin.progress(f"correction {state.run.plan_version}: the plan was superseded")

    def _wish(self, session: Session, text: str) -> Reply | None:
        """A `rage start` or `rage resume` typed in a shell is taken up by the next message.

        The person's own message is not lost: it goes to the agent, with the brief if there is one.
        """
        state = bootstrap.known_state(session.workspace)
        wished = wish.take(state) if state is not None else None
        if wished is None:
            return None
        room = self._room(session)
        run = room.store.active_run(room.parts.workspace)
        if (run.id if run else "") != wished.run:
            return None
        owned(session)
        reply = self._command(session, commands.parse(wished.text))
        told = f"Taking up `{wished.text}`, typed in a shell {wished.age()}.\n{reply.text}"
        return Reply(told, then="\n\n".join(filter(None, (reply.then, text))), error=reply.error)

    def session_start(self, session: Session) -> None:
        """A run that was active under this very session goes on being its own."""
        try:
            owned(session)
            if bootstrap.known_state(session.workspace) is None:
                return
            room = self._room(session)
            state = resume.rebind(room.parts, session)
            if state is not None:
                self._switch(session, room, state)
        except RageError:
            return  # nothing of this session's is here
        except Exception:  # noqa: BLE001 - law 9
            self._fault(session)

    # --- the hooks of a run ----------------------------------------------------------------

    @hookimpl
    def rage_before_model_call(self, session: Session, request: ModelRequest) -> str | Hold | None:
        """The packet, for the main agent of the session that owns the run; first the budget."""
        bound = self._of(session)
        if bound is None:
            return None
        try:
            state = bound.state()
            if state is None:
                return None
            bound.begin(state.run.plan_version)
            if told := bound.alert(state):
                self._plugin.progress(told)
            if (reached := bound.unaffordable(state, request.tokens)) is not None:
                return Hold(f"{reached.detail}: the turn ends here")
            if request.purpose != "main" or request.depth > 0:
                return None
            text = briefing.packet(bound.room.parts, state)
            self._book(bound.room, session, state, "packet", text)
        except Exception:  # noqa: BLE001 - law 9
            self._fault(session)
            return None
        return text

    @hookimpl
    def rage_after_model_call(self, session: Session, usage: Usage) -> None:
        """Tokens as the provider counted them."""
        bound = self._of(session)
        if bound is None:
            return
        try:
            state = bound.room.store.load(bound.run)
            spent = (usage.input, usage.output)
            now = bound.room.parts.clock.now()
            bound.room.accounting.used(state, session.id, usage.purpose, spent, now)
        except Exception:  # noqa: BLE001 - law 9
            self._fault(session)

    @hookimpl
    def rage_before_tool_call(self, session: Session, call: ToolCall) -> Allow | Block | None:
        """Refuse what the guard refuses, and everything once the run was stopped or is spent."""
        bound = self._of(session)
        if bound is None:
            return None
        try:
            state = bound.state()
            if state is None:
                return Block("The run was paused, stopped or taken over. Rest now.")
            if limits.refused_call(state.run) or bound.unaffordable(state, 0) is not None:
                return Block("The budget of the run is spent. Rest now.")
            refusal = guard(call.name, call.args, bound.room.parts.root)
            if refusal is None and (error := bound.repeated(state, call)) is not None:
                refusal = (
                    "refused: the same call failed again and again and nothing changed in "
                    f"between ({error}). Do something different."
                )
        except Exception:  # noqa: BLE001 - a guard that cannot decide refuses (law 9)
            self._fault(session)
            return Block("RAGE could not check this call, so it was not run.")
        if refusal:
            bound.note({"tool": call.name, "refused": refusal})
            return Block(refusal)
        return None

    @hookimpl
    def rage_after_tool_call(self, session: Session, call: ToolCall, outcome: ToolOutcome) -> None:
        """An observation, never state."""
        bound = self._of(session)
        if bound is None:
            return
        try:
            bound.note({"tool": call.name, "status": outcome.status})
            if outcome.status != "ok":
                bound.note_failed(call, outcome)
        except Exception:  # noqa: BLE001 - law 9
            self._fault(session)

    @hookimpl
    def rage_turn_end(self, session: Session, turn: Turn) -> Continue | Stop | None:
        """One tick: what follows from what RAGE itself can see."""
        bound = self._of(session)
        if bound is None:
            return None
        try:
            return self._turn_end(bound, session, turn)
        except KeyboardInterrupt:
            return Stop(self._halt(bound, PauseReason.INTERRUPT, "Interrupted while checks ran"))
        except RageError as error:
            self._halt(bound, PauseReason.INTERNAL_FAULT, error.line())
            return Stop(error.line())
        except Exception:  # noqa: BLE001 - law 9
            return Stop(self._fault(session))

    def _turn_end(self, bound: Bound, session: Session, turn: Turn) -> Continue | Stop:
        room = bound.room
        ended, progress = bound.ended(turn), self._unless_killed(bound)
        ticked = loop.tick(room.parts, bound.run, bound.lease, ended, progress)
        bound.counted(ticked.state.run.plan_version)
        if not bound.holds(ticked.state):
            self._unbind(bound.run)
            return Stop(f"Another session took the run over. {report.status_line(ticked.state)}")
        if ticked.text is None:
            self._release(bound.run)
            return Stop(report.lines(report.report(room.store, bound.run)))
        if ticked.text not in (briefing.GO_ON, briefing.ASK_AGAIN):
            self._book(room, session, ticked.state, "brief", ticked.text)
        if "before_model" not in session.flags:
            return Continue(ticked.text)
        packet = briefing.packet(room.parts, ticked.state)
        self._book(room, session, ticked.state, "packet", packet)
        return Continue(f"{ticked.text}\n\n{packet}")

    @hookimpl
    def rage_session_end(self, session: Session) -> None:
        """The chat is over: the run waits for a person and belongs to nobody."""
        bound = self._of(session)
        if bound is None:
            return
        try:
            detail, fence = "The chat ended", bound.lease.fence
            state = control.interrupt(
                bound.room.parts, bound.run, PauseReason.SESSION_ENDED, detail, fence
            )
            self._let_go(bound, state)
        except Exception:  # noqa: BLE001 - law 9
            self._fault(session)

    # --- the rest --------------------------------------------------------------------------

    def report(self, session: Session) -> dict[str, Any]:
        """The report of the newest run of the workspace."""
        room = self._room(session)
        key = room.parts.workspace
        run = room.store.active_run(key) or room.store.last_run(key)
        if run is None:
            return report.no_report("none", control.NO_RUN)
        return dict(report.report(room.store, run.id))

    def close(self) -> None:
        """Unregister and close every database."""
        if self._manager.is_registered(self):
            self._manager.unregister(self)
        for room in self._rooms.values():
            room.close()
        self.bound.clear()
        self._rooms.clear()

    def _of(self, session: Session) -> Bound | None:
        """The run of exactly this session; an id that names nobody matches nobody."""
        bound = self.bound.get((session.host, session.id))
        if bound is not None and kill.ordered(bound.room.state, bound.run):
            self._release(bound.run)  # killed from a terminal, whatever the database says yet
            return None
        return bound

    def _driven(self, session: Session) -> Bound | None:
        """The session's run if it is still active: a shell may have stopped it meanwhile."""
        bound = self._of(session)
        if bound is None or bound.state() is not None:
            return bound
        self._let_go(bound, bound.room.store.load(bound.run))
        return None

    def _room(self, session: Session) -> bootstrap.Workspace:
        folder = session.workspace
        with self._lock:
            if folder not in self._rooms:
                self._rooms[folder] = bootstrap.open_workspace(folder)
            return self._rooms[folder]

    def _book(
        self, room: bootstrap.Workspace, session: Session, state: RunState, kind: str, text: str
    ) -> None:
        now = room.parts.clock.now()
        room.accounting.injected(state, session.id, kind, text, now)

    def _halt(self, bound: Bound, reason: PauseReason, line: str) -> str:
        """Pause the run, and where even that cannot be written let it go; a line about it."""
        try:
            fence = bound.lease.fence
            state = control.interrupt(bound.room.parts, bound.run, reason, line, fence)
            self._let_go(bound, state)
            return report.status_line(state)
        except Exception as error:  # noqa: BLE001 - law 9: the state itself may be what failed
            self._plugin.progress(f"the pause could not be recorded: {error}")
        self._release(bound.run)
        return line

    def _fault(self, session: Session) -> str:
        """Log a bug, pause the run and say so in one line."""
        log = bootstrap.log_fault(session.workspace, traceback.format_exc())
        bound = self._of(session)
        line = f"RAGE met an internal fault; your chat is untouched. The log is in {log}"
        if bound is not None:
            self._halt(bound, PauseReason.INTERNAL_FAULT, line)
            line += ". The run is paused. Next: /rage resume"
        return line
