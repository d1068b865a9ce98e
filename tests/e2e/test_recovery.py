"""A run that fails the same way again, spends too much, or waits for a person, as typed."""

from __future__ import annotations

from .project import FIX, ITEM, Project, edit, rage_line, reply, shell, write

LINE = rage_line(slice="add adds", gate="tests/test_add.py", scope=["calc"])
WRONG = edit("calc/__init__.py", "a - b", "a * b")
COUNTED = "mkdir -p __pycache__ && echo x >> __pycache__/calls; exit 7"
"""Fails, and counts how often it ran where git does not look."""
USAGE = {"input": 400, "output": 100}


def spent(answer: dict[str, object], **usage: int) -> dict[str, object]:
    """A reply with the usage that its provider reports."""
    return {**answer, "usage": usage or USAGE}


def test_the_same_failing_call_is_blocked_at_the_third_time(project: Project) -> None:
    """F013: twice is allowed, the third identical call on unchanged evidence is not made."""
    call = shell(COUNTED)
    result = project.run([reply(LINE, call), reply("", call), reply("", call), reply("Stuck.")])
    made = (project.root / "__pycache__" / "calls").read_text()
    assert made == "x\nx\n", "the third call was made"
    assert result.data["status"] == "paused"
    why = project.rage("why", "--last", "50").stdout
    assert "Failed again and again with nothing changed" in why


def test_a_call_between_which_something_changed_may_be_made_again(project: Project) -> None:
    """F013: a changed tree is new evidence, so red, edit, red, edit, red is no stuck loop."""
    call = shell(COUNTED)
    tries = [edit("calc/__init__.py", f"a {a} b", f"a {b} b") for a, b in ("-*", "*%", "%/")]
    replies = [reply(LINE, call)]
    replies += [reply("", change, call) for change in tries]
    project.run([*replies, reply("Done.")])
    assert (project.root / "__pycache__" / "calls").read_text() == "x\n" * 4


def test_the_same_error_again_retires_the_approach_and_names_it(project: Project) -> None:
    """F014, F059: after the same failure twice the approach is to be avoided; a third ends it."""
    other = edit("calc/__init__.py", "a * b", "a * b * 1")
    third = edit("calc/__init__.py", "a * b * 1", "1 * a * b")
    replies = [reply(LINE, WRONG), reply("Done."), reply(LINE, other), reply("Done.")]
    result = project.run([*replies, reply(LINE, third), reply("Done.")])
    why = project.rage("why", "--last", "60").stdout
    assert "the same error again" in why, why
    assert result.items["5"]["status"] == "failed"
    assert result.items["5"]["attempts"] == 3


def test_a_budget_is_reserved_before_a_call_and_raised_in_one_command(project: Project) -> None:
    """F043, F044, F117: no call is made that may not fit; alert and crossing are told once."""
    idle = [spent(reply("Looking.", shell("true"))) for _ in range(12)]
    result = project.run([*idle[:9], spent(reply("Rest."))], "#5", "--budget", "2200")
    assert (result.code, result.data["status"]) == (4, "paused"), result.err
    assert result.data["reason"].startswith("LIMIT_TOKENS"), result.data["reason"]
    assert result.data["tokens"] == 2_000
    assert result.err.count("tokens of the run are spent") == 1, result.err
    waits = project.run([spent(reply(LINE, FIX)), spent(reply("Done."))])
    assert (waits.code, waits.data["status"]) == (4, "paused")
    assert waits.data["tokens"] == 2_000, "a call was made without room for it"
    more = project.run([spent(reply(LINE, FIX)), spent(reply("Done."))], "#5", "--budget", "+2k")
    assert (more.code, more.data["status"]) == (0, "done"), more.err
    assert more.data["tokens"] == 3_000


def test_an_item_that_costs_twice_what_was_expected_waits(project: Project) -> None:
    """F068: the breaker looks before the call; a person's word lets it go on."""
    project.write({"backlog/5-sums.md": ITEM.replace("id: 5", "id: 5\nestimate: {tokens: 600}")})
    project.commit("an estimate")
    idle = [spent(reply("Looking.", shell("true"))) for _ in range(4)]
    result = project.run([*idle, spent(reply("Rest."))])
    assert (result.code, result.data["status"]) == (4, "paused"), result.err
    assert result.data["reason"].startswith("CIRCUIT_BREAKER"), result.data["reason"]
    assert result.data["tokens"] == 1_500
    fixed = [spent(reply(LINE, FIX)), spent(reply("Done."))]
    assert project.run(fixed).data["status"] == "paused", "it went on without a word"
    done = project.run(fixed, "#5", "--confirm")
    assert (done.code, done.data["status"]) == (0, "done"), done.err


