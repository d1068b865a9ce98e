"""A host of another distribution that is broken: one line that names both, whatever it raises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .project import ENVIRONMENT, Project

HOSTS = {
    "narrow": "def __init__(self, workspace): pass",
    "mute": "def __init__(self, workspace, model, with_rage=True): pass",
    "empty": (
        "def __init__(self, workspace, model, with_rage=True): pass\n"
        "    def run(self, target, options, as_json=False): pass\n"
        "    def chat(self): raise ValueError('two\\nlines')"
    ),
}
"""Bodies of hosts by name; `gone` is registered besides, and its module is not there."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The small project, and a distribution `theirs` in a site folder of its own."""
    site = tmp_path / "site"
    info = site / "theirs-2.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 2.1\n", "utf-8")
    names = [*HOSTS, "gone"]
    lines = [f"{n} = {'nowhere' if n == 'gone' else 'theirs'}:{n.title()}" for n in names]
    (info / "entry_points.txt").write_text("\n".join(["[rage.hosts]", *lines]), "utf-8")
    code = "\n\n".join(f"class {n.title()}:\n    {body}" for n, body in HOSTS.items())
    (site / "theirs.py").write_text(code + "\n", "utf-8")
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(site))
    return Project(tmp_path / "repo", tmp_path / "home")


@pytest.mark.parametrize(
    ("host", "command", "said"),
    [
        ("gone", "run", "No module named 'nowhere'"),
        ("narrow", "run", "TypeError"),
        ("mute", "run", "has no attribute 'run'"),
        ("mute", "chat", "has no attribute 'chat'"),
        ("empty", "run", "run returned None and no exit code"),
        ("empty", "chat", "ValueError: two lines"),
    ],
)
def test_a_broken_host_is_one_line_with_its_name(
    project: Project, host: str, command: str, said: str
) -> None:
    """F155: exit code 1 and no `internal fault`: it is not RAGE that is to be mended."""
    words = ["#5", "--json"] if command == "run" else []
    done = project.rage(command, *words, "--host", host, "--model", "any", stdin="")
    assert done.returncode == 1, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"The host {host} of theirs 2.1 failed: ")
    assert said in line
    log = Path(line.split("Its traceback is in ", 1)[1].split(". Next: ")[0])
    assert "Traceback" in log.read_text("utf-8")
    if command == "run":
        told = json.loads(done.stdout)
        assert (told["status"], told["reason"]) == ("failed", line)


def test_a_host_that_is_not_registered(project: Project) -> None:
    """The registered ones are named, those of other distributions too."""
    done = project.rage("run", "#5", "--json", "--host", "smal", "--model", "any")
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no host 'smal'; installed: embedded, empty, gone, mute, narrow" in done.stderr
