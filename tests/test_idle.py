"""Law 1: installed and idle, RAGE is one plugin that looks at the first word of a message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("litellm", "tiktoken", "jinja2", "sqlite_utils", "sqlite3", "pydantic", "yaml", "rich")
IDLE_CHAT = """
import json, sys, threading
import pluggy
from rage_plugin import HostSpec, ModelRequest, RagePlugin, Session, ToolCall, Turn, Usage

manager = pluggy.PluginManager("rage")
manager.add_hookspecs(HostSpec)
plugin = RagePlugin(manager)
manager.register(plugin)
session = Session("test", "s1", sys.argv[1])
hook = manager.hook
hook.rage_session_start(session=session)
answers = []
for text in ("hello", "rage is a word", "please start #5", "/ragex", ""):
    answers.append(hook.rage_user_message(session=session, text=text))
    answers.append(hook.rage_before_model_call(session=session, request=ModelRequest()))
    hook.rage_after_model_call(session=session, usage=Usage(1, 1))
    answers.append(hook.rage_before_tool_call(session=session, call=ToolCall("x")))
    answers.append(hook.rage_turn_end(session=session, turn=Turn()))
hook.rage_session_end(session=session)
print(json.dumps({
    "answers": [a for a in answers if a is not None],
    "plugins": len(manager.get_plugins()),
    "implementations": {
        name: len(getattr(hook, name).get_hookimpls())
        for name in dir(hook) if name.startswith("rage_")
    },
    "modules": sorted(m for m in sys.argv[2].split(",") if m in sys.modules),
    "threads": threading.active_count(),
}))
"""


def idle_chat(workspace: Path, home: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", IDLE_CHAT, str(workspace), ",".join(HEAVY)],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    data: dict[str, object] = json.loads(done.stdout)
    return data


def test_an_idle_chat_costs_nothing(tmp_path: Path) -> None:
    """F001, F002, F005: no answer, no database, no thread, no heavy import, two hooks registered."""
    workspace, home = tmp_path / "w", tmp_path / "h"
    workspace.mkdir()
    home.mkdir()
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    before = sorted(str(p) for p in workspace.rglob("*"))
    seen = idle_chat(workspace, home)
    assert seen["answers"] == []
    assert seen["plugins"] == 1
    implementations = seen["implementations"]
    assert isinstance(implementations, dict)
    registered = {name for name, count in implementations.items() if count}
    assert registered == {"rage_user_message", "rage_session_start"}
    assert seen["modules"] == []
    assert seen["threads"] == 1
    assert sorted(str(p) for p in workspace.rglob("*")) == before
    assert list(home.iterdir()) == []


def test_the_public_face_is_lazy() -> None:
    """`import rage_plugin` loads none of its own modules."""
    code = (
        "import sys, rage_plugin; print([m for m in sys.modules if m.startswith('rage_plugin.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_all_there() -> None:
    """Every name of `__all__` can be had, and nothing else."""
    import rage_plugin

    for name in rage_plugin.__all__:
        assert getattr(rage_plugin, name) is not None
    assert not hasattr(rage_plugin, "Nonsense")
