"""What RAGE put into the model's context, added up: the table and the JSON of `rage context`.

Pure: the ledger's sums come in, lines go out; SQL and hashing stay in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..store import LedgerSum

INACTIVE = "inactive"
CALL = "call"


@dataclass(frozen=True, slots=True)
class Injected:
    """What one run injected in one phase as one kind (`packet`, `brief`)."""

    run: str
    phase: str
    kind: str
    injections: int
    bytes: int
    tokens: int
    largest: int
    """Tokens of the largest single one."""


@dataclass(frozen=True, slots=True)
class RunShare:
    """RAGE's part of what a run's model calls carried (F027)."""

    run: str
    calls: int
    prompt_tokens: int
    """Input of all its model calls as the provider counted it; 0 where unknown."""
    injected_tokens: int

    @property
    def share(self) -> float | None:
        """Injected tokens for one token of prompt; None where the prompt is unknown."""
        return self.injected_tokens / self.prompt_tokens if self.prompt_tokens else None


@dataclass(frozen=True, slots=True)
class Account:
    """The whole ledger: idle and active calls, and what was put into them."""

    inactive_calls: int
    inactive_bytes: int
    inactive_tokens: int
    active_calls: int
    active_bytes: int
    active_tokens: int
    largest_tokens: int
    largest_packet: int
    estimated: bool
    """Whether any of the tokens are estimates."""
    parts: tuple[Injected, ...]
    runs: tuple[RunShare, ...]
    problems: tuple[str, ...]
    """What is wrong with the ledger's chain; empty when it holds."""

    @property
    def calls(self) -> int:
        """Every model call that was seen."""
        return self.inactive_calls + self.active_calls

    @property
    def tokens_per_call(self) -> float:
        """Injected tokens for one call of an active run."""
        return self.active_tokens / self.active_calls if self.active_calls else 0.0


def account(sums: Iterable[LedgerSum], problems: Sequence[str]) -> Account:
    """The account of a ledger from its sums and what its verification found."""
    rows = list(sums)
    idle = [r for r in rows if r.kind == INACTIVE]
    calls = [r for r in rows if r.kind == CALL]
    injected = [r for r in rows if r.kind not in (INACTIVE, CALL)]
    return Account(
        inactive_calls=sum(r.calls for r in idle),
        inactive_bytes=sum(r.bytes for r in idle),
        inactive_tokens=sum(r.tokens for r in idle),
        active_calls=sum(_calls(injected, calls).values()),
        active_bytes=sum(r.bytes for r in injected),
        active_tokens=sum(r.tokens for r in injected),
        largest_tokens=max((r.peak_tokens for r in injected), default=0),
        largest_packet=max((r.peak_tokens for r in injected if r.kind == "packet"), default=0),
        estimated=any(r.estimated for r in injected),
        parts=_parts(injected),
        runs=_runs(injected, calls),
        problems=tuple(problems),
    )


def _calls(injected: Sequence[LedgerSum], calls: Sequence[LedgerSum]) -> dict[str, int]:
    """Model calls of each run: those that came back, or the packets where a host reports none."""
    found: dict[str, int] = {}
    for run in dict.fromkeys(r.run or "" for r in [*injected, *calls]):
        back = sum(r.calls for r in calls if (r.run or "") == run)
        sent = sum(r.calls for r in injected if (r.run or "") == run and r.kind == "packet")
        found[run] = max(back, sent)
    return found


def _parts(injected: Sequence[LedgerSum]) -> tuple[Injected, ...]:
    """By run, phase and kind; purposes are added up."""
    groups: dict[tuple[str, str, str], list[LedgerSum]] = {}
    for row in injected:
        groups.setdefault((row.run or "", row.phase, row.kind), []).append(row)
    return tuple(
        Injected(
            *key,
            injections=sum(r.calls for r in rows),
            bytes=sum(r.bytes for r in rows),
            tokens=sum(r.tokens for r in rows),
            largest=max(r.peak_tokens for r in rows),
        )
        for key, rows in groups.items()
    )


def _runs(injected: Sequence[LedgerSum], calls: Sequence[LedgerSum]) -> tuple[RunShare, ...]:
    return tuple(
        RunShare(
            run=run,
            calls=count,
            prompt_tokens=sum(r.input_tokens for r in calls if (r.run or "") == run),
            injected_tokens=sum(r.tokens for r in injected if (r.run or "") == run),
        )
        for run, count in _calls(injected, calls).items()
    )


def as_json(found: Account) -> dict[str, object]:
    """The account as JSON values, for `rage context --json`."""
    return {
        "calls": found.calls,
        "inactive": {
            "calls": found.inactive_calls,
            "bytes": found.inactive_bytes,
            "tokens": found.inactive_tokens,
        },
        "active": {
            "calls": found.active_calls,
            "bytes": found.active_bytes,
            "tokens": found.active_tokens,
            "tokens_per_call": round(found.tokens_per_call, 1),
            "largest_tokens": found.largest_tokens,
            "largest_packet": found.largest_packet,
        },
        "estimated": found.estimated,
        "by_part": [asdict(part) for part in found.parts],
        "by_run": [
            asdict(run) | {"share": None if run.share is None else round(run.share, 4)}
            for run in found.runs
        ],
        "chain": {"intact": not found.problems, "problems": list(found.problems)},
    }


def lines(found: Account) -> str:
    """The account as a table for a person."""
    about = "≈ " if found.estimated else ""
    text = [
        _sentence("inactive", found.inactive_calls, found.inactive_bytes, found.inactive_tokens),
        _sentence("active", found.active_calls, found.active_bytes, found.active_tokens, about)
        + f"; {found.tokens_per_call:,.0f} a call, largest {found.largest_tokens:,}",
    ]
    if found.parts:
        text += ["", *_table(found.parts)]
    for run in found.runs:
        if run.share is not None:
            text.append(
                f"{run.run}: {run.injected_tokens:,} of {run.prompt_tokens:,} prompt tokens"
                f" ({run.share:.1%}) in {run.calls:,} call{'s' * (run.calls != 1)}"
            )
    if found.estimated:
        text.append("≈ no tokenizer was available for some rows: their tokens are estimated")
    text.append(f"chain: {'; '.join(found.problems) if found.problems else 'verified'}")
    return "\n".join(text)


def _sentence(name: str, calls: int, size: int, tokens: int, about: str = "") -> str:
    """One line of the summary."""
    return (
        f"{name + ':':10}{calls:,} model call{'s' * (calls != 1)}, "
        f"{size:,} bytes, {about}{tokens:,} tokens added"
    )


def _table(parts: Sequence[Injected]) -> list[str]:
    """One row a run, phase and kind, with the sum beneath."""
    head = ("run", "phase", "kind", "times", "bytes", "tokens", "largest")
    body = [
        (
            p.run,
            p.phase,
            p.kind,
            f"{p.injections:,}",
            f"{p.bytes:,}",
            f"{p.tokens:,}",
            f"{p.largest:,}",
        )
        for p in parts
    ]
    total = (
        *("total", "", ""),
        f"{sum(p.injections for p in parts):,}",
        f"{sum(p.bytes for p in parts):,}",
        f"{sum(p.tokens for p in parts):,}",
        f"{max(p.largest for p in parts):,}",
    )
    rows = [head, *body, total]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
