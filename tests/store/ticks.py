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


def observed(key: str, run: str = "r1", kind: str = "review", **put: str) -> Event:
    """An event that records one evidence row and names it."""
    return Event("observed", "Seen", (evidence(run, key, kind, **put),), (key,))


def slice_(key: str, item: str, superseded: int = 0) -> Put:
    return Put(
        "slices",
        (key,),
        {
            "run": "r1",
            "item": item,
            "objective": f"Objective {key}",
            "scope": '["**"]',
            "origin": "agent",
            "plan_version": 1,
            "superseded": superseded,
        },
    )


def gate(key: str, slice_id: str, item: str = "0") -> Put:
    values = {"run": "r1", "item": item, "slice": slice_id, "target": key, "origin": "given"}
    return Put("gates", (key,), values)


def failure(key: str, item: str, message: str, at: float) -> Put:
    return Put(
        "failures",
        (key,),
        {"run": "r1", "item": item, "signature": key, "message": message, "at": at},
    )


def correction(number: int, superseded_by: str | None = None) -> Put:
    return Put(
        "corrections",
        (f"c{number}",),
        {
            "run": "r1",
            "item": "",
            "plan_version": number,
            "text": f"Correction {number}",
            "at": float(number),
            "superseded_by": superseded_by,
        },
    )


def approach(key: str, item: str, retired_at: float | None, readmitted_by: str | None) -> Put:
    return Put(
        "approaches",
        (key,),
        {
            "run": "r1",
            "item": item,
            "key": key,
            "objective": f"Try {key}",
            "status": "open" if retired_at is None or readmitted_by else "retired",
            "retired_at": retired_at,
            "readmitted_by": readmitted_by,
        },
    )
