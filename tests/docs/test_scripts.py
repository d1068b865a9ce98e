"""docs/scripts.md against the commands: every field, its type, the exit codes, the example."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from host_adapters.embedded import script
from host_adapters.embedded.chat import EXIT
from host_adapters.embedded.tools import SCHEMAS
from rage_plugin import cli, wish
from rage_plugin.core.model import ItemState
from rage_plugin.intake import Plan, PlannedItem
from rage_plugin.report import ItemReport, Report

from ..e2e.project import ENVIRONMENT, FIX, Project, edit, rage_line, reply
from .pages import ROOT, only

PAGE = (ROOT / "docs" / "scripts.md").read_text("utf-8")
TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "number": (int, float),
    "list": (list,),
    "object": (dict,),
    "true or false": (bool,),
}
VARIES = {"run", "tree", "commits", "head", "tokens"}
"""Keys whose values are other ones each time; of `evidence`, the ids too."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "mein repo", tmp_path / "home")


def fields(heading: str) -> dict[str, str]:
    """The field table below a heading: type by name."""
    section = re.split(r"\n#+ ", PAGE.split(f" {heading}\n", 1)[1])[0]
    return dict(re.findall(r"^\| `([\w.]+)` \| ([^|]+?) \|", section, re.MULTILINE))


def assert_fields(heading: str, data: dict[str, Any]) -> None:
    """The object has the fields of the page, no other ones, and of those types."""
    told = fields(heading)
    assert list(data) == list(told), heading
    for name, value in data.items():
        assert isinstance(value, TYPES[told[name]]), (heading, name, value)
        assert isinstance(value, bool) == (told[name] == "true or false"), (heading, name)


def assert_alike(told: Any, real: Any, where: str, varies: bool = False) -> None:
    """The example of the page and a real result: equal but for what is another each time."""
    assert type(told) is type(real), where
    if isinstance(told, dict):
        assert list(told) == list(real), where
        for key in told:
            path = f"{where}.{key}"
            words = path == "result.reason"  # a sentence for a person
            new = key in VARIES or words or (key == "id" and ".evidence" in where)
            assert_alike(told[key], real[key], path, varies or new)
    elif isinstance(told, list):
        assert len(told) == len(real), where
        for number, (one, other) in enumerate(zip(told, real, strict=True)):
            assert_alike(one, other, f"{where}[{number}]", varies)
    elif varies:
        assert bool(told) == bool(real), where
    else:
        assert told == real, where


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object with the keys of its inner objects as dotted ones."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        found |= (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return found


