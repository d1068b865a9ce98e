"""Rows as events set them: evidence, and the puts that every builder of events shares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from .events import Put, Scalar
from .model import Evidence, RunState


def short_id(*parts: object) -> str:
    """A deterministic id of 12 hexadecimal digits: same parts, same id, in any process."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


def evidence(
    state: RunState,
    kind: str,
    tree: str,
    data: Mapping[str, object],
    at: float,
) -> Evidence:
    """An evidence row; its id follows from what it says."""
    run = state.run
    item = run.current_item or ""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, default=str)
    key = short_id(run.id, item, kind, tree, run.iteration, run.plan_version, text)
    return Evidence(key, run.id, item, kind, tree, text, at)


def without(values: dict[str, Scalar], *names: str) -> dict[str, Scalar]:
    """A row's columns but those named."""
    return {k: v for k, v in values.items() if k not in names}


def put_run(run: str, values: Mapping[str, Scalar]) -> Put:
    """Set columns of the run."""
    return Put("runs", (run,), values)


def put_item(run: str, item: str, values: Mapping[str, Scalar]) -> Put:
    """Set columns of an item."""
    return Put("items", (run, item), values)


def put_evidence(row: Evidence) -> Put:
    """Insert an evidence row."""
    values = {"run": row.run, "item": row.item, "kind": row.kind}
    return Put("evidence", (row.id,), {**values, "tree": row.tree, "data": row.data, "at": row.at})
