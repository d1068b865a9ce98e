"""The distribution of docs/extensions.md is built, installed and used by a real run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rage_plugin.hookspecs import ExtensionSpec

from ..e2e.project import CODE, ENVIRONMENT, FIX, Project, rage_line, reply
from .pages import ROOT, blocks, only

PAGE = "extensions.md"
MODULES = {
    "source": "def rage_backlog_source",
    "tap": "def rage_parse_report",
    "notice": "def rage_sink",
}
EVENTS = set(re.findall(r"\b(?:item|run)_\w+", ExtensionSpec.rage_sink.__doc__ or ""))
TICKETS = [
    {"id": "T-7", "title": "Sums are wrong", "text": "add(2, 3) gives -1.", "after": ["T-6"]},
    {"id": "T-6", "title": "Begin", "closed": True},
    {"id": "T-8", "title": "Something else"},
]
RUNNER = """import sys

sys.path.insert(0, ".")
from calc import add, double

checks = [("adds", add(2, 3) == 5), ("doubles", double(4) == 8)]
lines = [f"{'' if ok else 'not '}ok {n} - {name}" for n, (name, ok) in enumerate(checks, 1)]
with open(sys.argv[1], "w") as report:
    print("TAP version 13", *lines, "ok 3 - not now # SKIP later", sep="\\n", file=report)
sys.exit(not all(ok for _, ok in checks))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's distribution, built by its own build backend and unpacked."""
    folder = tmp_path_factory.mktemp("distribution")
    package = folder / "rage_tickets"
    package.mkdir()
    (folder / "pyproject.toml").write_text(only(PAGE, "toml", "rage-tickets"), "utf-8")
    (package / "__init__.py").write_text("", "utf-8")
    for name, having in MODULES.items():
        (package / f"{name}.py").write_text(only(PAGE, "python", having), "utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def project(tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(site))
    files = {
        "calc/__init__.py": CODE,
        "tests/tap.py": RUNNER,
        "tickets.json": json.dumps(TICKETS),
        "rage.yaml": only(PAGE, "yaml", "tests/tap.py"),
        ".gitignore": "__pycache__/\n",
    }
    return Project(tmp_path / "repo", tmp_path / "home", files)


def test_a_run_uses_source_parser_and_sink(project: Project) -> None:
    """F031: extensions are found by their entry points, and all three take part in a run."""
    line = rage_line(slice="add up", scope=["calc"])
    result = project.run([reply(line, FIX), reply("Fixed.")], "ticket:T-7")
    assert result.code == 0, result.err
    assert list(result.items) == ["T-7"]
    item = result.items["T-7"]
    assert item["red"] == ["adds"], "the outcomes by name come from the parser"
    told = (project.root / ".git" / "rage" / "notice.txt").read_text("utf-8")
    assert told.splitlines() == ["item_done T-7 of ticket:T-7", "run_done T-7 of ticket:T-7"]
    assert not (project.root / ".git" / "rage" / "rage.log").exists(), "no sink failed"


def test_a_source_that_cannot_read_is_one_line(project: Project) -> None:
    project.write({"tickets.json": "[{]"})
    done = project.rage("plan", "ticket:T-7")
    assert done.returncode == 1
    assert done.stderr.startswith("tickets.json cannot be read")
    assert "mend tickets.json" in done.stderr


def test_the_way_to_test_a_source_works(project: Project, site: Path) -> None:
    """The last block of the page, in the workspace."""
    code = only(PAGE, "python", "BacklogRoom")
    env = {**ENVIRONMENT, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.root,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_block_of_the_page_is_one_of_these() -> None:
    used = [*MODULES.values(), "BacklogRoom", "rage-tickets", "tests/tap.py"]
    every = blocks(ROOT / "docs" / PAGE, "python", "toml", "yaml", "sh")
    assert [b.place for b in every if not any(word in b.text for word in used)] == []


def test_the_page_has_every_extension_hook_and_every_event_of_a_sink() -> None:
    text = (ROOT / "docs" / PAGE).read_text("utf-8")
    hooks = [name for name in vars(ExtensionSpec) if name.startswith("rage_")]
    assert [h for h in hooks if f"def {h}" not in text] == []
    listed = text.split("`event` is one of", 1)[1].split("\n- ", 1)[0]
    assert set(re.findall(r"`(\w+)`", listed)) == EVENTS


def test_a_sink_is_told_of_a_pause_and_of_a_stop(project: Project) -> None:
    """The keys of `run` and two of the events, as RAGE's own sink wrote them down."""
    lines = ["/rage start ticket:T-8", "/rage pause", "/rage stop"]
    model = project.script([reply("Hm.")])
    project.rage("chat", "--model", model, stdin="\n".join(lines) + "\n")
    told = (project.root / ".git" / "rage" / "events.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in told]
    assert {row["event"] for row in rows} <= EVENTS
    assert rows[-1]["event"] == "run_stopped"
    text = (ROOT / "docs" / PAGE).read_text("utf-8")
    keys = re.findall(r"`(\w+)`", text.split("`run` holds", 1)[1].split("\n- ", 1)[0])
    assert set(rows[-1]) - {"key", "event"} == set(keys)
