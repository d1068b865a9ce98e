"""Builders for the ticks that the tests of this folder write."""

from __future__ import annotations

from rage_plugin.core.events import Event, Put, Scalar


def run_row(workspace: str = "/w", **values: Scalar) -> dict[str, Scalar]:
    return {
        "target": "#5",
        "title": "Five",
        "status": "active",
        "phase": "review",
        "host": "embedded",
        "session": "s1",
        "workspace": workspace,
        "started_at": 1.0,
        **values,
    }


def started(run: str = "r1", workspace: str = "/w", items: int = 2) -> Event:
    """The first event of a run."""
    puts = [Put("runs", (run,), run_row(workspace))]
    puts += [
        Put("items", (run, str(n)), {"position": n, "title": f"Item {n}"}) for n in range(items)
    ]
    return Event("run_started", f"Run {run} began", tuple(puts))


def evidence(run: str, key: str, kind: str, item: str = "0", tree: str = "t") -> Put:
    return Put(
        "evidence",
        (key,),
        {"run": run, "item": item, "kind": kind, "tree": tree, "data": "{}", "at": 2.0},
    )
