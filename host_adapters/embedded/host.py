"""The host: a chat in which a person's line is answered by RAGE or by the agent.

The outer loop is `send`: command → reply; else a turn of the agent, then `rage_turn_end`, which may
begin the next one. `chat.py` and `oneshot.py` are the two ways in.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rage_plugin import Continue, Reply, Session, Stop, Turn

from .conversation import Conversation
from .hooks import Hooks
from .models import Model, load_model
from .tools import COMMAND_TIMEOUT_S, Tools
from .turn import MAX_MODEL_CALLS, Agent
from .ui import Terminal, Ui

if TYPE_CHECKING:
    from rage_plugin import RagePlugin

BACKOFF_S = (1.0, 60.0)
"""The pause after a provider error that RAGE continues from: first, and at most."""
MAX_CONTINUES = 10_000
"""Messages in a row that the host takes from a plugin without a word of the person."""


class Host:
    """One chat in one workspace with one model. Registering RAGE is two lines of `__init__`."""

    def __init__(
        self,
        workspace: str,
        model: str | Model,
        ui: Ui | None = None,
        with_rage: bool = True,
        session_id: str | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        max_model_calls: int = MAX_MODEL_CALLS,
        command_timeout_s: float = COMMAND_TIMEOUT_S,
    ) -> None:
        """Raises `ModelSetupError` when the model's name or script is wrong."""
        ui = ui or Terminal(sys.stdout)
        self.ui = ui
        self.session = Session(
            host="embedded",
            id=session_id or uuid.uuid4().hex,
            workspace=str(Path(workspace).resolve()),
            calls=lambda: self.agent.calls,
        )
        self.hooks = Hooks(self.session, ui.note)
        self.conversation = Conversation()
        self.agent = Agent(
            self.conversation,
            load_model(model) if isinstance(model, str) else model,
            Tools(self.session.workspace, command_timeout_s),
            self.hooks,
            ui,
            max_model_calls,
        )
        self.rage: RagePlugin | None = None
        if with_rage:
            from rage_plugin import RagePlugin  # noqa: PLC0415 - absent means not even imported

            self.rage = RagePlugin(self.hooks.manager, progress=ui.progress)
            self.hooks.manager.register(self.rage)
        self.last_turn: Turn | None = None
        self._sleep = sleep

    def send(self, line: str) -> Reply | None:
        """A line of the person, worked on until everything rests; RAGE's reply if it had one."""
        reply = self.command(line)
        if reply is None:
            self._work(line)
        return reply

    def command(self, line: str) -> Reply | None:
        """RAGE's reply to a line and the work it begins; None when the line is not for RAGE."""
        try:
            reply = self.hooks.user_message(line)
        except KeyboardInterrupt:
            self.ui.note("interrupted")
            self.last_turn = Turn("", "interrupt")
            return Reply("", error=True)
        if reply is None:
            return None
        self.ui.say(reply.text)
        if reply.then is not None:
            self._work(reply.then)
        return reply

    def close(self) -> None:
        """The chat is over: RAGE releases the run and closes what it opened."""
        self.hooks.session_end()
        if self.rage is not None:
            self.rage.close()

    def chat(self) -> int:
        """Read lines until the end of input; the exit code."""
        from .chat import chat  # noqa: PLC0415

        return chat(self)

    def run(self, target: str, options: Sequence[str] = (), *, as_json: bool = False) -> int:
        """Work on one target without a person; the exit code of `rage run`."""
        from .oneshot import run  # noqa: PLC0415

        # This process is here for the run alone: `rage kill` may end it too.
        self.session = self.hooks.session = replace(self.session, one_run=True)
        return run(self, target, options, as_json=as_json)

    def _work(self, text: str) -> None:
        """Turns of the agent until it rests."""
        errors = 0
        for _ in range(MAX_CONTINUES):
            turn = self.last_turn = self.agent.turn(text)
            self._tell(turn)
            errors = errors + 1 if turn.reason == "error" else 0
            following = self._turn_end(turn)
            if isinstance(following, Stop):
                self.ui.say(following.report)
            if not isinstance(following, Continue):
                return
            if errors and not self._back_off(errors):
                return
            text = following.text
        self.ui.note(f"the host's limit of {MAX_CONTINUES:,} turns in a row is reached")

    def _turn_end(self, turn: Turn) -> Continue | Stop | None:
        """RAGE's word on the finished turn. An interrupt is final: nothing continues from it."""
        try:
            following = self.hooks.turn_end(turn)
        except KeyboardInterrupt:
            if turn.reason == "interrupt":
                return None
            self.ui.note("interrupted")
            self.last_turn = Turn(turn.text, "interrupt")
            return self._turn_end(self.last_turn)
        return None if turn.reason == "interrupt" and isinstance(following, Continue) else following

    def _back_off(self, errors: int) -> bool:
        """Wait before the next try; False when the person interrupted the waiting."""
        first, most = BACKOFF_S
        try:
            self._sleep(min(most, first * 2 ** min(errors - 1, 16)))
        except KeyboardInterrupt:
            self.ui.note("interrupted")
            self.last_turn = Turn("", "interrupt")
            following = self._turn_end(self.last_turn)
            if isinstance(following, Stop):
                self.ui.say(following.report)
            return False
        return True

    def _tell(self, turn: Turn) -> None:
        if turn.reason == "error":
            self.ui.note(f"the model call failed: {turn.error}")
        elif turn.reason == "interrupt":
            self.ui.note("interrupted; the turn is over, the chat goes on")
