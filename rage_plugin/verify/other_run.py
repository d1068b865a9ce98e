"""Run a command that is not pytest, and judge it by its JUnit report or its exit code.

Separate from `pytest_run.py` because nothing is known of such a runner but what it leaves behind.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rage_plugin.core.config import CheckCommand
from rage_plugin.core.judgement import Outcome, Verdict
from rage_plugin.verify.command import Completed
from rage_plugin.verify.shown import Shown

ParseReport = Callable[[str, Path], Mapping[str, Outcome] | None]
"""Outcomes by test id from the report of a kind (`junit`) at a path; None when it is unreadable."""

_CANNOT_EXECUTE = (126, 127)


def run_other(
    command: CheckCommand,
    targets: Sequence[str],
    *,
    folder: Path,
    parse_report: ParseReport,
    launch: Callable[[Sequence[str]], Completed],
) -> Shown:
    """Run the command through `launch`; `{junit}` becomes a path in `folder`, a private one."""
    report = folder / f"{secrets.token_hex(8)}.xml"
    argv: list[str] = []
    for word in command.command:
        if word == "{targets}":
            argv.extend(targets)
        else:
            argv.append(word.replace("{junit}", str(report)))
    done = launch(argv)
    verdict, note = _by_exit_code(done)
    if command.report != "junit":
        return Shown(verdict, done, note=note)
    if verdict not in (Verdict.PASS, Verdict.FAIL):
        return Shown(verdict, done, per_test=True, note=note)
    outcomes = parse_report("junit", report) if report.is_file() else None
    if outcomes is None:
        note = "The command left no readable JUnit report"
        return Shown(Verdict.PARTIAL, done, per_test=True, note=note)
    verdict, note = _by_report(verdict, outcomes)
    return Shown(verdict, done, per_test=True, outcomes=dict(outcomes), note=note)


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
