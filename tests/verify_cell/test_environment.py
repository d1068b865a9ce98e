"""Which interpreter and which variables a check gets, and what changes the hash."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rage_plugin.core.config import CheckCommand, VerifyConfig
from rage_plugin.core.judgement import Outcome, Verdict
from rage_plugin.verify.environment import Environment
from rage_plugin.verify.pytest_command import recognise

from .conftest import PYTEST, Project, link_packages, site_of


def interpreter(root: Path, line: str = "pytest", cwd: str = ".") -> str:
    command = recognise(line.split())
    assert command is not None
    found = Environment(root).interpreter(command, cwd)
    return found.argv[0] if found else ""


def test_the_workspaces_own_environment_comes_first(project: Project, tmp_path: Path) -> None:
    own = str(project.root / ".venv" / "bin" / "python")
    assert interpreter(project.root) == own
    assert interpreter(project.root, "python3 -m pytest") == own + "3"
    assert interpreter(project.root, ".venv/bin/pytest") == own
    sub = project.root / "packages" / "a"
    shutil.copytree(project.root / ".venv", sub / "venv", symlinks=True)
    assert interpreter(project.root, cwd="packages/a") == str(sub / "venv" / "bin" / "python")


def test_an_environment_without_pytest_is_passed_over(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(project.root / ".venv", tmp_path / "active", symlinks=True)
    for link in site_of(project.root / ".venv").iterdir():
        if link.is_symlink():
            link.unlink()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert interpreter(project.root) == str(tmp_path / "active" / "bin" / "python")
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setenv("PATH", "/nowhere")
    assert interpreter(project.root) == sys.executable


def test_no_interpreter_at_all_could_not_run(project: Project) -> None:
    cell = project.check(
        {"test_a.py": "def test_a(): pass\n"}, command=["/no/such/python", "-m", "pytest"]
    )
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert "/no/such/python" in cell.note


def test_variables_are_allowed_by_name(monkeypatch: pytest.MonkeyPatch, project: Project) -> None:
    """F105: the environment is an allow-list."""
    for name in ["SOME_API_KEY", "PYTHONPATH", "GIT_DIR", "LD_PRELOAD", "PYTEST_ADDOPTS"]:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("APP_MODE", "test")
    monkeypatch.setenv("APP_LEVEL", "1")
    monkeypatch.setenv("OTHER", "y")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    project.config = VerifyConfig(env_allow=("APP_*", "OTHER"))
    test = """
import json, os, pathlib, sys, tempfile
def test_a():
    print(json.dumps(dict(os.environ)))
    print(json.dumps([sys.argv, tempfile.gettempdir()]))
"""
    cell = project.check({"test_a.py": test}, command=["pytest", "-s", "-q"])
    assert cell.verdict is Verdict.PASS
    lines = Path(cell.record.artifact).read_text().splitlines()
    seen, (argv, temporary) = (json.loads(line) for line in lines if line.startswith(("{", "[[")))
    assert (seen["APP_MODE"], seen["APP_LEVEL"], seen["OTHER"]) == ("test", "1", "y")
    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["VIRTUAL_ENV"] == str(project.root / ".venv")
    assert seen["PATH"].startswith(str(project.root / ".venv" / "bin") + os.pathsep)
    assert not {"SOME_API_KEY", "PYTHONPATH", "GIT_DIR", "LD_PRELOAD", "PYTEST_ADDOPTS"} & set(seen)
    assert temporary == seen["TMPDIR"]
    assert not Path(temporary).exists()
    assert "settings" not in " ".join(argv)


def test_whatever_can_change_a_verdict_changes_the_hash(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F137: `.pth` files, sitecustomize, the runner, entry points, versions, variables."""
    site = site_of(project.root / ".venv")

    def hashed() -> str:
        return project.cells().environment_hash(PYTEST)

    seen = [hashed()]
    assert hashed() == seen[0]

    def changed() -> bool:
        seen.append(hashed())
        return seen[-1] not in seen[:-1]

    (site / "__editable__.pkg.pth").write_text("/somewhere\n")
    assert changed()
    (site / "__editable__.pkg.pth").write_text("/elsewhere\n")
    assert changed()
    (site / "sitecustomize.py").write_text("")
    assert changed()
    info = site / "plugin-1.0.dist-info"
    info.mkdir()
    assert changed()
    (info / "entry_points.txt").write_text("[pytest11]\nx = y\n")
    assert changed()
    runner = site / "_pytest"
    source = runner.resolve()
    runner.unlink()
    shutil.copytree(source, runner, ignore=shutil.ignore_patterns("__pycache__"))
    with (runner / "runner.py").open("a") as file:
        file.write("# changed\n")
    assert changed()
    monkeypatch.setenv("TZ", "Antarctica/Troll")
    assert changed()
    monkeypatch.setenv("UNRELATED", "x")
    assert not changed()
    other = CheckCommand("t", ("pytest", "-v"))
    assert project.cells().environment_hash(other) not in seen


FAKE_UV = """
import os, sys
assert sys.argv[1] == "run"
os.closerange(3, 64)  # some managers do not hand on what they inherit
os.execv({python!r}, [{python!r}, *sys.argv[3:]])
"""


def test_a_manager_of_environments_keeps_its_place(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    other_python: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "managed"
    shutil.move(project.root / ".venv", elsewhere)
    python = str(elsewhere / "bin" / "python")
    uv = other_python(FAKE_UV.format(python=python))
    monkeypatch.setenv("PATH", f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    test = f"import sys\ndef test_a(): assert sys.executable == {python!r}\n"
    cell = project.check({"test_a.py": test}, command=["uv", "run", "pytest", "-q"])
    assert cell.outcomes == {"test_a.py::test_a": Outcome.PASS}
    assert cell.verdict is Verdict.PASS


def test_asking_for_the_hash_is_cheap(project: Project) -> None:
    """Once an interpreter is known, the hash costs no process."""
    link_packages(site_of(project.root / ".venv"), "hypothesis", "pytest-xdist")
    cells = project.cells()
    first = cells.environment_hash(PYTEST)
    python = project.root / ".venv" / "bin" / "python"
    target = python.resolve()
    python.unlink()
    python.symlink_to("/bin/false")
    assert cells.environment_hash(PYTEST) != first
    python.unlink()
    python.symlink_to(target)
    assert cells.environment_hash(PYTEST) == first
