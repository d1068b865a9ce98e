"""States for packet and brief: a typical one, and the strategies that bend every text of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from rage_plugin.core.config import Limits
from rage_plugin.core.limits import dump
from rage_plugin.core.model import (
    Approach,
    Correction,
    Failure,
    Gate,
    Item,
    ItemSpec,
    Phase,
    Run,
    RunState,
    RunStatus,
    Slice,
)

RUN = Run(
    id="3fa9c01b",
    target="#5",
    title="Parser epic",
    status=RunStatus.ACTIVE,
    phase=Phase.GENERATE,
    host="embedded",
    session="s1",
    workspace="/w",
    started_at=0.0,
    current_item="5",
    limits=dump(Limits()),
)
ITEM = Item(
    run=RUN.id,
    id="5",
    position=0,
    title="Parser drops the last line",
    criteria=json.dumps(["A file without a final newline keeps its last line"]),
    gates=json.dumps(["tests/test_parser.py::test_last_line"]),
    iteration=3,
)
SLICE = Slice(
    id="sl1",
    run=RUN.id,
    item="5",
    objective="Keep the last line when no newline ends the file",
    scope=json.dumps(["src/parser.py", "tests/test_parser.py"]),
    origin="agent",
    plan_version=1,
)
GATE = Gate("g1", RUN.id, "5", "sl1", "tests/test_parser.py::test_last_line", "given")


def failed(message: str) -> tuple[Failure, ...]:
    """The failures of an item whose last one says this."""
    return (Failure("f", RUN.id, "5", "s", message),) if message else ()


def retired(objectives: Sequence[str]) -> tuple[Approach, ...]:
    """Approaches that were retired one after the other."""
    return tuple(
        Approach(f"a{n}", RUN.id, "5", f"k{n}", text, "retired", float(n))
        for n, text in enumerate(objectives)
    )


def told(texts: Sequence[str]) -> tuple[Correction, ...]:
    """Corrections that hold, the newest last."""
    return tuple(
        Correction(f"c{n}", RUN.id, "5", n + 2, text, float(n)) for n, text in enumerate(texts)
    )


TYPICAL = RunState(
    RUN,
    {"5": ITEM},
    slice=SLICE,
    gates=(GATE,),
    failures=failed("fail: tests/test_parser.py::test_last_line: assert ['a'] == ['a', 'b']"),
    corrections=told(("Use pathlib, please",)),
    approaches=retired(("Append a newline to the file",)),
)
SPEC = ItemSpec(
    id="5",
    title=ITEM.title,
    body="Steps:\n\n1. read a file\n2. look at its last line\n",
    source="backlog/5-parser.md",
    criteria=("A file without a final newline keeps its last line",),
    gates=("tests/test_parser.py::test_last_line",),
)

# Characters that cost most tokens or mean something somewhere: rare scripts, emoji, controls,
# quotes, braces, surrogates.
NASTY = "😀👩\u200d💻漢字𐎀𒀀ﷺüß\u202e\u200b\x00\x1b[31m\n\r\t\"'`{}[]<>%|\\\ud800 aA1"
words = st.sampled_from(["RAGE {", "Gate: ", "\n[RAGE run ", "word ", "x" * 40, "<|endoftext|>"])
pieces = st.one_of(words, st.text(st.sampled_from(NASTY), max_size=12), st.text(max_size=8))
texts = st.builds(
    lambda part, more, times: (part + more) * times, pieces, pieces, st.sampled_from([0, 1, 3, 700])
)
lists = st.lists(texts, max_size=5)


@st.composite
def states(draw: st.DrawFn) -> RunState:
    """Any state that types allow, far beyond what the store would hold."""
    item = replace(
        ITEM,
        id=draw(texts),
        title=draw(texts),
        criteria=json.dumps(draw(lists)),
        gates=json.dumps(draw(lists)),
        iteration=draw(st.integers(0, 10**9)),
    )
    run = replace(
        RUN,
        id=draw(texts),
        title=draw(texts),
        phase=draw(st.sampled_from(Phase)),
        current_item=draw(st.sampled_from([item.id, None])),
    )
    piece = replace(SLICE, objective=draw(texts), scope=json.dumps(draw(lists)))
    gates = tuple(
        replace(GATE, target=t, verdict=draw(st.sampled_from(["", "pass", "fail"])))
        for t in draw(lists)
    )
    return RunState(
        run,
        {item.id: item},
        slice=draw(st.sampled_from([piece, None])),
        gates=gates,
        failures=failed(draw(texts)),
        corrections=told(draw(lists)),
        approaches=retired(draw(lists)),
    )


@st.composite
def specs(draw: st.DrawFn) -> ItemSpec:
    """Any item that a source could give."""
    return ItemSpec(
        id=draw(texts),
        title=draw(texts),
        body=draw(texts) + draw(texts),
        source=draw(texts),
        criteria=tuple(draw(lists) * draw(st.sampled_from([1, 40]))),
        gates=tuple(draw(lists) * draw(st.sampled_from([1, 40]))),
    )
