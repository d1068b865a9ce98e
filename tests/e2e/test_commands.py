"""What a person types, in a shell and in a chat, on a real repository."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .project import ENVIRONMENT, FILES, FIX, FIXED, ITEM, Project, edit, rage_line, reply, write


def chat(project: Project, lines: list[str], replies: list[dict[str, object]]) -> str:
    """Pipe lines into `rage chat`; everything it printed."""
    model = project.script(replies)
    done = project.rage("chat", "--model", model, stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def snapshot(root: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()
    }


def test_plan_shows_items_and_writes_nothing(project: Project) -> None:
    """F158: `plan` needs no model call and leaves the work tree as it was."""
    before = project.git("status", "--porcelain"), project.git("for-each-ref")
    done = project.rage("plan", "#5")
    assert done.returncode == 0, done.stderr
    assert "tests/test_add.py::test_add" in done.stdout
    data = json.loads(project.rage("plan", "5", "--json").stdout)
    assert [i["id"] for i in data["items"]] == ["5"]
    assert data["items"][0]["criteria"] == ["two numbers are added"]
    assert data["limits"]["max_iterations"] == 12
    assert (project.git("status", "--porcelain"), project.git("for-each-ref")) == before


def test_start_twice_answers_with_the_same_run(project: Project) -> None:
    """F004: two activations of one target are one run."""
    out = chat(
        project,
        ["/rage start #5", "/rage start #5", "/rage status", "/rage stop", "/rage status"],
        [reply("Hm.")],
    )
    started = [line for line in out.splitlines() if "RAGE run" in line and "started" in line]
    assert len(started) == 1
    run = started[0].split("RAGE run ")[1].split()[0]
    assert f"Run {run} on #5 is" in out or f"RAGE run {run} (#5) is" in out
    assert f"RAGE run {run} (#5) is stopped" in out


def test_an_ordinary_chat_never_starts_a_run(project: Project) -> None:
    """F005: nothing but a command starts one, and nothing is left behind."""
    out = chat(project, ["please fix #5", "rage is a strong word"], [reply("Sure.")])
    assert out.count("Sure.") == 2
    assert not (project.root / ".git" / "rage").exists()
    assert not (project.home / "state" / "rage" / "active").exists()


def test_help_and_a_typing_error(project: Project) -> None:
    """F155: unknown words get the nearest command."""
    out = chat(project, ["/rage help", "/rage strat #5"], [reply("x")])
    assert "/rage start" in out
    assert "Did you mean start" in out


def test_a_chat_runs_to_the_end_and_can_be_asked(project: Project) -> None:
    """The whole loop in a chat, with a report and the ledger after it."""
    out = chat(
        project,
        ["/rage start #5", "/rage report", "/rage context"],
        [reply("", FIX), reply("Fixed.")],
    )
    assert "is done" in out or ": done" in out
    assert "was red and is green" in out
    assert not (project.home / "state" / "rage" / "active").exists()
    data = json.loads(project.rage("context", "--json").stdout)
    text = json.dumps(data)
    assert "packet" in text and "brief" in text


@pytest.mark.parametrize(
    "words",
    [
        ["start", "#99"],
        ["start", "no/such/file.md"],
        ["start", "epic:5"],
        ["resume"],
        ["stop"],
        ["pause"],
        ["accept", "5"],
        ["reject", "5", "--why", "x"],
        ["report"],
    ],
)
def test_what_cannot_be_is_one_line(project: Project, words: list[str]) -> None:
    """F055, F155: exit 1 and one line with the next command."""
    done = project.rage(*words)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "Next: " in done.stderr or ": name a file" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("words", [["frobnicate"], ["start"], ["start", "#5", "--budget", "no"]])
def test_usage_errors_exit_2(project: Project, words: list[str]) -> None:
    """F155: exit code 2 for usage."""
    done = project.rage(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_modified_files_are_refused_or_snapshot(project: Project) -> None:
    """Refused with the list, or `--snapshot` commits them first as a commit of its own."""
    project.write({"README.md": "# calc, edited\n"})
    refused = project.run([reply("", FIX), reply("Fixed.")])
    assert refused.code == 1
    assert "README.md" in refused.data["reason"] and "--snapshot" in refused.data["reason"]
    assert project.git("branch", "--format=%(refname:short)").split() == ["main"]
    done = project.run([reply("", FIX), reply("Fixed.")], "#5", "--snapshot")
    assert done.data["status"] == "done", done.data
    assert len(project.git("log", "--format=%h", "main..HEAD").split()) == 2
    assert "README.md" in project.git("show", "--stat", "--format=", "HEAD~1")


def test_untracked_files_are_left_alone(project: Project) -> None:
    """Files that were untracked before are never staged."""
    project.write({"mine ü.txt": "mine"})
    result = project.run([reply("", FIX), reply("Fixed.")])
    assert result.data["status"] == "done", result.data
    assert "mine" in project.git("status", "--porcelain")
    assert "mine" not in project.git("show", "--stat", "--format=", "HEAD")


def test_a_gate_that_needs_an_untracked_file_is_unverified(project: Project) -> None:
    """A gate that passes only with a file from before the run is `unverified`."""
    test = (
        "from pathlib import Path\n\n\ndef test_add():\n    assert Path('data.txt').read_text()\n"
    )
    project.write(
        {"tests/test_add.py": test + "    from calc import add\n    assert add(2, 3) == 5\n"}
    )
    project.commit("reads a file")
    project.write({"data.txt": "here"})
    result = project.run([reply("", FIX), reply("Fixed.")])
    assert result.items["5"]["status"] == "unverified", result.data
    assert "data.txt" in json.dumps(result.items["5"])


def test_without_git_it_is_one_line(tmp_path: Path, project: Project) -> None:
    """No git is one line with `git init`."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "rage_plugin", "plan", "#5"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "HOME": str(project.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "git init" in done.stderr


