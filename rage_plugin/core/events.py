"""An event: one fact, why it holds, and the rows that it sets.

State is what results from applying every event's rows in order, so it can be rebuilt from the log
by the same code that wrote it, and a table can never say something that no event said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | None
GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Put:
    """Set columns of one row: insert it, or update the columns named."""

    table: str
    key: tuple[str | int, ...]
    """Primary key in the table's order."""
    values: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `why` is a plain sentence that `rage why` can print as it is."""

    kind: str
    why: str
    puts: tuple[Put, ...] = ()
    evidence: tuple[str, ...] = ()
    """Ids of the evidence rows that a transition names (law 4)."""
    data: Mapping[str, object] = field(default_factory=dict)
    """What the decision was made from, as JSON values, for replay."""


def encode(event: Event) -> str:
    """The event's body as canonical JSON: the text that is stored and hashed."""
    return json.dumps(
        {
            "why": event.why,
            "puts": [[p.table, list(p.key), dict(p.values)] for p in event.puts],
            "evidence": list(event.evidence),
            "data": dict(event.data),
        },
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    )


def decode(kind: str, body: str) -> Event:
    """The event that `encode` wrote."""
    raw = json.loads(body)
    return Event(
        kind=kind,
        why=raw["why"],
        puts=tuple(Put(t, tuple(k), v) for t, k, v in raw["puts"]),
        evidence=tuple(raw["evidence"]),
        data=raw["data"],
    )


def link(
    previous: str, run: str, seq: int, at: float, kind: str, body: str, version: int | None = None
) -> str:
    """The hash of an event row: SHA-256 over its columns and the hash of the row before it.

    Without `version` it is the hash as the first databases hold it, which did not cover that.
    """
    columns = [previous, run, seq, repr(at), kind, body]
    text = json.dumps(columns if version is None else [*columns, version], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
