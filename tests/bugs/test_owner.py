"""Who a run belongs to, and where its state lies: sessions, processes, folders."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from rage_plugin import bootstrap
from rage_plugin.hookspecs import Block, Continue, Stop, ToolCall, ToolOutcome, Turn

from ..e2e.project import FIX, Project, rage_line, reply, write
from ..machine.processes import Process, Table, session
from ..machine.world import code_of
from .chats import Chat
from .runs import LINE, now


def test_a_chat_that_got_another_id_is_told_whose_the_run_is(table: Table, chat: Process) -> None:
    """The id changed with a resume: the hook went home in silence, and the loop just died.

    https://github.com/anthropics/claude-plugins-official/issues/5536
    """
    chat.asks(0)
    before = now(table)
    renamed = Process(table, session("chat", "A2"))
    renamed.begins()
    assert renamed.rests(Turn(LINE)) is None
    assert now(table) == before
    for words in ("resume", "start #9", f"adopt {before.run.id}"):
        said = renamed.says(f"/rage {words}")
        assert said is not None
        assert said.error
        assert "\n" not in said.text
        assert re.search(r"Run \w+ on #9 is .*chat, session s1", said.text), said.text
        assert "Next: /rage" in said.text
    chat.kill()
    said = renamed.says("/rage status")
    assert said is not None
    named = said.text.rpartition("Its host is gone. Next: ")[2]
    taken = renamed.says(named)
    assert taken is not None
    assert not taken.error, (named, taken.text)
    assert renamed.asks(0) is not None


def test_a_turn_that_does_not_go_on_leaves_its_reason_in_the_status(
    table: Table, chat: Process
) -> None:
    """Whatever ended it, the record said "active", and nobody was told.

    https://github.com/anthropics/claude-plugins-official/issues/5536
    """
    world, files = table.world, dict(table.world.files)

    def elsewhere() -> None:
        world.branch = "elsewhere"

    def blocked() -> None:
        world.files[code_of("1")] = "blocked"

    for act, text, reason, told in (
        (elsewhere, "", "done", "WORKSPACE_MOVED"),
        (blocked, LINE, "done", "CHECK_COULD_NOT_RUN"),
        (None, "[SPEC_DEVIATION: another API]", "done", "SPEC_DEVIATION"),
        (None, "[NEEDS CLARIFICATION: which port?]", "done", "NEEDS_CLARIFICATION"),
        (None, "", "interrupt", "INTERRUPT"),
    ):
        chat.asks(0)
        if act is not None:
            act()
        after = chat.rests(Turn(text, reason))  # type: ignore[arg-type]
        assert isinstance(after, Stop), told
        assert told in after.report
        for process in (chat, Process(table, session("shell", "s9"))):
            said = process.says("/rage status")
            assert said is not None
            assert told in said.text
        world.branch, world.files = "rage/work", dict(files)
        if told in ("SPEC_DEVIATION", "NEEDS_CLARIFICATION"):
            chat.says("/rage resolve spec" if told == "SPEC_DEVIATION" else "/rage answer 8080")
        else:
            chat.says("/rage resume")
        assert now(table).run.status == "active", told


def test_whoever_lost_the_run_is_told_so_once(table: Table, chat: Process) -> None:
    """The person at the old chat sees one line with the run, and then nothing.

    https://github.com/anthropics/claude-plugins-official/issues/5536
    """
    chat.asks(0)
    second = Process(table, session("chat", "s2"))
    second.says("/rage pause")
    second.says("/rage resume")
    after = chat.rests(Turn(LINE))
    assert isinstance(after, Stop)
    assert after.report.startswith("Another session took the run over. ")
    assert now(table).run.id in after.report
    assert chat.rests(Turn(LINE)) is None


def test_a_second_loop_in_the_same_project_does_not_overwrite_the_first(
    project: Project, real_chat: Callable[..., Chat]
) -> None:
    """Two starts shared one file of state: also from a worktree, and on another item.

    https://github.com/anthropics/claude-plugins-official/issues/1542
    """
    project.write({"backlog/6-more.md": "---\nid: 6\ntitle: More\n---\nMore.\n"})
    project.commit("another item")
    beside = project.root.parent / "beside"
    project.git("worktree", "add", "-q", str(beside), "-b", "beside")
    first = real_chat("A")
    run = first.answer("/rage start #5").split("RAGE run ")[1].split()[0]
    for folder in (None, beside, project.root / "calc"):
        for target in ("#5", "#6"):
            said = real_chat("B", folder).says(f"/rage start {target}")
            assert said is not None
            assert said.error
            assert re.search(rf"Run {run} on #5 is .*here, session A", said.text), said.text
    assert first.asks() is not None
    assert isinstance(first.rests("Looking."), Continue)


def test_state_is_the_same_from_every_folder_worktree_and_link(
    project: Project, real_chat: Callable[..., Chat]
) -> None:
    """A `cd` of the agent made the hook look elsewhere: the loop died, its state was an orphan.

    https://github.com/anthropics/claude-plugins-official/issues/3989
    """
    link = project.root.parent / "a link"
    link.symlink_to(project.root)
    deep = project.root / "calc" / "ä b"
    deep.mkdir()
    beside = project.root.parent / "beside"
    project.git("worktree", "add", "-q", str(beside), "-b", "beside")
    chat = real_chat("mine", deep)
    chat.answer("/rage start #5")
    expected = chat.answer("/rage status")
    assert "is active" in expected
    folders = [project.root, link, link / "calc", deep, beside, beside / "calc"]
    for folder in folders:
        assert real_chat("other", folder).answer("/rage status") == expected, folder
    before = Path.cwd()
    try:
        os.chdir("/")
        chat.asks()
        assert isinstance(chat.rests("cd / and rest"), Continue)
    finally:
        os.chdir(before)
    states = {bootstrap.known_state(str(folder)) for folder in folders}
    assert {s.resolve() for s in states if s} == {(project.root / ".git" / "rage").resolve()}
    assert not list(project.root.rglob("calc/**/rage.db"))


def test_a_folder_with_two_repositories_and_none_of_its_own_is_refused(
    tmp_path: Path, project: Project, real_chat: Callable[..., Chat]
) -> None:
    """Nothing could be measured at the root, and ten good turns were scored as no progress.

    https://github.com/frankbria/ralph-claude-code/issues/340
    """
    root = tmp_path / "both"
    for name in ("one", "two"):
        Project(root / name, project.home)
    chat = real_chat("mine", root)
    said = chat.says("/rage start #5")
    assert said is not None
    assert said.error
    assert "git init" in said.text
    assert (chat.asks(), chat.rests("Done.")) == (None, None)
    assert "started on #5" in real_chat("mine", root / "one").answer("/rage start #5")
    assert "started on #5" in real_chat("mine", root / "two").answer("/rage start #5")


def test_an_agents_cleanup_of_the_backlog_is_seen_and_loses_no_state(
    project: Project, real_chat: Callable[..., Chat]
) -> None:
    """A worker's cleanup removed the folder of tasks in the middle of the run.

    https://github.com/subsy/ralph-tui/issues/328
    """
    chat = real_chat("mine")
    chat.answer("/rage start #5")
    chat.asks()
    shutil.rmtree(project.root / "backlog")
    after = chat.rests("Cleaned up.")
    assert isinstance(after, Stop)
    assert "SPEC_DEVIATION" in after.report
    status = chat.answer("/rage status")
    assert "is paused" in status
    assert "backlog" in status
    project.git("restore", "backlog")
    assert "is active" in chat.answer("/rage resolve spec")
    assert chat.asks() is not None


CLEANUPS = """
rm -rf .git/rage
rm -r '.git'/rage
cd .git && rm -r rage
find .git/rage -delete
find .git/rage -type f -exec rm {} +
find . -name rage.db -delete
find . -name '*.db' -exec rm -f {} ;
find . -iname RAGE -exec rm -r {} +
python3 -c "import shutil; shutil.rmtree('.git/rage')"
git clean -fdx
mv .git/rage /tmp/x
sqlite3 .git/rage/rage.db 'delete from events'
bash -c 'rm -rf .git/rage'
"""


def test_clean_up_this_repo_does_not_delete_the_control_folder(
    project: Project, real_chat: Callable[..., Chat]
) -> None:
    """Asked to clean up, the agent deleted what controls it, in whatever spelling.

    https://github.com/frankbria/ralph-claude-code/issues/149
    https://github.com/Dicklesworthstone/destructive_command_guard/issues/211
    """
    chat = real_chat("mine")
    chat.answer("/rage start #5")
    chat.asks()
    for command in CLEANUPS.strip().splitlines():
        call = ToolCall("run_command", {"command": command})
        assert isinstance(chat.calls(call, ToolOutcome("ok")), Block), command
    for command in (
        "find . -name '*.pyc' -delete",
        "rm -rf build",
        "find calc -name '*.db' -delete",
    ):
        call = ToolCall("run_command", {"command": command})
        assert chat.calls(call, ToolOutcome("ok")) is None, command
    assert "is active" in chat.answer("/rage status")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_home_with_a_space_and_an_umlaut_works_in_either_form(form: str, tmp_path: Path) -> None:
    """A name such as this broke each hook, and quoting did not mend it.

    https://github.com/anthropics/claude-plugins-official/issues/898
    https://github.com/anthropics/claude-plugins-official/issues/681
    """
    home = tmp_path / unicodedata.normalize(form, "Jürgen Müller's & more; (1)")
    name = unicodedata.normalize(form, "calc/größe ö.py")
    project = Project(home / "ein projekt", home)
    line = rage_line(slice="add adds", gate="tests/test_add.py", scope=["calc"])
    result = project.run([reply(line, FIX, write(name, "x = 1\n")), reply("Fixed.")])
    assert (result.code, result.data["status"]) == (0, "done"), result.err
    made = project.git("show", "-z", "--name-only", "--format=", "HEAD").split("\0")
    assert name in made
