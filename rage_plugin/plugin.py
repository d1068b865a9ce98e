"""What a host registers: the activation hook, and the switch that turns the others on and off.

While no run is active only this class is registered, and it looks at nothing but the first word
of a message and whether one file exists. Everything else is imported when a command is typed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pluggy

from .flag import raised
from .hookspecs import Reply, Session, hookimpl

if TYPE_CHECKING:
    from .active import ActiveHooks


class RagePlugin:
    """Registers with a host's plugin manager; its other hooks exist only while a run is active.

    `manager` is the host's `pluggy.PluginManager("rage")` with `HostSpec` added. `progress` is
    told one short line whenever something over a second begins or ends.
    """

    def __init__(
        self,
        manager: pluggy.PluginManager,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._manager = manager
        self.progress = progress or (lambda line: None)
        self._active: ActiveHooks | None = None

    @hookimpl
    def rage_user_message(self, session: Session, text: str) -> Reply | None:
        """Answer `/rage …`; leave every other message alone."""
        if self.active or raised() or _for_rage(text):
            return self._hooks().message(session, text)
        return None

    @hookimpl
    def rage_session_start(self, session: Session) -> None:
        """Bind a run again that this very session owned."""
        if raised():
            self._hooks().session_start(session)

    def report(self, session: Session) -> dict[str, Any]:
        """The report of the newest run in the session's workspace, as scripts read it."""
        return self._hooks().report(session)

    @property
    def active(self) -> bool:
        """Whether a run is bound to a session of this process."""
        return self._active is not None and bool(self._active.bound)

    def close(self) -> None:
        """Close what was opened; a host calls it when it ends."""
        if self._active is not None:
            self._active.close()
            self._active = None

    def _hooks(self) -> ActiveHooks:
        if self._active is None:
            from .active import ActiveHooks  # noqa: PLC0415

            self._active = ActiveHooks(self._manager, self)
        return self._active


def _for_rage(text: str) -> bool:
    """Whether a message is a command; the grammar is loaded only when its first word fits."""
    if text.split(None, 1)[:1] not in (["/rage"], ["rage"]):
        return False
    from .commands import is_command  # noqa: PLC0415

    return is_command(text)
