"""The built-in sink, called through pluggy like any third party's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pluggy
import pytest

from rage_plugin.deliver import JsonlSink
from rage_plugin.hookspecs import PROJECT, ExtensionSpec


@pytest.fixture
def manager() -> pluggy.PluginManager:
    one = pluggy.PluginManager(PROJECT)
    one.add_hookspecs(ExtensionSpec)
    one.register(JsonlSink())
    one.check_pending()
    return one


def told(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_each_event_is_one_line(manager: pluggy.PluginManager, tmp_path: Path) -> None:
    run = {"run": "r", "item": "5", "detail": "zwei\nZeilen ü", "state_folder": str(tmp_path)}
    manager.hook.rage_sink(run=run, event="item_done")
    manager.hook.rage_sink(run=run, event="run_ended")
    lines = told(tmp_path)
    assert [line["event"] for line in lines] == ["item_done", "run_ended"]
    assert lines[0] | run == lines[0]


def test_what_happens_once_is_written_once(manager: pluggy.PluginManager, tmp_path: Path) -> None:
    """F112: idempotent by key."""
    run = {"run": "r", "item": "5", "state_folder": str(tmp_path)}
    for _ in range(3):
        manager.hook.rage_sink(run=run, event="item_done")
        manager.hook.rage_sink(run=run, event="run_paused")
    manager.hook.rage_sink(run={**run, "item": "6"}, event="item_done")
    assert [line["event"] for line in told(tmp_path)].count("item_done") == 2
    assert [line["event"] for line in told(tmp_path)].count("run_paused") == 3


def test_line_that_a_kill_cut_short_spoils_no_other(
    manager: pluggy.PluginManager, tmp_path: Path
) -> None:
    run = {"run": "r", "state_folder": str(tmp_path)}
    manager.hook.rage_sink(run=run, event="item_done")
    path = tmp_path / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    manager.hook.rage_sink(run=run, event="item_done")
    assert json.loads(path.read_text().splitlines()[1])["event"] == "item_done"


def test_run_without_a_folder_is_no_error(manager: pluggy.PluginManager) -> None:
    manager.hook.rage_sink(run={"run": "r"}, event="item_done")


def test_processes_do_not_mix_their_lines(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom rage_plugin.deliver import JsonlSink\n"
        "for n in range(20):\n"
        "    JsonlSink().rage_sink({'state_folder': sys.argv[1], 'n': n, 'x': 'x' * 9000}, 'p')\n"
    )
    args = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(args) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert len(told(tmp_path)) == 60
