"""A workspace that an agent changed, and a way to run checks on its base in each isolation."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rage_plugin.verify.command import Completed
from rage_plugin.verify.isolation import CouldNotRun, Isolation, ViewSpec, ladder
from rage_plugin.verify.tree import Trees
from tests.verify_tree.repositories import git, make, write


@dataclass
class Workspace:
    """base: `code`, `only base`, `sub/x`; now: `code` changed, `only base` gone, `new/file` new."""

    root: Path
    home: Path
    trees: Trees = field(init=False)
    state: Path = field(init=False)
    base: str = field(init=False)
    now: str = field(init=False)
    before: tuple[str, ...] = ("old notes",)

    def __post_init__(self) -> None:
        make(
            self.root,
            {"code": "base\n", "only base": "b", "sub/x": "1", ".gitignore": "*.log\n.venv\n"},
        )
        write(self.root, {"old notes": "untracked", "x.log": "ignored", ".venv/lib": "installed"})
        common = git(self.root, "rev-parse", "--path-format=absolute", "--git-common-dir")
        self.state = Path(common) / "rage"
        self.trees = Trees(self.root, self.state)
        self.base = self.trees.snapshot(self.before)
        self.change()

    def change(self) -> None:
        """What the agent did."""
        write(self.root, {"code": "candidate\n", "new/file": "n"})
        (self.root / "only base").unlink()
        (self.root / "sub/x").chmod(0o755)
        self.now = self.trees.snapshot(self.before)

    def view(self, **more: object) -> ViewSpec:
        return ViewSpec(tree=self.base, current=self.now, hidden=self.before, **more)  # type: ignore[arg-type]

    def run(
        self,
        isolation: Isolation,
        *argv: str,
        spec: ViewSpec | None = None,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 20.0,
        **more: object,
    ) -> Completed:
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        return isolation.run(
            spec or self.view(),
            argv,
            cwd=cwd,
            env={**plain, **(env or {})},
            timeout_s=timeout_s,
            **more,  # type: ignore[arg-type]
        )


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    home = tmp_path / "home"
    home.mkdir()
    return Workspace(tmp_path / "wörk space\n,:", home)


def isolation(space: Workspace, name: str) -> Isolation:
    """The rung of that name; the test is skipped where the system has none."""
    try:
        return ladder(space.trees, space.state, name)
    except CouldNotRun as error:
        pytest.skip(error.what)


@pytest.fixture(params=["overlay", "swap", "scratch"])
def rung(request: pytest.FixtureRequest, space: Workspace) -> Isolation:
    return isolation(space, request.param)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A folder that a tmpfs can be mounted on for the length of a test, as root."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts")
    yield tmp_path
    for line in Path("/proc/self/mounts").read_text().splitlines()[::-1]:
        if (point := line.split(" ")[1].replace("\\040", " ")).startswith(str(tmp_path)):
            subprocess.run(["umount", point], check=True)
