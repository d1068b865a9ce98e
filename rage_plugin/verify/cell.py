"""Run one command on one tree and say what it showed, test by test.

Separate because everything that decides (`matrix.py`) only ever sees a `Cell`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rage_plugin.core.config import CheckCommand, VerifyConfig
from rage_plugin.core.judgement import Cell, CheckRecord, Outcome, Verdict
from rage_plugin.core.ports import Progress
from rage_plugin.core.testids import MISSING, path_of
from rage_plugin.verify.cache import VerdictCache
from rage_plugin.verify.command import Completed
from rage_plugin.verify.environment import Environment, Interpreter
from rage_plugin.verify.isolation import CouldNotRun, Isolation, ViewSpec
from rage_plugin.verify.listing import TreeListing
from rage_plugin.verify.other_run import ParseReport, run_other
from rage_plugin.verify.pytest_command import (
    BaseConfig,
    PytestCommand,
    base_config,
    paths_named,
    recognise,
)
from rage_plugin.verify.pytest_run import Launch, config_hash, run_pytest
from rage_plugin.verify.shown import Shown
from rage_plugin.verify.tree import Trees

__all__ = ["Cells", "ParseReport"]


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything that one run needs to be told."""

    command: CheckCommand
    parsed: PytestCommand | None
    interpreter: Interpreter | None
    config: BaseConfig | None
    named: dict[str, str]
    """Arguments that name paths of the base, with these paths."""
    view: ViewSpec
    targets: tuple[str, ...]


CELLS = {
    "target": "gate on the candidate",
    "base": "before the item",
    "red": "new tests on the old code",
    "regression": "old tests on the candidate",
    "green": "candidate",
}
"""What a person is told while a cell runs."""


