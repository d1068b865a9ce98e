"""What a tick costs on disk does not grow with the ticks before it.

Time needs a quiet machine and 100,000 ticks: `python -m benchmarks.ticks`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ticks import Measured
from rage_plugin.store import db

WINDOW, BETWEEN = 400, 1_000


@pytest.mark.timeout(400)
def test_bytes_a_tick_and_an_event_stay_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ticks of a real run; 1.5 KB an event with all the rows that it sets, indices included."""
    connect = db.Db._connect
    monkeypatch.setattr(db.Db, "_connect", lambda self, _: connect(self, "OFF"))
    measured = Measured(tmp_path / "grown", items=10, turns=200)
    first = measured.window(WINDOW, every=0)
    for _ in range(BETWEEN):
        measured.rehearsal.tick()
    last = measured.window(WINDOW, every=0)
    measured.close()
    assert 0.8 <= last.bytes_a_tick / first.bytes_a_tick <= 1.2
    assert max(first.bytes_an_event, last.bytes_an_event) <= 1_536
    assert first.events / WINDOW > 4
