"""The third rung: a whole copy of the tree elsewhere, with its source roots first.

Works where nothing else does. The check sees another path than the workspace's, so an editable
install may still lead to the original code: `RAGE_GUARD_ROOT` names it, and the pytest probe calls
a run inconclusive that imports anything from there.

Limits: dependency folders (`.venv`, `node_modules`) are links to the original, so writes there are
not discarded, nor are writes to HOME or by absolute path; ignored files beyond 256 MB are missing;
submodules and nested repositories are empty; 20,000 files take seconds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rage_plugin.repository import quoted
from rage_plugin.verify.command import Completed
from rage_plugin.verify.tree import DEPENDENCIES, Trees

from . import stage
from .view import ViewSpec, prepared

GUARD = "RAGE_GUARD_ROOT"
"""Environment variable with the original root: code imported from there is not the view's."""

_COPY_LIMIT = 256 * 1024 * 1024
_GIT_SKIPPED = ("objects", "rage", "worktrees", "modules", "lfs")


class Scratch:
    """Checks run in a copy that is thrown away."""

    name = "scratch"

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def available(self) -> bool:
        """Whether there is room for a copy at all."""
        return os.access(tempfile.gettempdir(), os.W_OK)

    def run(
        self,
        spec: ViewSpec,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        output_limit: int = 20_000,
        prepare: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
    ) -> Completed:
        """See `Isolation.run`; `{root}` is the copy."""
        # Not below `.git`, which many tools skip by name.
        with stage.folder(Path(tempfile.gettempdir()), "scratch") as folder:
            # Named like the workspace: some tools show or use the name of their folder.
            root = folder / self._trees.root.name
            stage.delta(self._trees, spec, self._trees.empty_tree, root)
            _copy_ignored(self._trees, root)
            _copy_git(self._trees, root / ".git")
            return prepared(
                root,
                argv,
                prepare,
                cwd=cwd,
                env=_environment(env, self._trees.root, root),
                timeout_s=timeout_s,
                output_limit=output_limit,
                pass_fds=pass_fds,
            )


def _environment(env: Mapping[str, str], original: Path, root: Path) -> dict[str, str]:
    """`env` with the copy's source roots first on PYTHONPATH, and the original root named."""
    given = [part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
    below = [Path(part) for part in [*given, *_editable_roots(original)]]
    moved = [root / path.relative_to(original) for path in below if path.is_relative_to(original)]
    elsewhere = [part for part in given if not Path(part).is_relative_to(original)]
    roots = [*moved, *(p for p in (root / "src", root) if p.is_dir()), *map(Path, elsewhere)]
    return {
        **env,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(str(path) for path in roots)),
        GUARD: str(original),
    }


def _editable_roots(original: Path) -> list[str]:
    """Folders that `.pth` files of the workspace's own virtual environments put on the path."""
    found = []
    for name in sorted(DEPENDENCIES):
        for file in sorted((original / name).glob("lib/python*/site-packages/*.pth")):
            lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            found += [line for line in lines if line.startswith(str(original))]
    return found


def _copy_ignored(trees: Trees, root: Path) -> None:
    """Link dependency folders and copy other ignored files, which checks may need."""
    for path in trees.ignored():
        name = Path(path.rstrip("/")).name
        target = root / path.rstrip("/")
        if path.endswith("/") and name in DEPENDENCIES and not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(trees.root / path, target_is_directory=True)
    room = _COPY_LIMIT
    for path in trees.ignored_files():
        source, target = trees.root / path, root / path
        room -= source.lstat().st_size
        if room < 0 or os.path.lexists(target):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def _copy_git(trees: Trees, target: Path) -> None:
    """A repository of the copy's own that borrows the objects: what a check commits is gone."""
    skipped = shutil.ignore_patterns(*_GIT_SKIPPED)
    shutil.copytree(trees.common_dir, target, symlinks=True, ignore=skipped)
    for name in ("HEAD", "index"):
        if (trees.git_dir / name).exists():
            shutil.copy2(trees.git_dir / name, target / name)
    info = target / "objects" / "info"
    info.mkdir(parents=True)
    lenders = (trees.common_dir / "objects", trees.objects)
    (info / "alternates").write_bytes(os.fsencode("".join(f"{quoted(path)}\n" for path in lenders)))
