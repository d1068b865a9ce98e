"""Order of work: dependencies, then (priority, id); cycles, missing ids and self-edges by path."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.errors import Refused
from rage_plugin.core.model import Item, ItemSpec, ItemState, Verification
from rage_plugin.core.order import arrange, find_cycle, natural, next_item, readiness, ready

IDS = [str(n) for n in range(12)] + ["5.2", "5.10", "login", "a1", "a10"]


def spec(item_id: str, *needed: str, priority: int = 0) -> ItemSpec:
    return ItemSpec(item_id, "", "", f"{item_id}.md", depends_on=needed, priority=priority)


def row(item_id: str, *needed: str, position: int = 0, **fields: Any) -> Item:
    plain = Item(run="r", id=item_id, position=position, title="", depends_on=json.dumps(needed))
    return replace(plain, **fields)


@st.composite
def acyclic(draw: st.DrawFn) -> list[ItemSpec]:
    ids = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=10))
    specs = []
    for n, item_id in enumerate(ids):
        needed = draw(st.lists(st.sampled_from(ids[:n]), max_size=3)) if n else []
        specs.append(spec(item_id, *needed, priority=draw(st.integers(-1, 1))))
    return specs


GRAPHS = st.dictionaries(
    st.sampled_from(IDS[:7]), st.lists(st.sampled_from(IDS[:7]), max_size=3), max_size=7
).map(lambda g: {i: [n for n in needed if n in g] for i, needed in g.items()})


@given(acyclic(), st.randoms(use_true_random=False))
def test_edges_hold_and_reading_order_does_not_matter(
    specs: list[ItemSpec], chance: random.Random
) -> None:
    """F034: topological, and the same under any permutation of the input."""
    ordered = arrange(specs)
    place = {s.id: n for n, s in enumerate(ordered)}
    assert sorted(place) == sorted(s.id for s in specs)
    assert all(place[n] < place[s.id] for s in specs for n in s.depends_on)
    shuffled = list(specs)
    chance.shuffle(shuffled)
    assert arrange(shuffled) == ordered


@given(acyclic())
def test_of_what_could_come_next_the_lowest_does(specs: list[ItemSpec]) -> None:
    """F034: at every step the lowest (priority, id) whose dependencies are done."""
    done: set[str] = set()
    for chosen in arrange(specs):
        able = [s for s in specs if s.id not in done and set(s.depends_on) <= done]
        assert chosen == min(able, key=lambda s: (s.priority, natural(s.id)))
        done.add(chosen.id)


@given(GRAPHS)
def test_a_reported_cycle_is_one(graph: Mapping[str, Sequence[str]]) -> None:
    """F033: each id on the path depends on the next, and there is a path exactly when needed."""
    cycle = find_cycle(graph)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(b in graph[a] for a, b in pairwise(cycle))
    else:
        arrange([spec(i, *needed) for i, needed in graph.items()])


@given(GRAPHS, st.randoms(use_true_random=False))
def test_the_same_cycle_is_reported_whatever_was_read_first(
    graph: dict[str, list[str]], chance: random.Random
) -> None:
    keys = list(graph)
    chance.shuffle(keys)
    assert find_cycle({k: graph[k] for k in keys}) == find_cycle(graph)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([spec("5", "5")], "An item depends on itself: #5 → #5. Next: remove the dependency"),
        ([spec("5", "7")], "There is no item 7: #5 → #7. Next: write item 7, or remove it"),
        (
            [spec("1", "3"), spec("2", "1"), spec("3", "2"), spec("4", "1")],
            "The dependencies form a cycle: #1 → #3 → #2 → #1",
        ),
        ([spec("5"), spec("5")], "Two items have the id 5: 5.md and 5.md"),
    ],
)
def test_refusals_name_the_path(specs: list[ItemSpec], message: str) -> None:
    """F033: cycle, missing id, self-edge."""
    with pytest.raises(Refused) as caught:
        arrange(specs)
    assert caught.value.line().startswith(message)


def test_ids_sort_as_people_count() -> None:
    ids = ["10", "5", "5.10", "5.2", "b", "a10", "a9", "007", "7"]
    assert sorted(ids, key=natural) == ["5", "5.2", "5.10", "007", "7", "10", "a9", "a10", "b"]


def test_a_long_chain_needs_no_recursion() -> None:
    chain = [spec(str(n), *([str(n + 1)] if n < 5000 else [])) for n in range(5001)]
    assert [s.id for s in arrange(chain)][:2] == ["5000", "4999"]


@given(acyclic(), st.data())
def test_ready_and_blocked(specs: list[ItemSpec], data: st.DataObject) -> None:
    """F034: ready is all dependencies done; blocked has a true path to something stuck."""
    states = {s.id: data.draw(st.sampled_from(["waiting", "done", "stuck", "busy"])) for s in specs}
    by_state = {k: [i for i in states if states[i] == k] for k in ("waiting", "done", "stuck")}
    needs = {s.id: s.depends_on for s in specs}
    waiting = {i: needs[i] for i in by_state["waiting"]}
    found = ready(waiting, by_state["done"], by_state["stuck"])
    assert list(found.ready) == [i for i, n in waiting.items() if set(n) <= set(by_state["done"])]
    for item_id, path in found.blocked.items():
        assert path[0] == item_id
        assert states[path[-1]] == "stuck"
        assert all(b in needs[a] for a, b in pairwise(path))
    assert not set(found.ready) & set(found.blocked)
    assert all(
        i in found.blocked for i, n in waiting.items() if any(states[d] == "stuck" for d in n)
    )


def test_the_rows_of_a_run() -> None:
    """Failed and unverified block whoever needs them; others go on in order."""
    rows = [
        row("1", state=ItemState.DONE, position=0),
        row("2", state=ItemState.FAILED, position=1),
        row(
            "3",
            state=ItemState.IN_PROGRESS,
            verification=Verification.UNVERIFIED,
            position=2,
        ),
        row("4", "2", position=3),
        row("5", "4", "1", position=4),
        row("6", "3", position=5),
        row("8", "1", "closed-before", position=7),
        row("7", "1", position=6),
        row("9", state=ItemState.IN_PROGRESS, position=8),
        row("10", "9", position=9),
    ]
    found = readiness(rows)
    assert found.ready == ("7", "8")
    assert dict(found.blocked) == {"4": ("4", "2"), "5": ("5", "4", "2"), "6": ("6", "3")}
    assert next_item(rows) == "7"
    assert next_item(r for r in rows if r.id in ("2", "4", "9", "10")) is None
    assert next_item([]) is None
