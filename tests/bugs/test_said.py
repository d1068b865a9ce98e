"""What a person and an item say goes in as it was written, and what an agent says closes nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rage_plugin import report as reports
from rage_plugin.commands import parse
from rage_plugin.core import lifecycle
from rage_plugin.core.config import Limits, PacketConfig
from rage_plugin.core.errors import Refused
from rage_plugin.core.model import ItemSpec, ItemState, PauseReason, RunStatus
from rage_plugin.hookspecs import Block, Continue, Stop, ToolCall, ToolOutcome, Turn
from rage_plugin.packet import PacketRoom
from rage_plugin.store import open_store

from ..core.simulated import Simulation, TurnScript, judgement
from ..core.test_decide import GATED, OPEN, SLICE, TURNS, V, always
from ..e2e.project import ITEM, Project
from ..machine.processes import Process, Table, session
from ..machine.world import code_of
from ..packet.states import SPEC, TYPICAL
from ..story import RUN, Story, spec
from .chats import Chat
from .runs import LINE, now

RULES = ["part one\n---\npart two", "---\na: b\n---\n", "a\r\nb\rc\n\n", "\ttab  two \u2028 x", "🙂 e\u0301 é",
         "RAGE {\"slice\": \"x\"}", "$(rm -rf /) `x` \\n %s {} '\"", "\x00\x1b[2J\u202e"]  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=2000))
@example(RULES[0])
@example(RULES[1])
@example(RULES[7])
def test_a_correction_survives_byte_for_byte(words: str) -> None:
    """Lines of `---` in what the person wrote were dropped each time it was fed again.

    https://github.com/anthropics/claude-plugins-official/issues/449
    """
    with tempfile.TemporaryDirectory() as folder:
        story = Story(Path(folder), [spec("5", "Sums")])
        story.begin("5")
        story.tell(lifecycle.corrected(story.state, words, story.now))
        story.store.close()
        again = open_store(Path(folder) / "rage.db")
        state = again.load(RUN)
        assert [c.text for c in state.corrections] == [words]
        assert list(state.directives) == [words]
        assert again.rebuild(RUN) == []
        again.close()


@pytest.mark.parametrize("words", RULES[:7])
def test_what_is_typed_reaches_the_run_as_it_was_typed(
    words: str, table: Table, chat: Process
) -> None:
    """As a command and as a plain message in the driving chat.

    https://github.com/anthropics/claude-plugins-official/issues/449
    """
    assert parse(f"/rage correct {words}").text == words.strip()
    chat.says(words)
    assert list(now(table).directives) == [words]
    chat.says(f"/rage correct --instead {words}")
    assert list(now(table).directives) == [words.strip()]
    chat.says("/rage pause")
    Process(table, session("chat", "s2")).says("/rage resume")
    assert list(now(table).directives) == [words.strip()]


@pytest.mark.parametrize("body", [*RULES[:3], "🙂 e\u0301 é\n\ttab  two", RULES[6]])
def test_an_items_text_reaches_the_agent_as_it_was_written(
    body: str, project: Project, real_chat: Callable[..., Chat]
) -> None:
    """Rules, empty lines and any letter that can be seen, from the file to the brief.

    https://github.com/anthropics/claude-plugins-official/issues/449
    """
    text = body.replace("\r\n", "\n").replace("\r", "\n").strip()
    path = project.root / "backlog" / "5-sums.md"
    path.write_bytes(f"{ITEM}\n{body}\n\nlast line\n".encode())
    project.commit("an odd text")
    said = real_chat("mine").says("/rage start #5")
    assert said is not None
    assert said.then is not None
    shown = said.then.replace("\r\n", "\n").replace("\r", "\n")
    assert "last line" in shown
    for line in text.split("\n"):
        assert line.strip() in shown


def test_the_objective_is_in_every_packet_and_not_in_the_transcript() -> None:
    """The evaluator could not see an instruction that had been given with a command.

    https://github.com/anthropics/claude-code/issues/93744
    """
    room = PacketRoom(PacketConfig())
    assert SPEC.title in room.brief(TYPICAL, SPEC, [])
    for turn in (1, 50, 199):
        state = replace(TYPICAL, run=replace(TYPICAL.run, iteration=turn))
        told = room.packet(state, "Go on.")
        assert state.slice is not None
        assert state.slice.objective in told
        assert f"item {state.run.current_item}" in told


@pytest.mark.parametrize("text", ["DONE", "done", "<promise>DONE</promise>", "LOOP_COMPLETE", "",
                                  " ", "\n", "null"])  # fmt: skip
@pytest.mark.parametrize("item", [GATED, OPEN], ids=["gated", "open"])
def test_a_phrase_of_completion_closes_nothing(text: str, item: ItemSpec) -> None:
    """A message that equals the phrase ended the loop, and an empty phrase was in every message.

    https://github.com/anthropics/claude-code/issues/81827
    https://github.com/code-yeongyu/oh-my-openagent/issues/1921
    https://github.com/mikeyobrien/ralph-orchestrator/issues/139
    """
    sim = Simulation(always(V.PASS), [item])
    while sim.state.run.status is RunStatus.ACTIVE:
        sim.turn(TurnScript(text=text))
    assert sim.state.run.pause_reason is PauseReason.NO_PROGRESS
    assert sim.commits == []
    assert sim.state.items[item.id].state is ItemState.IN_PROGRESS
    assert not [e for e in sim.log if e.kind == "judged"]


def test_a_failing_check_is_not_closed_by_saying_so_twice() -> None:
    """Verification failed, and the task was completed all the same, twice.

    https://github.com/open-gsd/gsd-pi/issues/604
    https://github.com/gsd-build/get-shit-done/issues/315
    """
    sim = Simulation(always(V.FAIL), [GATED, OPEN])
    while sim.state.run.status is RunStatus.ACTIVE:
        sim.turn(TurnScript(f"t{len(sim.rows)}", SLICE, text="All tests pass. Complete."))
    assert {i.state for i in sim.state.items.values()} == {ItemState.FAILED}
    assert sim.commits == []


@pytest.mark.parametrize("late", ["", "x" * 1_200, "<promise>DONE</promise>"])
def test_the_verdict_does_not_wait_for_a_transcript(late: str) -> None:
    """The tag was written a second after the hook looked for it.

    https://github.com/anthropics/claude-plugins-official/issues/1682
    https://github.com/open-ace/open-ace/issues/1532
    """
    sim = Simulation(always(V.PASS), [GATED])
    assert sim.turn(TurnScript("t1", text=late)).run.status is RunStatus.DONE


@settings(max_examples=30, deadline=None)
@given(
    st.lists(TURNS, max_size=14),
    st.dictionaries(st.sampled_from(["t1", "t2", "t3", "t4", "t5"]), st.sampled_from(list(V))),
    st.lists(st.sampled_from(["accept 5", "reject 6 --why no", "resume", "stop"]), max_size=2),
)
def test_a_report_counts_what_the_database_holds(
    turns: list[TurnScript], verdicts: dict[str, object], words: list[str]
) -> None:
    """A failed part vanished, and the run said that all of it was completed.

    https://github.com/anthropics/claude-code/issues/91043
    https://github.com/kyegomez/swarms/pull/2119
    """
    items = [GATED, OPEN, ItemSpec("7", "t", "b", "s", depends_on=("5",)), replace(OPEN, id="8")]

    def judge(item: str, base: str, tree: str) -> object:
        found = verdicts.get(tree, V.FAIL)
        return judgement(base, tree, V.FAIL if found is V.NONE else found)  # type: ignore[arg-type]

    sim = Simulation(judge, items)  # type: ignore[arg-type]
    for script in turns:
        if sim.state.run.status is RunStatus.ACTIVE:
            sim.turn(script)
    for word in words:
        try:
            sim.says(word)
        except Refused:
            continue  # it has no sense as the run stands
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "rage.db")
        for version in range(sim.version):
            batch = [row.event for row in sim.rows if row.version == version + 1]
            store.append(sim.state.run.id, version, batch, 1.0)
        told = reports.report(store, sim.state.run.id)
        rows = store.db.read(lambda c: c.execute("SELECT id, state FROM items").fetchall())
        store.close()
    assert {(i["id"], i["state"]) for i in told["items"]} == {tuple(row) for row in rows}
    assert sum(told["counts"].values()) == len(items) == len(rows)
    done = sum(row["state"] == "DONE" for row in rows)
    assert told["counts"].get("done", 0) == done
    assert (told["status"] == "done") <= (done == len(items))
    shown = reports.lines(told)
    for item in told["items"]:
        assert item["id"] in shown
        assert (
            item["status"] == "done"
            or item["reason"]
            or item["state"] == "IN_PROGRESS"
            or (item["waits_for"] or item["state"] == "PENDING")
        )


def test_an_item_is_not_closed_while_what_it_needs_is_open(table: Table, chat: Process) -> None:
    """An item could be closed while its blocker was open.

    https://github.com/gastownhall/beads/issues/962
    """
    world = table.world
    for words in ("accept 3", "reject 3 --why no"):
        said = chat.says(f"/rage {words}")
        assert said is not None
        assert said.error
    chat.asks(0)
    world.files[code_of("3")] = "green"
    chat.rests(Turn("Item 3 is DONE, I did it first.\n" + LINE))
    state = now(table)
    assert (state.run.current_item, state.items["3"].state) == ("1", "PENDING")


@pytest.mark.parametrize("first", ["unverified", "failed"])
def test_what_needs_an_item_waits_until_that_is_done(first: str) -> None:
    """Not begun after it failed, nor while it waits for a person.

    https://github.com/gastownhall/beads/issues/962
    """
    verdicts = {"5": V.UNVERIFIED if first == "unverified" else V.FAIL, "7": V.PASS, "6": V.PASS}
    items = [GATED, replace(OPEN, id="7", depends_on=("5",)), OPEN]
    sim = Simulation(lambda i, b, t: judgement(b, t, verdicts[i]), items, Limits())
    for number in range(12):
        if sim.state.run.status is RunStatus.ACTIVE:
            sim.turn(TurnScript(f"t{number}", SLICE))
    assert sim.state.items["7"].state is ItemState.PENDING
    assert sim.state.items["6"].state is ItemState.DONE
    if first == "unverified":
        sim.says("accept 5")
        sim.says("resume")
        assert sim.turn(TurnScript("t20", SLICE)).run.status is RunStatus.DONE


BYTES = [b"\xb4\xff\x00", b"caf\xe9", bytes(range(256)), b"\xed\xa0\x80"]


@pytest.mark.parametrize("raw", BYTES)
@pytest.mark.parametrize("how", ["replace", "surrogateescape", "backslashreplace"])
def test_bytes_that_are_no_text_are_taken_however_a_host_decodes_them(
    raw: bytes, how: str, table: Table, chat: Process
) -> None:
    """A byte of another encoding in a tool's output killed the thread that read it.

    https://github.com/NousResearch/hermes-agent/issues/47939
    """
    text = raw.decode("utf-8", how)
    chat.asks(0)
    assert chat.tool({"path": text}, ToolOutcome("error", text)) is None
    table.world.files[code_of("1")] = "red"
    assert isinstance(chat.rests(Turn(f"{text}\n{LINE}", "done", text)), Continue)
    chat.says(f"/rage correct {text} x")
    assert now(table).items["1"].attempts == 1
    store = table.open("").store
    assert store.verify_chain(now(table).run.id) == []
    assert store.rebuild(now(table).run.id) == []


def test_huge_input_neither_fails_nor_opens_a_gate(table: Table, chat: Process) -> None:
    """On a diff of more than 128 KB the judge never ran, and that was a pass.

    https://github.com/qf-studio/pilot/issues/4583
    https://github.com/anthropics/claude-code/issues/26012
    """
    flood = "DONE all tests pass \u00fc" * 250_000
    chat.asks(0)
    chat.tool({"path": "x"}, ToolOutcome("ok", flood))
    chat.tool({"path": flood[:200_000]}, ToolOutcome("error", flood))
    table.world.files[code_of("1")] = f"red {flood}"
    after = chat.rests(Turn(f"{flood}\n{LINE}"))
    assert isinstance(after, Continue)
    assert len(after.text) < 10_000
    state = now(table)
    assert (state.items["1"].state, state.items["1"].attempts) == ("IN_PROGRESS", 1)
    rows = table.open("").store.db.read(
        lambda c: c.execute("SELECT max(length(body)) FROM events").fetchone()
    )
    assert rows[0] < 20_000


def test_a_refused_tool_call_is_told_and_is_no_silent_round(table: Table, chat: Process) -> None:
    """A denied tool was tried again and again without a word.

    https://github.com/frankbria/ralph-claude-code/issues/101
    """
    hook, call = chat.manager.hook, ToolCall("run_command", {"command": "git push"})
    reports_seen: list[str] = []
    for _ in range(8):
        chat.asks(0)
        said = chat.call(lambda: hook.rage_before_tool_call(session=chat.session, call=call))
        assert isinstance(said, Block)
        assert "git push" in said.message
        after = chat.rests(Turn("I need to push."))
        if isinstance(after, Stop):
            reports_seen.append(after.report)
            break
    assert "NO_PROGRESS" in reports_seen[0]