def test_without_a_check_start_is_refused(tmp_path: Path) -> None:
    """F065: no configured or detected command: refused with what to write, never pass."""
    bare = Project(tmp_path / "bare", tmp_path / "home", {"backlog/5-x.md": ITEM, "a.txt": "x"})
    result = bare.run([reply("Done.")])
    assert result.code == 1
    assert result.data["status"] == "failed"
    assert "rage.yaml" in result.data["reason"]


def test_an_epic_ends_with_one_commit_an_item_in_order(project: Project) -> None:
    """F018, F033, F034, F164: dependent items in order, in a suite that was red before."""
    project.write(
        {
            "backlog/5-epic.md": "---\nid: 1\ntitle: All of it\n---\n- [ ] #2\n- [ ] #3\n",
            "backlog/5-sums.md": ITEM.replace("id: 5", "id: 3").replace(
                "title:", "depends_on: [2]\ntitle:"
            ),
            "backlog/2-half.md": "---\nid: 2\ntitle: Half\ngates: [tests/test_half.py]\n---\nx\n",
            "tests/test_half.py": "from calc import half\n\n\ndef test_h():\n    assert half(4)\n",
            "tests/test_old.py": "def test_old():\n    assert False, 'old'\n",
        }
    )
    project.commit("epic")
    half = edit("calc/__init__.py", "def double", "def half(a):\n    return a // 2\n\n\ndef double")
    result = project.run([reply("", half), reply("Half."), reply("", FIX), reply("Sum.")], "#1")
    assert result.data["status"] == "done", result.data
    assert [i["id"] for i in result.data["items"]] == ["2", "3"]
    subjects = project.git("log", "--reverse", "--format=%s", "main..HEAD").splitlines()
    assert len(subjects) == 2
    assert "(#2)" in subjects[0] and "(#3)" in subjects[1]
    for item in result.data["items"]:
        assert item["preexisting"] == ["tests/test_old.py::test_old"] or "tests/test_old.py" in str(
            item["preexisting"]
        )


