"""The host in docs/host-adapter.md is run as it stands there until an item is done.

In this process, to see every request; then installed by its entry point and driven by `rage run`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import types
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pluggy
import pytest

import rage_plugin
from rage_plugin import Hold, HostSpec, ModelRequest, RagePlugin, Session, Turn

from ..e2e.project import ENVIRONMENT, FIXED, Project
from .pages import ROOT, only

PAGE = "host-adapter.md"
WAIT_S = (0.2, 60.0)
"""Back-off of the page's host, shortened for a test."""
HOOKS = [name for name in vars(HostSpec) if name.startswith("rage_")]


def page_module(name: str, code: str) -> Any:
    """A code block as a module."""
    module = types.ModuleType(name)
    exec(compile(code, f"docs/{PAGE}", "exec"), vars(module))
    return module


class Script:
    """Replies in order, the last one for ever; keeps every request."""

    def __init__(self, replies: Sequence[dict[str, Any]]) -> None:
        self.replies = list(replies)
        self.requests: list[list[dict[str, Any]]] = []

    def __call__(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        self.requests.append([dict(m) for m in messages])
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return {"tools": [], "usage": (10, 1), **reply}


def write(path: str, content: str) -> dict[str, Any]:
    return {"content": "", "tools": [("1", "write_file", {"path": path, "content": content})]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The small project, with this process's environment as a host's would be."""
    project = Project(tmp_path / "repo", tmp_path / "home")
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(project.home))
    monkeypatch.setenv("XDG_STATE_HOME", str(project.home / "state"))
    return project


@pytest.fixture
def host(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], Any]]:
    made: list[Any] = []

    def make(script: Script) -> Any:
        module = page_module("small_host", only(PAGE, "python", "class Host"))
        module.WAIT_S = WAIT_S
        replies = types.ModuleType("page_replies")
        replies.model = script  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "page_replies", replies)
        made.append(module.Host(str(project.root), "page_replies:model"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_host_works_an_item_to_the_end(
    project: Project, host: Callable[[Script], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """F024, F148: an adapter needs the public face alone, and the packet leaves no trace."""
    hello, work = {"content": "Hello."}, {"content": "Fixed."}
    bad = [write("../outside.txt", "x"), write(".git/config", "x")]
    script = Script([hello, *bad, write("calc/__init__.py", FIXED), work])
    chat = host(script)
    chat.send("Good morning.")
    chat.send("/rage start #5")
    report = chat.rage.report(chat.session)
    assert report["status"] == "done", report
    assert "Rage-Item: 5" in project.git("log", "-1", "--format=%B")
    assert not (project.root.parent / "outside.txt").exists()
    assert "somebody@" in project.git("config", "user.email"), "the guard was asked"
    assert script.requests[0] == chat.history[:1]
    for request in script.requests[1:]:
        assert_packet_at_tail(request, chat.history)
    assert len(chat.manager.get_plugins()) == 1, "the hooks of a run are gone with it"
    chat.send("Thanks.")
    assert script.requests[-1] == chat.history[:-1], "nothing is added after a run"
    assert "was red and is green" in capsys.readouterr().out


def assert_packet_at_tail(request: list[dict[str, Any]], history: list[dict[str, Any]]) -> None:
    """The request is the history so far, and then one packet that the history never got."""
    *before, last = request
    assert before == history[: len(before)]
    known = history[len(before)]
    if known["role"] == "user":
        assert last["content"].startswith(f"{known['content']}\n\n")
        packet = last["content"].removeprefix(f"{known['content']}\n\n")
    else:
        packet = last["content"]
    assert packet.strip()
    assert all(packet not in m["content"] for m in history)


def test_an_interrupt_and_a_failing_provider_pause_the_run(
    project: Project, host: Callable[[Script], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """What the page says of `Turn.reason`: nothing continues after an interrupt, errors end."""
    chat = host(Script([{"content": ""}]))
    errors: list[type[BaseException]] = [KeyboardInterrupt]
    asked: list[float] = []

    def failing(_request: list[dict[str, Any]]) -> dict[str, Any]:
        asked.append(time.monotonic())
        raise errors[0]("the line is dead")

    chat.model = failing
    chat.send("/rage start #5")
    assert chat.rage.report(chat.session)["reason"].startswith("INTERRUPT")
    assert chat.calls == 1
    errors[0] = ConnectionError
    chat.send("/rage resume")
    assert chat.rage.report(chat.session)["reason"].startswith("PROVIDER_ERRORS")
    assert chat.calls == 4
    _, first, second, third = asked
    assert second - first >= WAIT_S[0], "the page's own advice: back off"
    assert third - second >= 2 * WAIT_S[0], "longer each time"


def test_the_host_has_a_cap_of_its_own(
    project: Project, host: Callable[[Script], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A plugin that always goes on does not hold the chat for ever."""

    class Endless:
        @rage_plugin.hookimpl
        def rage_turn_end(self) -> rage_plugin.Continue:
            return rage_plugin.Continue("more")

    chat = host(Script([{"content": "Hello."}]))
    chat.manager.register(Endless())
    chat.send("Good morning.")
    [cap] = re.findall(r"^TURNS = (\d+)$", page(), re.MULTILINE)
    assert chat.calls == int(cap)
    assert f"{cap} turns in a row are the host's own limit" in capsys.readouterr().out


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's distribution, built from its two blocks and unpacked."""
    folder = tmp_path_factory.mktemp("distribution")
    (folder / "pyproject.toml").write_text(only(PAGE, "toml", "rage.hosts"), "utf-8")
    (folder / "small_host.py").write_text(only(PAGE, "python", "class Host"), "utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def installed(
    project: Project, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`rage WORDS --host small` with the distribution installed and a model of these replies."""

    def rage(
        *words: str, replies: Sequence[dict[str, Any]], stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        text = json.dumps([{"tools": [], "usage": [10, 1], **r} for r in replies])
        code = f"import json\n\nrest = json.loads({text!r})\n\n\ndef reply(messages):\n"
        code += "    return rest.pop(0) if len(rest) > 1 else rest[0]\n"
        (tmp_path / "my_models.py").write_text(code, "utf-8")
        monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", f"{site}:{tmp_path}")
        more = ("--host", "small", "--model", "my_models:reply")
        return project.rage(*words, *more, stdin=stdin)

    return rage


def test_rage_run_drives_the_page_s_host(
    project: Project, installed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """F024, F155: found by its entry point, called by the page's contract, one JSON object."""
    replies = [write("calc/__init__.py", FIXED), {"content": "Fixed."}]
    done = installed("run", "#5", "--json", "--budget", "300k", replies=replies)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["status"], result["items"][0]["status"]) == ("done", "done")
    assert "was red and is green" in done.stderr
    again = installed("run", "#9", "--json", replies=replies)
    assert again.returncode == 1
    assert json.loads(again.stdout)["reason"].startswith("There is no item 9")


def test_rage_run_tells_what_the_page_s_host_came_to(
    project: Project, installed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The options reach the run, a paused run is 4, and a bad model is one line."""
    done = installed("run", "#5", "--max-iterations", "1", replies=[{"content": "Hm."}])
    assert done.returncode == 4, done.stderr
    assert "LIMIT_ITERATIONS: 1 turns were the limit" in done.stdout
    bad = project.rage("run", "#5", "--host", "small", "--model", "nowhere:reply")
    assert bad.returncode == 1
    assert bad.stderr.startswith("There is no model 'nowhere:reply': No module named")
    assert bad.stderr.count("\n") == 1


def test_rage_chat_drives_the_page_s_host(
    project: Project, installed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """With the plugin, and without it the same chat."""
    lines = "/rage status\n/exit\n"
    done = installed("chat", replies=[{"content": "Hm."}], stdin=lines)
    assert done.returncode == 0, done.stderr
    assert "There is no run in this workspace" in done.stdout
    done = installed("chat", "--without-rage", replies=[{"content": "Hm."}], stdin=lines)
    assert done.returncode == 0, done.stderr
    assert "There is no run" not in done.stdout


def test_a_plugin_that_fails_costs_one_line(
    host: Callable[[Script], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        @rage_plugin.hookimpl
        def rage_before_model_call(self) -> str:
            raise ValueError("broken")

    chat = host(Script([{"content": "Hello."}]))
    chat.manager.register(Broken())
    chat.send("Good morning.")
    assert chat.history[-1]["content"] == "Hello."
    assert "a plugin failed in before_model_call" in capsys.readouterr().out


def test_a_call_that_is_held_is_not_made(
    host: Callable[[Script], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """F043, as the page says it: told what the call may cost, the turn ends with `limit`."""
    told: list[int] = []
    turns: list[Turn] = []

    class Budget:
        @rage_plugin.hookimpl
        def rage_before_model_call(self, request: ModelRequest) -> Hold | None:
            told.append(request.tokens)
            return Hold("the budget is spent") if len(told) > 2 else None

        @rage_plugin.hookimpl
        def rage_turn_end(self, turn: Turn) -> None:
            turns.append(turn)

    chat = host(Script([{"content": "Hm.", "usage": (9_000, 1)}]))
    assert chat.worst_case() == 0, "nobody listens"
    chat.manager.register(Budget())
    for line in ("Good morning.", "And now?", "x" * 10_000):
        chat.send(line)
    assert chat.calls == 2
    assert [turn.reason for turn in turns] == ["done", "done", "limit"]
    assert "the budget is spent" in capsys.readouterr().out
    reserve = 4_096 + 600
    assert reserve < told[0] < reserve + 100
    assert 9_000 + reserve < told[1] < 9_100 + reserve
    assert 14_000 + reserve < told[2] < 14_100 + reserve


def test_the_registration_is_enough() -> None:
    """The first block of the page: a manager that answers `/rage help`."""
    module = page_module("registration", only(PAGE, "python", "chat-17"))
    reply = module.manager.hook.rage_user_message(session=module.session, text="/rage help")
    assert "/rage start" in reply.text
    module.rage.close()


def test_only_the_quiet_hooks_are_registered_while_idle() -> None:
    """Law 1, as the page says it."""
    manager = pluggy.PluginManager("rage")
    manager.add_hookspecs(HostSpec)
    manager.register(RagePlugin(manager))
    heard = {n for n in HOOKS if getattr(manager.hook, n).get_hookimpls()}
    text = page()
    assert heard == {"rage_user_message", "rage_session_start"}
    assert all(
        f"only `{a}` and `{b}`" in text for a, b in [("rage_user_message", "rage_session_start")]
    )


def test_every_hook_is_in_the_table() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(rage_\w+)` \|", page(), re.MULTILINE)
    assert sorted(rows) == sorted(HOOKS)


def test_the_flags_that_change_something_are_the_ones_that_the_code_asks_for() -> None:
    """A row of the table is empty exactly where nothing depends on the flag."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|([^|]*)\|$", page(), re.MULTILINE)
    code = "\n".join(p.read_text("utf-8") for p in (ROOT / "rage_plugin").rglob("*.py"))
    asked = set(re.findall(r'"(\w+)" (?:not )?in (?:\w+\.)*flags', code))
    assert {flag for flag, effect in rows if effect.strip()} == asked
    assert asked <= {flag for flag, _ in rows}


@pytest.mark.parametrize("nobody", ["", "null", "None", "undefined", "nil"])
def test_an_id_that_names_nobody_gets_no_run(project: Project, nobody: str) -> None:
    """Law 10, as the page says it."""
    manager = pluggy.PluginManager("rage")
    manager.add_hookspecs(HostSpec)
    rage = RagePlugin(manager)
    manager.register(rage)
    session = Session("small", nobody, str(project.root))
    reply = manager.hook.rage_user_message(session=session, text="/rage start #5")
    rage.close()
    assert reply.error
    assert "no usable session id" in reply.text


def page() -> str:
    return (ROOT / "docs" / PAGE).read_text("utf-8")
