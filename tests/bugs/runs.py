"""What tests here ask of a run."""

from __future__ import annotations

from rage_plugin.core.model import RunState

from ..machine.processes import Table
from ..machine.world import REPOSITORY

LINE = 'RAGE {"slice": "do it", "scope": ["src"]}'


def now(table: Table) -> RunState:
    """The newest run as the database has it."""
    store = table.open("").store
    run = store.last_run(REPOSITORY)
    assert run is not None
    return store.load(run.id)