def test_the_example_comes_out_as_the_page_shows_it(project: Project) -> None:
    """F145, F155: the page's rehearsal and command, and every key of what they print."""
    (project.root / "rehearsal.json").write_text(only("scripts.md", "json", '"tools"'), "utf-8")
    shell = ["bash", "-euo", "pipefail", "-c", only("scripts.md", "sh", "result.json")]
    bin_folder = str(Path(sys.executable).parent)
    env = {**ENVIRONMENT, "PATH": f"{bin_folder}:{ENVIRONMENT['PATH']}", "HOME": str(project.home)}
    done = subprocess.run(
        shell, cwd=project.root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    real = json.loads((project.root / "result.json").read_text("utf-8"))
    assert_alike(json.loads(only("scripts.md", "json", '"head"')), real, "result")
    assert_fields("Fields of a run", real)
    assert_fields("Fields of an item", real["items"][0])
    for name in ("status", "report"):
        again = project.rage(name, "--json")
        assert again.returncode == 0
        assert json.loads(again.stdout) == real
    account = json.loads(project.rage("context", "--json").stdout)
    assert_fields("Fields of the context", flat(account))
    for list_name in ("by_part", "by_run"):
        row = next(x for x in PAGE.splitlines() if x.startswith(f"| `{list_name}` |"))
        assert re.findall(r"`(\w+)`", row)[1:] == list(account[list_name][0])


def test_an_unverified_item_is_exit_4_and_can_be_accepted(project: Project) -> None:
    """F163: every state of a run has the same fields."""
    project.write({"backlog/5-sums.md": "# Sums\n\nTwice is slow.\n\n- [ ] it is fast\n"})
    project.commit("another item")
    line = rage_line(slice="turn it round", gate="tests/test_other.py", scope=["calc"])
    change = edit("calc/__init__.py", "a * 2", "2 * a")
    result = project.run([reply(line, change), reply("Done.")])
    assert result.code == 4, result.err
    assert result.data["status"] == "paused"
    assert result.data["reason"].startswith("UNVERIFIED: ")
    assert result.items["5"]["status"] == "unverified"
    assert result.items["5"]["state"] == "IN_PROGRESS"
    assert result.items["5"]["criteria_not_checked"] == ["it is fast"]
    assert_fields("Fields of a run", result.data)
    assert_fields("Fields of an item", result.items["5"])
    accepted = project.rage("accept", "5", "--json")
    assert accepted.returncode == 0
    data = json.loads(accepted.stdout)
    assert_fields("Fields of a run", data)
    assert data["items"][0]["origin"] == "person"


def test_what_is_refused(project: Project) -> None:
    """F155: exit codes 1 and 2, and what is on standard output then."""
    none = project.rage("status", "--json")
    assert (none.returncode, none.stdout.strip()) == (0, '{"status": "none"}')
    assert '`{"status": "none"}`' in PAGE
    for words in (["report"], ["pause"], ["correct", "x"], ["accept", "5"], ["plan", "#9"]):
        refused = project.rage(*words, "--json")
        assert (refused.returncode, refused.stdout.strip()) == (1, ""), words
        assert refused.stderr.count("\n") == 1
    for words in (["plan"], ["strat"], ["run", "#5", "--model", "script:x", "--items", "0"]):
        usage = project.rage(*words)
        assert (usage.returncode, usage.stdout) == (2, ""), words
    unknown = project.run([reply("x")], "#9")
    assert unknown.code == 1
    assert unknown.data.pop("reason").startswith("There is no item 9")
    assert unknown.data == {"run": None, "status": "failed", "items": [], "tokens": 0, "head": ""}


def test_a_wish_is_recorded(project: Project) -> None:
    done = project.rage("start", "#5", "--json")
    assert done.stdout.strip() == '{"recorded": ["start", "#5"]}'
    assert f"`{done.stdout.strip()}`" in PAGE


def test_limits_that_are_typed_again_hold_for_the_run_that_goes_on(project: Project) -> None:
    """F004: the same target goes on, with its old limits or with the new ones."""
    paused = project.run([reply("Hm.")], "#5", "--max-iterations", "1")
    assert paused.code == 4
    assert paused.data["next"] == 'rage run "#5" --max-iterations +5 | rage stop'
    work = [reply("", FIX), reply("Fixed.")]
    again = project.run(work)
    assert again.code == 4
    assert again.data["reason"].startswith("LIMIT_ITERATIONS")
    done = project.run(work, "#5", "--max-iterations", "5")
    assert done.code == 0, done.err
    assert done.data["run"] == again.data["run"] == paused.data["run"]
    assert done.data["next"].startswith("git log ")


def test_the_words_and_keys_of_a_chat(project: Project) -> None:
    """What ends a chat; the signals are sent in the tests of the hosts."""
    section = PAGE.split("## In a chat", 1)[1].split("\n## ", 1)[0]
    assert set(re.findall(r"`(/\w+)`", section)) == EXIT
    for word in EXIT:
        model = project.script([reply("answered")])
        done = project.rage("chat", "--model", model, stdin=f"hello\n{word}\nnever sent\n")
        assert done.returncode == 0
        assert done.stdout.count("answered") == 1
    assert wish.LASTS_S == 3600
    assert "A wish lasts an hour" in PAGE


def test_a_plan_has_the_fields_of_the_page(project: Project) -> None:
    """F158."""
    plan = json.loads(project.rage("plan", "#5", "--json").stdout)
    assert_fields("Fields of a plan", plan)
    assert_fields("Fields of a planned item", plan["items"][0])
    row = next(x for x in PAGE.splitlines() if x.startswith("| `checks` |"))
    assert set(plan["checks"][0]) == set(re.findall(r"`(\w+)`", row)[1:])
    reference = (ROOT / "docs" / "reference.md").read_text("utf-8")
    assert all(f"`limits.{name}`" in reference for name in plan["limits"])


def test_the_types_of_the_code_have_the_fields_of_the_page() -> None:
    """Also where no run of a test shows a field."""
    assert list(Report.__annotations__) == list(fields("Fields of a run"))
    assert list(ItemReport.__annotations__) == list(fields("Fields of an item"))
    assert list(Plan.__annotations__) == list(fields("Fields of a plan"))
    assert list(PlannedItem.__annotations__) == list(fields("Fields of a planned item"))
    row = next(x for x in PAGE.splitlines() if x.startswith("| `status` | text | `pending`"))
    words = set(re.findall(r"`(\w+)`", row)[1:])
    assert words == {s.lower() for s in ItemState} | {"unverified"}


def test_the_exit_codes_of_the_page_are_those_of_the_command() -> None:
    codes = {cli.DONE, cli.REFUSED, cli.USAGE, cli.FAULT, cli.PERSON, cli.INTERRUPTED}
    told = re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)
    assert list(map(int, told)) == sorted(codes)


def test_the_script_has_the_fields_and_the_tools_of_the_page(tmp_path: Path) -> None:
    told = fields("Rehearse with a script")
    shown = {"text": "x", "tools": [], "usage": {"input": 1}, "error": "429", "delay_s": 0}
    assert list(told) == list(shown)
    path = tmp_path / "script.json"
    path.write_text(json.dumps([shown]), "utf-8")
    script.ScriptModel.read(str(path))
    path.write_text(json.dumps([{**shown, "more": 1}]), "utf-8")
    with pytest.raises(Exception, match=re.escape(f"known: {', '.join(told)}")):
        script.ScriptModel.read(str(path))
    for schema in SCHEMAS:
        tool: Any = schema["function"]
        assert f"`{tool['name']}({', '.join(tool['parameters']['properties'])})`" in PAGE


def test_a_stopped_run_is_told_with_the_same_fields(project: Project) -> None:
    """F145: also of a run that came to nothing."""
    lines = ["/rage start #5", "/rage stop"]
    project.rage("chat", "--model", project.script([reply("Hm.")]), stdin="\n".join(lines))
    told = project.rage("status", "--json")
    assert told.returncode == 0
    data = json.loads(told.stdout)
    assert data["status"] == "stopped"
    assert_fields("Fields of a run", data)
    assert_fields("Fields of an item", data["items"][0])