def test_nothing_to_do_is_a_success(project: Project) -> None:
    """F145: an empty queue is a success."""
    project.write({"backlog/5-sums.md": ITEM.replace("id: 5", "id: 5\nstatus: closed")})
    project.commit("closed")
    result = project.run([reply("x")])
    assert (result.code, result.data["status"]) == (0, "done")


def test_what_an_earlier_run_finished_is_not_worked_again(project: Project) -> None:
    """Done is derived from the database and HEAD; the backlog's files are edited by nobody."""
    first = project.run([reply("", FIX), reply("Fixed.")])
    again = project.run([reply("Hm.")])
    assert (again.code, again.data["status"], again.data["items"]) == (0, "done", [])
    assert json.loads(project.rage("plan", "#5", "--json").stdout)["items"][0]["done"] is True
    project.git("switch", "-q", "main")
    assert json.loads(project.rage("plan", "#5", "--json").stdout)["items"][0]["done"] is False
    project.git("merge", "-q", "--no-ff", first.data["branch"])
    assert project.run([reply("Hm.")]).data["status"] == "done"
    project.write({"backlog/5-sums.md": ITEM + "- [ ] and floats too\n"})
    project.commit("more is wanted")
    assert json.loads(project.rage("plan", "#5", "--json").stdout)["items"][0]["done"] is False