def _told(cell: Cell) -> str:
    """What a cell showed, for a progress line."""
    record = cell.record
    whole = cell.verdict in (Verdict.PASS, Verdict.FAIL) and cell.per_test
    counts = f"{record.passed} passed, {record.failed} failed"
    return f"{counts if whole else cell.verdict.replace('_', ' ')} ({record.seconds:.1f} s)"


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
        self._trees = trees
        self._artifacts = state / "artifacts" / "checks"
        self._config = config
        self._isolation = isolation
        self._parse_report = parse_report
        self._progress = progress
        self._environment = Environment(trees.root, config.env_allow)
        self._cache = VerdictCache(state / "verdicts.db")

    def environment_hash(self, command: CheckCommand) -> str:
        """What the verdict depends on besides tree and command; about 15 ms, by stat.

        The interpreter, `.pth` and sitecustomize files, the runner, entry points, the argv and the
        values of the allowed variables.
        """
        parsed = recognise(command.command)
        interpreter = self._environment.interpreter(parsed, command.cwd) if parsed else None
        return self._environment.hash(interpreter, command.command)

    def unable(self, command: CheckCommand) -> str:
        """Why a command cannot run here at all, before anything is paid; empty when it can."""
        parsed = recognise(command.command)
        if parsed is None or self._environment.interpreter(parsed, command.cwd) is not None:
            return ""
        return f"No interpreter for `{' '.join(command.command)}` can import pytest"

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
        targets, configuration and hidden files, environment) is taken from the cache; with
        `repeat` above 0, a stability re-run, the key is another one.

        Ids are relative to the workspace's root whatever `cwd` the command has. A target that the
        tree does not have is in `broken` with `MISSING`; the others still run. A conftest that
        cannot be imported is in `broken` too and leaves `COULD_NOT_RUN`: with `broken` the tree is
        the cause, without it the environment. Raises nothing for what a check does; `NoHash` and
        programming errors propagate.
        """
        parsed = recognise(command.command)
        interpreter = self._environment.interpreter(parsed, command.cwd) if parsed else None
        base = TreeListing(self._trees, config_tree)
        config, named = None, {}
        if parsed and interpreter:
            config = base_config(parsed, command.cwd, base, interpreter.pytest)
            named = paths_named(parsed, command.cwd, base)
        record = CheckRecord(
            cell=name,
            command=command.name,
            tree=tree,
            command_hash=self._command_hash(command, targets, hidden, config),
            environment_hash=self._environment.hash(interpreter, command.command),
            verdict=Verdict.COULD_NOT_RUN,
            passed=0,
            failed=0,
            skipped=0,
            seconds=0.0,
            cached=False,
            isolation=self._isolation.name,
        )
        key = ":".join([tree, record.command_hash, record.environment_hash, str(repeat)])
        known = self._cache.get(key)
        if known is not None:
            return replace(known, record=replace(known.record, cell=name))
        what = f"{CELLS.get(name, name)}: {command.name}"
        self._progress(f"{what} …")
        view = ViewSpec(
            tree=tree,
            current=current,
            hidden=tuple(hidden),
            files={config.path: config.content} if config else {},
        )
        plan = _Plan(command, parsed, interpreter, config, named, view, tuple(targets))
        with tempfile.TemporaryDirectory(prefix="rage-", ignore_cleanup_errors=True) as private:
            shown = self._shown(plan, Path(private))
        cell = self._cell(record, shown, repeat)
        self._cache.put(key, cell)
        self._progress(f"{what} {_told(cell)}")
        return cell

    def _shown(self, plan: _Plan, private: Path) -> Shown:
        """Run the plan once; `private` is its TMPDIR too, which every view reaches."""
        env = {**self._environment.variables(plan.interpreter), "TMPDIR": str(private)}

        def launch(argv: Sequence[str], fds: Sequence[int] = ()) -> Completed:
            return self._isolation.run(
                plan.view,
                argv,
                cwd=plan.command.cwd,
                env=env,
                timeout_s=plan.command.timeout_s,
                output_limit=self._config.output_limit,
                prepare=self._config.prepare,
                pass_fds=fds,
            )

        try:
            if plan.parsed is None:
                env["PYTHONPYCACHEPREFIX"] = str(private / "pyc")
                return run_other(
                    plan.command,
                    plan.targets,
                    folder=private,
                    parse_report=self._parse_report,
                    launch=launch,
                )
            return self._pytest(plan, plan.parsed, private, launch)
        except CouldNotRun as error:
            return Shown(Verdict.COULD_NOT_RUN, per_test=plan.parsed is not None, note=error.line())

    def _pytest(self, plan: _Plan, parsed: PytestCommand, private: Path, launch: Launch) -> Shown:
        if plan.interpreter is None or plan.config is None:
            note = f"No interpreter for `{' '.join(plan.command.command)}` can import pytest"
            return Shown(Verdict.COULD_NOT_RUN, per_test=True, note=note)
        tree = TreeListing(self._trees, plan.view.tree)
        gone = {word: path for word, path in plan.named.items() if not tree.has(path)}
        present = [target for target in plan.targets if tree.has(path_of(target).rstrip("/"))]
        missing = [*gone.values(), *(target for target in plan.targets if target not in present)]
        if missing and not present and len(gone) == len(plan.named):
            return Shown(
                Verdict.NOTHING_COLLECTED,
                per_test=True,
                broken=dict.fromkeys(missing, MISSING),
                note=f"{missing[0]} is {MISSING}",
            )
        return run_pytest(
            replace(parsed, arguments=tuple(w for w in parsed.arguments if w not in gone)),
            plan.interpreter,
            plan.config,
            targets=present if plan.targets else None,
            missing=missing,
            folder=private,
            up=os.path.relpath(".", plan.command.cwd),
            launch=launch,
        )

    def _command_hash(
        self,
        command: CheckCommand,
        targets: Sequence[str],
        hidden: Sequence[str],
        config: BaseConfig | None,
    ) -> str:
        parts = [
            list(command.command),
            command.cwd,
            command.report,
            command.timeout_s,
            list(self._config.prepare),
            self._isolation.name,
            list(targets),
            sorted(hidden),
            config_hash(config) if config else "",
        ]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _cell(self, record: CheckRecord, shown: Shown, repeat: int) -> Cell:
        counts = Counter(shown.outcomes.values())
        name = f"{record.tree[:12]}-{record.command_hash[:12]}-{repeat}.txt"
        artifact = self._artifacts / name
        artifact.parent.mkdir(parents=True, exist_ok=True)
        artifact.write_text(shown.completed.output, encoding="utf-8", errors="backslashreplace")
        return Cell(
            record=replace(
                record,
                verdict=shown.verdict,
                passed=counts[Outcome.PASS],
                failed=counts[Outcome.FAIL] + counts[Outcome.ERROR],
                skipped=counts[Outcome.SKIP],
                seconds=shown.completed.seconds,
                artifact=str(artifact),
            ),
            per_test=shown.per_test,
            outcomes=shown.outcomes,
            broken=shown.broken,
            duplicates=shown.duplicates,
            messages=shown.messages,
            exit_code=shown.completed.exit_code,
            note=shown.note,
        )
