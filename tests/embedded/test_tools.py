"""The six tools: what they do, and that they stay inside the workspace."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from host_adapters.embedded.process import run, tool_environment
from host_adapters.embedded.tools import SCHEMAS, ToolError, Tools
from host_adapters.embedded.workspace import Denied, Workspace


@pytest.fixture
def tools(workspace: Path) -> Tools:
    return Tools(str(workspace), command_timeout_s=5)


def test_the_schemas_are_the_six_tools_and_name_nothing_else():
    names = [s["function"]["name"] for s in SCHEMAS]  # type: ignore[index]
    assert names == [
        "read_file", "list_files", "search", "write_file", "edit_file", "run_command",
    ]  # fmt: skip
    assert "rage" not in str(SCHEMAS).lower()


def test_read_write_edit(tools: Tools, workspace: Path):
    assert tools.call("read_file", {"path": "a.txt"}) == "one\ntwo\n"
    assert "created" in tools.call("write_file", {"path": "new/ä b/c.txt", "content": "x ü\n"})
    assert (workspace / "new/ä b/c.txt").read_text() == "x ü\n"
    tools.call("edit_file", {"path": "a.txt", "old": "two", "new": "2"})
    assert (workspace / "a.txt").read_text() == "one\n2\n"
    assert sorted(p.name for p in workspace.iterdir()) == [
        ".git",
        "a.txt",
        "new",
    ]  # no temporary file is left


def test_a_write_keeps_the_mode_and_does_not_follow_the_last_link(tools: Tools, workspace: Path):
    script = workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    (workspace / "link").symlink_to("run.sh")
    tools.call("write_file", {"path": "run.sh", "content": "new"})
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    tools.call("write_file", {"path": "link", "content": "through"})
    assert script.read_text() == "through" and (workspace / "link").is_symlink()


@pytest.mark.parametrize("times", [0, 2])
def test_an_edit_needs_exactly_one_match(tools: Tools, workspace: Path, times: int):
    (workspace / "b.txt").write_text("x\n" * times + "y\n")
    with pytest.raises(ToolError, match=f"occurs {times} times"):
        tools.call("edit_file", {"path": "b.txt", "old": "x", "new": "z"})
    assert (workspace / "b.txt").read_text() == "x\n" * times + "y\n"


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", "out/passwd", "sub/../../x", "dangling", "a\0b", "deep/up/up2/x"],
)
@pytest.mark.parametrize("tool", ["read_file", "write_file", "list_files", "search"])
def test_outside_is_denied(tools: Tools, workspace: Path, path: str, tool: str):
    (workspace / "out").symlink_to("/etc")
    (workspace / "dangling").symlink_to("/elsewhere/none")
    (workspace / "deep").mkdir()
    (workspace / "deep" / "up").symlink_to("../..")
    extra = {"write_file": {"content": "x"}, "search": {"pattern": "x"}}.get(tool, {})
    with pytest.raises(ToolError):
        tools.call(tool, {"path": path, **extra})


@pytest.mark.parametrize(
    "path",
    [".git/config", ".GIT/config", "./.git", "g/config", "sub/.git/x", ".git./x", "ｇ/../.ｇｉｔ/x",
     ".g\u200cit/x", "GIT~1/x", "h/hooks/x", ".git::$INDEX_ALLOCATION/x"],
)  # fmt: skip
def test_git_is_denied_in_any_spelling(tools: Tools, workspace: Path, path: str):
    (workspace / "g").symlink_to(".git")
    (workspace / "h").symlink_to(str(workspace / ".git"))
    for call in (("read_file", {}), ("write_file", {"content": "x"}), ("list_files", {})):
        with pytest.raises(ToolError):
            tools.call(call[0], {"path": path, **call[1]})
    assert list((workspace / ".git").iterdir()) == []


def test_a_link_put_in_place_after_the_check_is_not_followed(workspace: Path, tmp_path: Path):
    """The folder is swapped for a link between resolving and opening: the kernel refuses."""
    (workspace / "sub").mkdir()
    (tmp_path / "secret").write_text("secret")

    class Swapped(Workspace):
        def resolve(self, path: str) -> str:
            relative = super().resolve(path)
            (workspace / "sub").rmdir()
            (workspace / "sub").symlink_to(tmp_path)
            return relative

    with pytest.raises(Denied):
        Swapped(str(workspace)).read("sub/secret", 10)
    (workspace / "sub").unlink()
    (workspace / "sub").mkdir()
    with pytest.raises(Denied):
        Swapped(str(workspace)).write("sub/secret", b"x")
    assert (tmp_path / "secret").read_text() == "secret"


def test_list_and_search_leave_git_out(tools: Tools, workspace: Path):
    (workspace / ".git" / "config").write_text("one\n")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "b c.txt").write_text("one more\n")
    assert tools.call("list_files", {"path": "."}) == "a.txt\nsub/b c.txt"
    found = tools.call("search", {"pattern": "^one", "path": "."}).splitlines()
    assert sorted(found) == ["./a.txt:1:one", "./sub/b c.txt:1:one more"]
    assert tools.call("search", {"pattern": "nowhere", "path": "."}) == "(no match)"
    with pytest.raises(ToolError):
        tools.call("search", {"pattern": "(", "path": "."})


def test_binary_foreign_and_special_files_are_told_plainly(tools: Tools, workspace: Path):
    (workspace / "bin").write_bytes(b"\x00\x01")
    (workspace / "latin").write_bytes(b"\xe4\n")
    os.mkfifo(workspace / "pipe")
    for path, said in (("bin", "binary"), ("latin", "not UTF-8"), ("pipe", "not a regular")):
        with pytest.raises(ToolError, match=said):
            tools.call("read_file", {"path": path})
    for path in ("none.txt", "."):
        with pytest.raises(ToolError):
            tools.call("read_file", {"path": path})


def test_answers_are_bounded(tools: Tools, workspace: Path):
    (workspace / "big.txt").write_text("x" * 50_000)
    answer = tools.call("read_file", {"path": "big.txt"})
    assert len(answer) < 20_100 and "30,000 characters left out" in answer


@pytest.mark.parametrize(
    "args", [{}, {"path": 5}, {"path": "a.txt", "more": "x"}, {"file": "a.txt"}, {"path": None}]
)
def test_wrong_arguments_are_an_answer(tools: Tools, args: dict[str, object]):
    with pytest.raises(ToolError, match="exactly path"):
        tools.call("read_file", args)


def test_half_a_surrogate_pair_is_an_answer(tools: Tools):
    for name, args in (
        ("read_file", {"path": "\ud800"}),
        ("write_file", {"path": "x", "content": "\ud800"}),
        ("run_command", {"command": "echo \ud800"}),
    ):
        with pytest.raises(ToolError):
            tools.call(name, args)


def test_commands_run_in_the_workspace_without_input(tools: Tools, workspace: Path):
    assert tools.call("run_command", {"command": "pwd"}).strip() == str(workspace)
    assert tools.call("run_command", {"command": "cat"}) == "(no output)"
    assert tools.call("run_command", {"command": "echo a; echo b >&2"}) == "a\nb\n"
    with pytest.raises(ToolError, match="exit code 3"):
        tools.call("run_command", {"command": "exit 3"})


def test_the_environment_of_a_command_holds_no_keys(monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "RAGE_X", "GIT_DIR", "DB_PASSWORD", "KEEP_ME"):
        monkeypatch.setenv(name, "x")
    kept = tool_environment(os.environ)
    assert "KEEP_ME" in kept and "PATH" in kept
    assert not {"OPENAI_API_KEY", "GITHUB_TOKEN", "RAGE_X", "GIT_DIR", "DB_PASSWORD"} & set(kept)


def test_a_command_is_ended_at_its_limit_with_all_it_started(workspace: Path):
    tools = Tools(str(workspace), command_timeout_s=0.6)
    command = "sleep 61.5 & setsid sleep 61.5 & (setsid -f sleep 61.5); echo begun; wait"
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"begun[\s\S]*killed after 0\.6 s"):
        tools.call("run_command", {"command": command})
    assert time.monotonic() - started < 3
    time.sleep(0.1)
    assert _sleepers("61.5", workspace) == []


def test_what_a_command_leaves_behind_does_not_hold_the_answer(tools: Tools, workspace: Path):
    started = time.monotonic()
    assert tools.call("run_command", {"command": "sleep 62.5 & echo done"}) == "done\n"
    assert time.monotonic() - started < 3
    time.sleep(0.1)
    assert _sleepers("62.5", workspace) == []


def test_a_flood_is_bounded_in_memory(workspace: Path):
    before = psutil.Process().memory_info().rss
    done = run(["bash", "-c", "head -c 200M /dev/zero; echo end"], str(workspace), os.environ, 30)
    assert done.code == 0 and len(done.output) < 21_000
    assert done.output.endswith("end\n") and "left out" in done.output
    assert psutil.Process().memory_info().rss - before < 16_000_000


def test_a_search_pattern_cannot_hang_the_host(tools: Tools, workspace: Path):
    (workspace / "a.txt").write_text("a" * 5_000 + "!\n")
    started = time.monotonic()
    tools.call("search", {"pattern": "^(a+)+$", "path": "."})
    assert time.monotonic() - started < 10


def _sleepers(seconds: str, workspace: Path) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["cmdline"] == ["sleep", seconds]:
            try:
                if process.cwd() == str(workspace):
                    found.append(process.pid)
            except psutil.Error:
                continue
    return found


def test_grep_is_there():
    """`search` stands on it."""
    assert subprocess.run(["grep", "--version"], capture_output=True, check=True).stdout
