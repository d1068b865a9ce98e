"""Real projects in real repositories, each with a small virtual environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

import pytest

from rage_plugin.core.config import CheckCommand, VerifyConfig
from rage_plugin.core.judgement import Cell
from rage_plugin.verify import reports
from rage_plugin.verify.cell import Cells
from rage_plugin.verify.isolation import CouldNotRun, Isolation, ladder
from rage_plugin.verify.tree import Trees

GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}
PYTEST = CheckCommand("tests", ("pytest", "-q", "{targets}"), report="pytest", timeout_s=60)


def link_packages(site: Path, *distributions: str) -> None:
    """Install distributions of this environment into another one, by links."""
    for name in distributions:
        files = distribution(name).files or []
        source = Path(str(distribution(name).locate_file("")))
        for top in {file.parts[0] for file in files if file.parts[0] != ".."}:
            if top != "__pycache__" and not (site / top).exists():
                (site / top).symlink_to(source / top)


@pytest.fixture(scope="session")
def template_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds pytest and nothing else."""
    folder = tmp_path_factory.mktemp("template") / "venv"
    venv.EnvBuilder(symlinks=True).create(folder)
    link_packages(site_of(folder), "pytest", "pluggy", "iniconfig", "packaging", "pygments")
    return folder


def site_of(environment: Path) -> Path:
    """The folder of installed packages of a virtual environment."""
    scheme = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", "venv", scheme))


@dataclass
class Project:
    """A repository with files, and cells that run on its trees."""

    root: Path
    state: Path
    force: str = "auto"
    config: VerifyConfig = field(default_factory=VerifyConfig)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "work")
        self.write({".gitignore": ".venv/\n__pycache__/\n.pytest_cache/\n*.pyc\n"})
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    def git(self, *args: str) -> None:
        """Run git with a configuration of its own."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | GIT
        subprocess.run(["git", *args], cwd=self.root, env=env, check=True, capture_output=True)

    def write(self, files: dict[str, str | None]) -> None:
        """Write or remove files of the work tree."""
        for path, text in files.items():
            target = self.root / path
            if text is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    def tree(self, files: dict[str, str | None] | None = None) -> str:
        """Write files and hash the work tree."""
        self.write(files or {})
        return self.trees.snapshot()

    @property
    def trees(self) -> Trees:
        return Trees(self.root, self.state)

    @property
    def isolation(self) -> Isolation:
        return ladder(self.trees, self.state, self.force)

    def cells(self) -> Cells:
        """Fresh cells, as a new process would make them."""
        return Cells(
            self.trees,
            self.state,
            self.config,
            self.isolation,
            lambda _kind, path: reports.parse(path),
            self.lines.append,
        )

    def check(
        self,
        files: dict[str, str | None] | None = None,
        *,
        command: CheckCommand | Sequence[str] = PYTEST,
        base: str | None = None,
        targets: Sequence[str] = (),
        tree: str | None = None,
        hidden: Sequence[str] = (),
        repeat: int = 0,
    ) -> Cell:
        """Write files, then run the command on the tree that results (or on `tree`)."""
        self.write(files or {})
        current = self.trees.snapshot(exclude=hidden)
        if not isinstance(command, CheckCommand):
            command = CheckCommand("tests", tuple(command), timeout_s=60)
        return self.cells().run(
            "green",
            command,
            tree or current,
            current=current,
            hidden=hidden,
            config_tree=base or tree or current,
            targets=targets,
            repeat=repeat,
        )


@pytest.fixture
def bare(tmp_path: Path) -> Project:
    """A project without a virtual environment, in a folder with a space and an umlaut."""
    return Project(tmp_path / "wörk tree", tmp_path / "state")


@pytest.fixture
def project(bare: Project, template_venv: Path) -> Project:
    """A project with a virtual environment of its own that holds pytest."""
    shutil.copytree(template_venv, bare.root / ".venv", symlinks=True)
    return bare


@pytest.fixture(params=["overlay", "swap", "scratch"])
def rung(request: pytest.FixtureRequest, project: Project) -> Project:
    """A project whose checks run in one isolation of the ladder."""
    project.force = request.param
    try:
        _ = project.isolation
    except CouldNotRun:
        pytest.skip(f"{request.param} does not work here")
    return project


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the developer's reaches a check, or steers git."""
    for name in [n for n in os.environ if n.startswith("GIT_")] + ["VIRTUAL_ENV"]:
        monkeypatch.delenv(name, raising=False)
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def other_python(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes programs that stand before others on PATH."""

    def make(script: str) -> Path:
        path = tmp_path / "bin" / "uv"
        path.parent.mkdir(exist_ok=True)
        # A first line cannot name an interpreter whose path holds a space; `sh` can.
        start = f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n"
        path.write_text(start + script)
        path.chmod(0o755)
        return path

    yield make