def test_a_change_of_twice_the_expected_size_waits(project: Project) -> None:
    """F069: files and lines."""
    project.write({"backlog/5-sums.md": ITEM.replace("id: 5", "id: 5\nestimate: {lines: 3}")})
    project.commit("an estimate")
    much = write("calc/more.py", "x = 1\n" * 20)
    replies = [reply(LINE, FIX, much), reply("Done.")]
    result = project.run(replies)
    assert result.data["reason"].startswith("CIRCUIT_BREAKER"), result.data["reason"]
    done = project.run([reply("Done."), reply("Done.")], "#5", "--confirm")
    assert (done.code, done.data["status"]) == (0, "done"), done.err


def test_a_question_waits_for_its_answer(project: Project) -> None:
    """F062, F085: the options are shown; without an answer nothing goes on; it reaches the agent."""
    asks = reply(f"{LINE}\n[NEEDS CLARIFICATION: round up? - yes | no]")
    result = project.run([asks])
    assert (result.code, result.data["status"]) == (4, "paused"), result.err
    assert result.data["reason"].startswith("NEEDS_CLARIFICATION")
    assert "yes | no" in result.data["reason"]
    fixed = [reply(LINE, FIX), reply("Done.")]
    assert project.run(fixed).data["status"] == "paused"
    assert project.rage("resolve", "code").returncode == 1, "the wrong word was taken"
    said = project.rage("answer", "no")
    assert said.returncode == 0, said.stderr
    done = project.run(fixed)
    assert (done.code, done.data["status"]) == (0, "done"), done.err
    assert "round up?" in project.rage("why", "--last", "50").stdout


def test_a_deviation_in_the_diff_waits_for_a_ruling(project: Project) -> None:
    """F063: in the diff, split by a zero-width character; `code` lets it stand."""
    note = write("calc/note.txt", "# [SPEC\u200b_DEVIATION: adds floats too]\n")
    result = project.run([reply(LINE, FIX, note), reply("Done.")])
    assert result.data["reason"].startswith("SPEC_DEVIATION"), result.data["reason"]
    assert project.git("log", "--format=%s", "main..HEAD") == "", "it was committed all the same"
    assert project.run([reply("Done.")]).data["status"] == "paused"
    assert project.rage("resolve", "code").returncode == 0
    done = project.run([reply("Done."), reply("Done.")])
    assert (done.code, done.data["status"]) == (0, "done"), done.err


def test_a_critical_note_waits_whatever_the_checks_say(project: Project) -> None:
    """F061: the checks would pass."""
    result = project.run([reply(LINE, FIX), reply("Done. [CRITICAL: this deletes user data]")])
    assert result.data["reason"].startswith("CRITICAL_ISSUE"), result.data["reason"]
    assert project.git("log", "--format=%s", "main..HEAD") == ""
    assert project.run([reply("Done.")]).data["status"] == "paused"
    done = project.run([reply("Done."), reply("Done.")], "#5", "--confirm")
    assert (done.code, done.data["status"]) == (0, "done"), done.err


def test_narrowed_criteria_are_a_deviation(project: Project) -> None:
    """F143: the agent rewords its own criteria; what was agreed holds, or a person takes them."""
    narrow = edit("backlog/5-sums.md", "two numbers are added", "one number is added")
    result = project.run([reply(LINE, FIX, narrow), reply("Done.")])
    assert result.data["reason"].startswith("SPEC_DEVIATION"), result.data["reason"]
    assert "criteria of 5" in result.data["reason"]
    assert project.rage("resolve", "code").returncode == 0
    done = project.run([reply("Done."), reply("Done.")])
    assert done.items["5"]["status"] in ("done", "unverified"), done.err


def test_a_later_word_takes_the_place_of_an_earlier_one(project: Project) -> None:
    """F016, F141: a stale "not yet" is no longer told."""
    project.run([reply("Looking."), reply("Looking."), reply("Looking.")])
    project.rage("correct", "do not touch the tests yet")
    project.rage("correct", "use integers only")
    said = project.rage("correct", "you may change the tests now")
    assert "do not touch" not in said.stdout.split("What holds now:")[1]
    assert "integers" in said.stdout
    only = project.rage("correct", "--instead", "only fix add")
    assert "integers" not in only.stdout.split("What holds now:")[1]
