"""Run one command on one tree and say what it showed, test by test.

Separate because everything that decides (`matrix.py`) only ever sees a `Cell`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rage_plugin.core.config import CheckCommand, VerifyConfig
from rage_plugin.core.model import Cell, Outcome
from rage_plugin.core.ports import Progress
from rage_plugin.verify.isolation import Isolation
from rage_plugin.verify.tree import Trees

ParseReport = Callable[[str, Path], Mapping[str, Outcome] | None]
"""Outcomes by test id from the report of a kind (`junit`) at a path; None when it is unreadable."""

MISSING = "not in this tree"
"""The text in `Cell.broken` for a target (`path` or `path::id`) that this tree does not have."""


class Cells:
    """Runs cells; the one place that turns a process's end into a verdict."""

    def __init__(
        self,
        trees: Trees,
        state: Path,
        config: VerifyConfig,
        isolation: Isolation,
        parse_report: ParseReport,
        progress: Progress = lambda _line: None,
    ) -> None:
        """`state` is the folder beside `rage.db`: verdicts and artifacts are kept below it."""
        raise NotImplementedError

    def environment_hash(self, command: CheckCommand) -> str:
        """What the verdict depends on besides tree and command; about 15 ms, by stat.

        The interpreter, `.pth` and sitecustomize files, the runner, entry points, the argv and the
        values of the allowed variables.
        """
        raise NotImplementedError

    def run(
        self,
        name: str,
        command: CheckCommand,
        tree: str,
        *,
        current: str,
        hidden: Sequence[str],
        config_tree: str,
        targets: Sequence[str] = (),
        repeat: int = 0,
    ) -> Cell:
        """Run `command` on `tree` and read what every test did.

        `name` goes into `CheckRecord.cell`. `current` is the tree that the work tree holds now,
        `hidden` the untracked files of before the run. Runner configuration comes from
        `config_tree` (the base), absence included. A verdict for the same (tree, command with
        targets, configuration and hidden files, environment) is taken from the cache unless
        `repeat` is above 0: a stability re-run, with a key of its own.

        Ids are relative to the workspace's root whatever `cwd` the command has. A target that the
        tree does not have is in `broken` with `MISSING`; the others still run. A conftest that
        cannot be imported is in `broken` too and leaves `COULD_NOT_RUN`: with `broken` the tree is
        the cause, without it the environment. Raises nothing for what a check does; `NoHash` and
        programming errors propagate.
        """
        raise NotImplementedError
