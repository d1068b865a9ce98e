"""The host in docs/host-adapter.md is run as it stands there until an item is done."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pluggy
import pytest

import rage_plugin
from rage_plugin import HostSpec, RagePlugin, Session

from ..e2e.project import ENVIRONMENT, FIXED, Project
from .pages import ROOT, only

PAGE = "host-adapter.md"
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
def host(project: Project) -> Iterator[Callable[[Script], Any]]:
    made: list[Any] = []

    def make(script: Script) -> Any:
        module = page_module("small_host", only(PAGE, "python", "class Host"))
        made.append(module.Host(project.root, script))
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

    def failing(_request: list[dict[str, Any]]) -> dict[str, Any]:
        raise errors[0]("the line is dead")

    chat.model = failing
    chat.send("/rage start #5")
    assert chat.rage.report(chat.session)["reason"].startswith("INTERRUPT")
    assert chat.calls == 1
    errors[0] = ConnectionError
    chat.send("/rage resume")
    assert chat.rage.report(chat.session)["reason"].startswith("PROVIDER_ERRORS")
    assert chat.calls == 4


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
