"""Write the golden logs anew: `python -m tests.golden.make`.

They are data: whoever changes how a run is decided runs this, reads what differs, and commits it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rage_plugin.core.events import decode, encode

from ..core.simulated import Logged, Simulation
from .scenarios import SCENARIOS

FOLDER = Path(__file__).parent


def lines(sim: Simulation) -> str:
    """A log, one event a line."""
    return "".join(
        json.dumps(
            {"seq": r.seq, "version": r.version, "at": r.at, "kind": r.event.kind}
            | {"body": json.loads(encode(r.event))},
            ensure_ascii=False,
            sort_keys=True,
        )
        + "\n"
        for r in sim.rows
    )


def read(text: str) -> Sequence[Logged]:
    """The log that `lines` wrote."""
    rows = [json.loads(line) for line in text.splitlines()]
    return [
        Logged(r["seq"], r["version"], r["at"], decode(r["kind"], json.dumps(r["body"])))
        for r in rows
    ]


def main() -> None:
    for old in FOLDER.glob("*.jsonl"):
        old.unlink()
    for name, make in SCENARIOS.items():
        (FOLDER / f"{name}.jsonl").write_text(lines(make()), "utf-8")


if __name__ == "__main__":
    main()
