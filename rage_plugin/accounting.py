"""Books what a run's model calls carried and cost: the bridge from the hooks to the ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .core.model import RunState


class Ledger(Protocol):
    """What the store's ledger offers here."""

    def add(
        self,
        session: str,
        kind: str,
        at: float,
        *,
        run: str | None = None,
        calls: int = 1,
        bytes: int = 0,
        tokens: int = 0,
        estimated: bool = False,
        phase: str = "",
        purpose: str = "main",
        iteration: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None: ...

    def spent(self, run: str) -> int:
        """Input and output tokens of all calls of a run."""
        ...


class Accounting:
    """One a workspace. Reads the ledger once a run and counts on from there."""

    def __init__(self, ledger: Ledger, count: Callable[[str], int], exact: bool) -> None:
        self._ledger = ledger
        self._count = count
        self._exact = exact
        self._spent: dict[str, int] = {}

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
        self.spent(state.run.id)
        self._ledger.add(
            session,
            "call",
            at,
            run=state.run.id,
            phase=state.run.phase,
            purpose=purpose,
            iteration=state.run.iteration,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
        )
        self._spent[state.run.id] += sum(tokens)

    def spent(self, run: str) -> int:
        """Tokens of all calls of a run, also those of a process that is gone."""
        if run not in self._spent:
            self._spent[run] = self._ledger.spent(run)
        return self._spent[run]

    def unbooked(self, state: RunState) -> int:
        """Tokens that were spent since the run's state was written last."""
        return max(0, self.spent(state.run.id) - state.run.tokens)
