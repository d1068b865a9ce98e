"""Books what a run's model calls carried and cost: the bridge from the hooks to the ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.model import RunState

if TYPE_CHECKING:
    from ..store import Ledger


class Accounting:
    """One a workspace, shared by threads. Reads the ledger once a run and counts on from there."""

    def __init__(self, ledger: Ledger, count: Callable[[str], int], exact: bool) -> None:
        self._ledger = ledger
        self._count = count
        self._exact = exact
        self._spent: dict[str, int] = {}
        self._lock = threading.RLock()

    def begin(self, run: str) -> None:
        """A run was bound here: another process may have spent on it since it was read last."""
        with self._lock:
            self._spent.pop(run, None)

    def idle(self, session: str, calls: int, at: float) -> None:
        """An interval without a run ended: so many calls, zero bytes, since no hook was there."""
        self._ledger.add(session, "inactive", at, calls=calls)

    def injected(self, state: RunState, session: str, kind: str, text: str, at: float) -> None:
        """A `packet` or a `brief` goes to the model."""
        self._ledger.add(
            session,
            kind,
            at,
            run=state.run.id,
            bytes=len(text.encode("utf-8", "replace")),
            tokens=self._count(text),
            estimated=not self._exact,
            phase=state.run.phase,
            iteration=state.run.iteration,
        )

    def used(
        self, state: RunState, session: str, purpose: str, tokens: tuple[int, int], at: float
    ) -> None:
        """A model call came back; `tokens` are input and output as the provider counted them."""
        run = state.run
        with self._lock:
            before = self.spent(run.id)
            self._ledger.add(
                session,
                "call",
                at,
                run=run.id,
                phase=run.phase,
                purpose=purpose,
                iteration=run.iteration,
                input_tokens=tokens[0],
                output_tokens=tokens[1],
            )
            self._spent[run.id] = before + sum(tokens)

    def spent(self, run: str) -> int:
        """Tokens of all calls of a run, also those of a process that is gone."""
        with self._lock:
            if run not in self._spent:
                self._spent[run] = self._ledger.spent(run)
            return self._spent[run]

    def unbooked(self, state: RunState) -> int:
        """Tokens that were spent since the run's state was written last."""
        return max(0, self.spent(state.run.id) - state.run.tokens)
