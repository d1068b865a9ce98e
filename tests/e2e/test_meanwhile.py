"""What a person types from another terminal while the run is at work."""

from __future__ import annotations

import sys

from .project import FIX, ITEM, Project, edit, rage_line, reply, write

LINE = rage_line(slice="add adds", gate="tests/test_add.py", scope=["calc"])
SECOND = ITEM.replace("id: 5", "id: 6\ndepends_on: [5]").replace("Sums are", "Twice is")


def while_committing(project: Project, *words: str) -> None:
    """A pre-commit hook during which, the first time, somebody types these words."""
    once = project.home / "typed"
    hook = project.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    command = " ".join(f"'{word}'" for word in (sys.executable, "-m", "rage_plugin", *words))
    hook.write_text(f"#!/bin/sh\n[ -e '{once}' ] && exit 0\n: > '{once}'\nexec {command}\n")
    hook.chmod(0o755)


def commits(project: Project) -> list[str]:
    return project.git("log", "--format=%H", "main..HEAD").split()


def test_a_stop_ends_the_run_and_the_commit_is_in_its_report(project: Project) -> None:
    """F007: between intent and receipt the run was stopped; what git holds is recorded."""
    while_committing(project, "stop")
    result = project.run([reply(LINE, FIX), reply("Fixed.")])
    assert (result.code, result.data["status"]) == (1, "stopped"), result.err
    item = result.items["5"]
    assert (item["status"], item["commits"]) == ("done", commits(project))
    assert (result.data["iterations"], item["iterations"]) == (1, 1)


def test_a_pause_holds_and_the_run_goes_on_without_a_second_commit(project: Project) -> None:
    while_committing(project, "pause")
    replies = [reply(LINE, FIX), reply("Fixed.")]
    result = project.run(replies)
    assert (result.code, result.data["status"]) == (4, "paused"), result.err
    assert result.data["reason"].startswith("USER")
    spent = result.data["tokens"]
    again = project.run(replies)
    assert (again.code, again.data["status"]) == (0, "done"), again.err
    assert again.items["5"]["commits"] == commits(project)
    assert (again.data["iterations"], again.data["tokens"]) == (1, spent)


def test_a_correction_is_for_what_follows(project: Project) -> None:
    """The commit stands and the next item begins from it; nothing waits for a moved HEAD."""
    project.write({"backlog/6-twice.md": SECOND.replace("test_add.py::test_add", "test_six.py")})
    project.write(
        {"tests/test_six.py": "from calc import six\n\n\ndef test_six():\n    assert six\n"}
    )
    project.commit("another item")
    while_committing(project, "correct", "keep the names")
    more = edit("calc/__init__.py", "def double", "six = 6\n\n\ndef double")
    result = project.run([reply(LINE, FIX), reply("Fixed."), reply("", more), reply("Done.")], "6")
    assert (result.code, result.data["status"]) == (0, "done"), result.err
    made = [i["commits"] for i in result.data["items"]]
    assert [c for one in made for c in one] == commits(project)[::-1]
    assert result.data["iterations"] == 2


def test_a_rejection_moves_the_ground_of_the_item_that_is_worked_on(project: Project) -> None:
    """F163: taking one item back does not fail or hold up the next, which began on top of it."""
    first = "---\nid: 4\ntitle: A note\npriority: 1\n---\nWrite a note.\n"
    project.write({"backlog/4-note.md": first, "backlog/9-all.md": "# All\n\n- [ ] #4\n- [ ] #5\n"})
    project.commit("items")
    note = reply(rage_line(slice="a note", scope=["NOTES.md"]), write("NOTES.md", "x\n"))
    wrong = edit("calc/__init__.py", "a - b", "a * b")
    replies = [note, reply("Done."), reply(LINE, wrong), reply("Done.")]
    result = project.run(replies, "#9", "--max-iterations", "2")
    assert result.items["4"]["status"] == "unverified", result.data
    assert (result.data["status"], result.items["5"]["status"]) == ("paused", "in_progress")
    done = project.rage("reject", "4", "--why", "not wanted")
    assert done.returncode == 0, done.stderr
    assert not (project.root / "NOTES.md").exists()
    result = project.run(
        [reply(LINE, edit("calc/__init__.py", "a * b", "a + b")), reply("Done.")],
        "#9",
        "--max-iterations",
        "9",
    )
    assert result.items["5"]["status"] == "done", result.data
    assert project.git("diff", "--stat", "HEAD~1", "HEAD").count("|") == 1
