"""A workspace that is not on the run's branch is left alone, whoever switched it."""

from __future__ import annotations

from pathlib import Path

from .project import Project, edit, reply, shell, write

WRONG = [reply("", write("calc/more.py", f"{n}\n")) for n in range(3)]
"""Three candidates that fail: the item is out of fix cycles, and its changes are taken back."""
SWITCH = "import subprocess\nsubprocess.run(['git', 'switch', '-q', *{names!r}], check=True)\n"


def failing() -> list[dict[str, object]]:
    return [r for wrong in WRONG for r in (wrong, reply("Done."))]


def paused_at_once(project: Project) -> None:
    assert project.run([reply("Nothing.")]).data["status"] == "paused"


def mine(root: Path) -> dict[str, str]:
    """A person's work in progress that no commit holds."""
    files = {"calc/__init__.py": "# my own work\n", "notes.txt": "precious\n"}
    for name, text in files.items():
        (root / name).write_text(text, "utf-8")
    return files


def test_a_paused_run_takes_no_files_of_another_branch(project: Project) -> None:
    """A run that is resumed on `main` neither judges nor takes back what lies there."""
    paused_at_once(project)
    branch = project.git("branch", "--show-current").strip()
    project.git("switch", "-q", "main")
    files = mine(project.root)
    result = project.run(failing())
    assert (result.code, result.data["status"]) == (4, "paused")
    assert result.data["reason"].startswith("WORKSPACE_MOVED")
    assert f"git switch {branch}" in result.data["reason"]
    assert {name: (project.root / name).read_text("utf-8") for name in files} == files
    project.git("checkout", "-q", "--", "calc")
    project.git("switch", "-q", branch)
    fix = reply("", edit("calc/__init__.py", "a - b", "a + b"))
    assert project.run([fix, reply("Done.")]).data["status"] == "done"


def test_a_run_of_one_worktree_takes_no_files_of_another(project: Project, tmp_path: Path) -> None:
    """The run is the repository's; the files are the worktree's it began in."""
    paused_at_once(project)
    other = tmp_path / "other"
    project.git("worktree", "add", "-q", "-b", "elsewhere", str(other), "main")
    files = mine(other)
    here, project.root = project.root, other
    result = project.run(failing())
    assert result.data["reason"].startswith("WORKSPACE_MOVED")
    assert {name: (other / name).read_text("utf-8") for name in files} == files
    project.root = here
    assert project.rage("stop").returncode == 0


def test_a_turn_that_ends_on_another_branch_commits_nothing_there(project: Project) -> None:
    """A script of the agent that makes a branch does not choose where RAGE commits."""
    make = SWITCH.format(names=["-c", "evil"])
    fix = edit("calc/__init__.py", "a - b", "a + b")
    turn = reply("", write("calc/x.py", make), shell("python calc/x.py; rm calc/x.py"), fix)
    result = project.run([turn, reply("Done.")])
    assert project.git("branch", "--show-current").strip() == "evil", result.err
    assert result.data["reason"].startswith("WORKSPACE_MOVED")
    assert project.git("log", "--format=%s", "evil").strip() == "start"
