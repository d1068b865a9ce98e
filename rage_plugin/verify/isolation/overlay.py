"""The first rung: an overlay at the workspace's own path, in namespaces of the check's own.

Separate from `namespace.py` because this half lives in RAGE's process: it decides what to cover,
starts the other half as a program and reads what became of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from rage_plugin import holder
from rage_plugin.verify import command
from rage_plugin.verify.command import Completed
from rage_plugin.verify.tree import Trees

from . import stage
from .view import CouldNotRun, ViewSpec, prepare_failed

_PROGRAM = Path(__file__).with_name("namespace.py")


class Overlay:
    """Checks see the workspace at its own path; whatever they write there never existed."""

    name = "overlay"

    def __init__(self, trees: Trees, state: Path) -> None:
        self._trees = trees
        self._state = state

    def available(self) -> bool:
        """Whether namespaces and overlays work for this workspace, found by trying."""
        return self._works

    @cached_property
    def _works(self) -> bool:
        if sys.platform != "linux":
            return False
        empty = self._trees.empty_tree
        try:
            done = self.run(
                ViewSpec(tree=empty, current=empty),
                [sys.executable, "-I", "-S", "-c", ""],
                cwd=".",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                timeout_s=30.0,
            )
        except CouldNotRun:
            return False
        return done.exit_code == 0

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
        """See `Isolation.run`. Writes into the workspace, git's folders and HOME are discarded."""
        root = str(self._trees.root)
        env = {k: v.replace("{root}", root) for k, v in env.items()}
        with stage.folder(self._state / "views", "overlay") as folder:
            staged, spool = folder / "stage", folder / "spool"
            staged.mkdir()
            spool.mkdir()
            delta = stage.delta(self._trees, spec, spec.current, staged)
            optional = _home(env, self._trees) if spec.discard_home else []
            config = {
                "parent": os.getpid(),
                "root": root,
                "spool": str(spool),
                "stage": str(staged),
                "overlays": [*optional, *self._covered()],
                "optional": optional,
                "keep": [p for p in (_real(env.get("TMPDIR", "")),) if p],
                "removed": delta.removed,
                "placed": delta.placed,
                "cwd": os.path.normpath(f"{root}/{cwd}"),
                "prepare": [part.replace("{root}", root) for part in prepare],
                "argv": [part.replace("{root}", root) for part in argv],
            }
            return _launch(config, env, timeout_s, output_limit, pass_fds)

    def _covered(self) -> list[str]:
        """The workspace, and git's folders and RAGE's state where they lie elsewhere."""
        root = self._trees.root
        covered = [root]
        for path in (self._trees.common_dir, self._trees.git_dir, self._state.resolve()):
            if not any(path.is_relative_to(other) for other in covered):
                covered.append(path)
        return [str(path) for path in covered]


def _launch(
    config: Mapping[str, object],
    env: Mapping[str, str],
    timeout_s: float,
    output_limit: int,
    pass_fds: Sequence[int],
) -> Completed:
    """Start `namespace.py` and translate what it reports."""
    mark = holder.mark()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with tempfile.TemporaryFile() as file:
        text = json.dumps({**config, "env": {**env, command.MARK: mark}})
        file.write(text.encode())
        file.seek(0)
        try:
            done = command.run(
                [sys.executable, "-I", "-S", str(_PROGRAM), str(file.fileno()), str(writer)],
                cwd=Path("/"),
                # The supervisor gets what started RAGE, the check what its caller allows.
                env=os.environ,
                mark=mark,
                timeout_s=timeout_s,
                output_limit=output_limit,
                pass_fds=(*pass_fds, file.fileno(), writer),
            )
            said = b""
            with contextlib.suppress(BlockingIOError):
                said = os.read(reader, 65_536)
        finally:
            os.close(reader)
            os.close(writer)
    facts: dict[str, object] = {}
    for line in said.splitlines():
        facts |= json.loads(line)
    return _translate(facts, done)


def _translate(facts: Mapping[str, object], done: Completed) -> Completed:
    if done.timed_out:
        return done
    if done.exit_code is None and not done.killed:
        raise CouldNotRun(f"The check's supervisor did not start: {done.note}")
    if "broken" in facts:
        raise CouldNotRun(f"The overlay could not be made: {facts['broken']}")
    if "failed" in facts:
        return replace(done, exit_code=None, note=str(facts["failed"]))
    if "prepare" in facts:
        raise prepare_failed(_ended(facts["prepare"], done))
    if "exit" in facts or "signal" in facts:
        return _ended(facts, done)
    # Nobody reported, so somebody killed the supervisor: no exit code, whatever its own was.
    return replace(done, exit_code=None, killed=True, note="the check's supervisor was killed")


def _ended(how: object, done: Completed) -> Completed:
    """`done` with the exit code or the signal that the supervisor saw."""
    facts = how if isinstance(how, Mapping) else {}
    if (number := facts.get("signal")) is not None:
        return replace(
            done, exit_code=None, killed=True, note=f"ended by {command.signal_name(number)}"
        )
    return replace(done, exit_code=facts.get("exit"))


def _home(env: Mapping[str, str], trees: Trees) -> list[str]:
    """HOME where its writes are to be discarded: not inside the workspace, and not all there is."""
    home = _real(env.get("HOME", ""))
    if not home or home == "/" or Path(home).is_relative_to(trees.root):
        return []
    return [home]


def _real(path: str) -> str:
    return str(Path(path).resolve()) if path and Path(path).is_dir() else ""
