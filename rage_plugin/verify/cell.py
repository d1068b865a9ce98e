"""Run one command on one tree and say what it showed, test by test.

Separate because everything that decides (`matrix.py`) only ever sees a `Cell`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rage_plugin.core.config import CheckCommand, VerifyConfig
from rage_plugin.core.model import Cell, CheckRecord, Outcome, Verdict
from rage_plugin.core.ports import Progress
from rage_plugin.verify.cache import VerdictCache
from rage_plugin.verify.command import Completed
from rage_plugin.verify.environment import Environment, Interpreter
from rage_plugin.verify.isolation import CouldNotRun, Isolation, ViewSpec
from rage_plugin.verify.pytest_command import BaseConfig, PytestCommand, base_config, recognise
from rage_plugin.verify.pytest_run import MISSING, SESSION, Shown, config_hash, run_pytest
from rage_plugin.verify.tree import Trees

__all__ = ["MISSING", "SESSION", "Cells", "ParseReport"]

ParseReport = Callable[[str, Path], Mapping[str, Outcome] | None]
"""Outcomes by test id from the report of a kind (`junit`) at a path; None when it is unreadable."""

_CANNOT_EXECUTE = (126, 127)
_NOTHING = Completed(None, False, False, "", False, 0.0)


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
        self._folders: dict[str, frozenset[str]] = {}

    def environment_hash(self, command: CheckCommand) -> str:
        """What the verdict depends on besides tree and command; about 15 ms, by stat.

        The interpreter, `.pth` and sitecustomize files, the runner, entry points, the argv and the
        values of the allowed variables.
        """
        parsed = recognise(command.command)
        interpreter = self._environment.interpreter(parsed, command.cwd) if parsed else None
        return self._environment.hash(interpreter, command.command)

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
        config = self._base_config(parsed, interpreter, command, config_tree)
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
        self._progress(f"{name}: running {command.name}")
        view = ViewSpec(
            tree=tree,
            current=current,
            hidden=tuple(hidden),
            files={config.path: config.content} if config else {},
        )
        with tempfile.TemporaryDirectory(prefix="rage-", ignore_cleanup_errors=True) as private:
            run = _Run(self, command, view, Path(private), tuple(targets))
            shown = run.pytest(parsed, interpreter, config) if parsed else run.other()
        cell = self._cell(record, shown, repeat)
        self._cache.put(key, cell)
        self._progress(f"{name}: {command.name} {cell.verdict.value.replace('_', ' ')}")
        return cell

    def _base_config(
        self,
        parsed: PytestCommand | None,
        interpreter: Interpreter | None,
        command: CheckCommand,
        tree: str,
    ) -> BaseConfig | None:
        if parsed is None or interpreter is None:
            return None
        return base_config(
            parsed,
            command.cwd,
            lambda path: self._trees.read(tree, path),
            lambda path: path in self._folders_of(tree),
            interpreter.pytest,
        )

    def _folders_of(self, tree: str) -> frozenset[str]:
        """Every folder of a tree, the root as an empty string."""
        if tree not in self._folders:
            self._folders[tree] = frozenset(
                str(parent) if str(parent) != "." else ""
                for path in self._trees.paths(tree)
                for parent in Path(path).parents
            )
        return self._folders[tree]

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


class _Run:
    """One run of one command in one view, with a private folder outside the workspace."""

    def __init__(
        self,
        cells: Cells,
        command: CheckCommand,
        view: ViewSpec,
        private: Path,
        targets: tuple[str, ...],
    ) -> None:
        self._cells = cells
        self._command = command
        self._view = view
        self._private = private
        self._targets = targets

    def pytest(
        self, parsed: PytestCommand, interpreter: Interpreter | None, config: BaseConfig | None
    ) -> Shown:
        """Run a recognised pytest command with the probe inside."""
        if interpreter is None or config is None:
            note = f"No interpreter for `{' '.join(self._command.command)}` can import pytest"
            return Shown(Verdict.COULD_NOT_RUN, _NOTHING, per_test=True, note=note)
        present = [target for target in self._targets if self._exists(target)]
        missing = [target for target in self._targets if target not in present]
        if missing and not present:
            return Shown(
                Verdict.NOTHING_COLLECTED,
                _NOTHING,
                per_test=True,
                broken=dict.fromkeys(missing, MISSING),
                note=f"{missing[0]} is {MISSING}",
            )
        env = self._cells._environment.variables(interpreter)
        try:
            return run_pytest(
                parsed,
                interpreter,
                config,
                targets=present if self._targets else None,
                missing=missing,
                folder=self._private,
                up=os.path.relpath(".", self._command.cwd),
                launch=lambda argv, fds: self._launch(argv, env, fds),
            )
        except CouldNotRun as error:
            return Shown(Verdict.COULD_NOT_RUN, _NOTHING, per_test=True, note=error.line())

    def other(self) -> Shown:
        """Run any other command: a JUnit report where it writes one, else its exit code."""
        report = self._private / "report.xml"
        argv: list[str] = []
        for word in self._command.command:
            if word == "{targets}":
                argv.extend(self._targets)
            else:
                argv.append(word.replace("{junit}", str(report)))
        try:
            done = self._launch(argv, self._cells._environment.variables(), ())
        except CouldNotRun as error:
            return Shown(Verdict.COULD_NOT_RUN, _NOTHING, note=error.line())
        verdict, note = _by_exit_code(done)
        if self._command.report != "junit" or verdict not in (Verdict.PASS, Verdict.FAIL):
            return Shown(verdict, done, per_test=self._command.report == "junit", note=note)
        outcomes = self._cells._parse_report("junit", report) if report.is_file() else None
        if outcomes is None:
            note = "The command left no readable JUnit report"
            return Shown(Verdict.PARTIAL, done, per_test=True, note=note)
        verdict, note = _by_report(verdict, outcomes)
        return Shown(verdict, done, per_test=True, outcomes=dict(outcomes), note=note)

    def _exists(self, target: str) -> bool:
        path = target.partition("::")[0].rstrip("/")
        tree = self._view.tree
        return path in self._cells._folders_of(tree) or (
            self._cells._trees.read(tree, path) is not None
        )

    def _launch(self, argv: Sequence[str], env: Mapping[str, str], fds: Sequence[int]) -> Completed:
        scratch = self._private / "t"
        scratch.mkdir()
        return self._cells._isolation.run(
            self._view,
            argv,
            cwd=self._command.cwd,
            env={**env, "TMPDIR": str(scratch), "PYTHONPYCACHEPREFIX": str(self._private / "pyc")}
            if not fds
            else {**env, "TMPDIR": str(scratch)},
            timeout_s=self._command.timeout_s,
            output_limit=self._cells._config.output_limit,
            prepare=self._cells._config.prepare,
            pass_fds=fds,
        )


def _by_exit_code(done: Completed) -> tuple[Verdict, str]:
    if done.timed_out:
        return Verdict.TIMEOUT, f"Stopped after {done.seconds:.0f} s"
    if done.killed:
        return Verdict.PARTIAL, done.note
    if done.exit_code is None or done.exit_code in _CANNOT_EXECUTE:
        return Verdict.COULD_NOT_RUN, done.note or "The command could not be started"
    return (Verdict.PASS, "") if done.exit_code == 0 else (Verdict.FAIL, "")


def _by_report(by_exit: Verdict, outcomes: Mapping[str, Outcome]) -> tuple[Verdict, str]:
    """Report and exit code together: neither alone can make a pass."""
    found = set(outcomes.values())
    if found & {Outcome.FAIL, Outcome.ERROR}:
        return Verdict.FAIL, ""
    if by_exit is Verdict.FAIL:
        return Verdict.FAIL, "The command failed although no test of its report did"
    if not found:
        return Verdict.NOTHING_COLLECTED, ""
    return (Verdict.PASS if Outcome.PASS in found else Verdict.SKIPPED), ""