def test_a_model_that_cannot_be_used_is_one_object_too(project: Project) -> None:
    """Contract for scripts: one JSON object also where nothing could begin."""
    done = project.rage("run", "#5", "--model", "script:/no/such/file.json", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "failed"
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_wish_is_taken_up_once_and_never_by_surprise(project: Project) -> None:
    """A `start` in a shell is recorded; it is void once anything else was decided."""
    replies = [reply("", FIX), reply("Fixed.")]
    assert project.rage("start", "#5").returncode == 0
    elsewhere = Project(project.home / "other" / "repo", project.home)
    assert "RAGE" not in chat(elsewhere, ["hello"], [reply("Hello.")])
    assert not (elsewhere.root / ".git" / "rage").exists()
    out = chat(project, ["hello"], replies)
    assert "Taking up `/rage start #5`" in out and ": done" in out
    project.write({"backlog/6-next.md": ITEM.replace("id: 5", "id: 6")})
    project.commit("one more")
    assert project.rage("start", "#6").returncode == 0
    project.run([reply("Hm.")], "#6")
    project.rage("stop")
    assert "RAGE" not in chat(project, ["hello"], [reply("Hello.")])


def test_typed_limits_hold_for_a_run_that_goes_on(project: Project) -> None:
    """A limit pause is left by typing a higher limit with the same target."""
    first = project.run([reply("Hm.")], "#5", "--max-iterations", "1")
    assert first.data["reason"].startswith("LIMIT_ITERATIONS")
    again = project.run([reply("", FIX), reply("Fixed.")], "#5", "--max-iterations", "9")
    assert (again.data["status"], again.data["run"]) == ("done", first.data["run"])


def test_a_missing_pytest_is_found_before_the_model_is_paid(project: Project) -> None:
    """F065: a check that cannot run is a refused start with what to do."""
    profile = "verification: {commands: [{name: t, command: [./none/python, -m, pytest]}]}\n"
    project.write({"rage.yaml": profile})
    project.commit("profile")
    result = project.run([reply("", FIX)])
    assert result.code == 1
    assert "can import pytest" in result.data["reason"]
    assert json.loads(project.rage("plan", "#5", "--json").stdout)["problem"]


def test_plan_tells_why_start_would_be_refused(project: Project) -> None:
    """F158: a dirty work tree and another run are told by `plan` already."""
    project.write({"README.md": "edited"})
    assert "README.md" in json.loads(project.rage("plan", "#5", "--json").stdout)["problem"]


def test_help_in_a_shell(project: Project) -> None:
    """The same verbs as in the chat, help among them."""
    done = project.rage("help")
    assert done.returncode == 0
    assert "rage start" in done.stdout and "/rage" not in done.stdout


def test_the_same_answer_from_any_folder_and_worktree(project: Project) -> None:
    """F146: any cwd inside the workspace and any of its worktrees."""
    project.run([reply("Hm.")])
    expected = json.loads(project.rage("status", "--json").stdout)["run"]
    inside = project.rage("status", "--json", "--workspace", str(project.root / "calc"))
    assert json.loads(inside.stdout)["run"] == expected
    other = project.root.parent / "other tree"
    project.git("worktree", "add", "-q", str(other), "main")
    beside = project.rage("status", "--json", "--workspace", str(other))
    assert json.loads(beside.stdout)["run"] == expected


def test_a_correction_supersedes_the_plan(project: Project) -> None:
    """F016: `correct` moves the plan version on, and the run goes on with it."""
    project.run([reply("Hm.")])
    assert project.rage("correct", "use", "plus").returncode == 0
    result = project.run([reply("", FIX), reply("Fixed.")])
    assert result.data["status"] == "done"
    assert project.git("show", "HEAD:calc/__init__.py") == FIXED


def test_limits_pause_with_their_reason(project: Project) -> None:
    """F046: `--max-iterations` is a hard limit."""
    replies = [
        reply("", write("calc/a.py", "1\n")),
        reply("."),
        reply("", write("calc/a.py", "2\n")),
        reply("."),
    ]
    result = project.run(replies, "#5", "--max-iterations", "2")
    assert result.code == 4
    assert result.data["reason"].startswith("LIMIT_ITERATIONS")
    assert (project.root / "calc/a.py").exists(), "the work is left for the person"


def test_the_list_of_files_in_a_new_clone_is_what_was_checked(project: Project) -> None:
    """The commit holds exactly what was checked, new files and the executable bit included."""
    tool = write("tool.sh", "#!/bin/sh\n")
    project.run(
        [
            reply(
                rage_line(slice="x", gate="tests/test_add.py", scope=["."]),
                FIX,
                tool,
                {"name": "run_command", "args": {"command": "chmod +x tool.sh"}},
            ),
            reply("Fixed."),
        ]
    )
    assert "100755" in project.git("ls-tree", "HEAD", "tool.sh")
    assert set(project.git("ls-tree", "-r", "--name-only", "HEAD").split()) == {*FILES, "tool.sh"}


def test_a_run_goes_on_where_the_users_state_folder_cannot_be_written(project: Project) -> None:
    """A container's HOME is often nobody's: the flag is for other hosts, the run needs none."""
    (project.home / "state").write_text("a file where the folder would be", "utf-8")
    result = project.run([reply("", FIX), reply("Done.")])
    assert (result.code, result.data["status"]) == (0, "done"), result.err
    assert "XDG_STATE_HOME cannot be written" in result.err
    assert project.rage("status").returncode == 0
    wish = project.rage("start", "#5")
    assert wish.returncode == 1
    assert "XDG_STATE_HOME cannot be written" in wish.stderr


def test_a_person_can_stop_a_run_whatever_became_of_the_profile(project: Project) -> None:
    """An agent that breaks `rage.yaml` takes nobody's word away."""
    project.run([reply("Hm.")])
    project.write({"rage.yaml": "limits: [}"})
    for verb in ("status", "report", "context"):
        assert project.rage(verb).returncode == 0
    refused = project.rage("plan", "#5")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert json.loads(project.rage("stop", "--json").stdout)["status"] == "stopped"


def test_an_answer_that_cannot_be_written_is_one_line(project: Project) -> None:
    """A full disk under the answer is not a fault inside RAGE."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rage_plugin", "plan", "#5", "--json"],
            cwd=project.root,
            env={**ENVIRONMENT, "HOME": str(project.home)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("The answer cannot be written to standard output: No space left")
