"""Run pytest on a view with the probe inside, and say what the run is worth.

Separate from `cell.py` because only here a runner is known from the inside: how it is told to use
the base's configuration, and by which signs a run is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from rage_plugin.core.judgement import Outcome, Verdict
from rage_plugin.core.testids import MISSING, SESSION
from rage_plugin.verify.command import Completed
from rage_plugin.verify.environment import Interpreter
from rage_plugin.verify.observed import Channel, Observed
from rage_plugin.verify.pytest_command import BaseConfig, PytestCommand, has_rootdir
from rage_plugin.verify.shown import Shown

PROBE = Path(__file__).parent / "probe" / "rage_probe.py"
_CANARIES = 2
_TESTS_FAILED, _INTERRUPTED, _INTERNAL_ERROR, _USAGE_ERROR = 1, 2, 3, 4

Launch = Callable[[Sequence[str], Sequence[int]], Completed]
"""Runs an argv in the view, with these file descriptors inherited."""


def run_pytest(
    command: PytestCommand,
    interpreter: Interpreter,
    config: BaseConfig,
    *,
    targets: Sequence[str] | None,
    missing: Sequence[str],
    folder: Path,
    up: str,
    launch: Launch,
) -> Shown:
    """Run the command through `launch` and judge it.

    `targets` are relative to the root and exist as files or folders in the tree; None runs what
    the command says. `missing` are those that do not, and paths of the command
    itself that are gone. `folder` is a fresh private one outside the
    workspace; `up` leads from the command's current directory to the root (`../..`).
    """
    channel = Channel(folder, named=command.managed, cwd_on_path=command.module, targets=targets)
    argv = [*interpreter.argv, str(PROBE), str(channel.settings), "{root}"]
    argv += [word.replace("{junit}", str(folder / "report.xml")) for word in command.arguments]
    if not config.given:
        argv += ["-c", f"{{root}}/{config.path}"]
    if not has_rootdir(command):
        argv.append("--rootdir=" + "/".join(filter(None, ["{root}", config.folder])))
    argv += dict.fromkeys(f"{up}/{target.partition('::')[0]}" for target in targets or ())
    with channel:
        completed = launch(argv, channel.pass_fds)
    seen = channel.observed
    verdict, note = _judge(completed, seen, missing)
    # A file that could not be collected is there, and so may be every test in it.
    gone = [t for t in (*missing, *seen.unmatched) if t.partition("::")[0] not in seen.broken]
    broken = seen.broken | dict.fromkeys(gone, MISSING)
    if seen.conftest is not None:
        broken[seen.conftest[0]] = seen.conftest[1]
    outcomes = seen.outcomes()
    if seen.extra and targets is None:
        outcomes[SESSION] = Outcome.FAIL
    return Shown(
        verdict=verdict,
        completed=completed,
        per_test=True,
        outcomes=outcomes,
        broken=broken,
        duplicates=seen.duplicates(),
        messages=seen.messages(),
        note=note,
    )


def _judge(done: Completed, seen: Observed, missing: Sequence[str]) -> tuple[Verdict, str]:
    """The verdict of a run, and why where the verdict alone does not say it.

    Ordered by what can be trusted: first whether the report is the probe's own, then whether the
    run is whole, then whether failures are reported as failures at all, then what failed.
    """
    if seen.forged:
        return Verdict.TAMPERED, "Something in the run wrote into the report"
    if done.timed_out:
        return Verdict.TIMEOUT, f"Stopped after {done.seconds:.0f} s"
    if seen.conftest is not None:
        return Verdict.COULD_NOT_RUN, f"{seen.conftest[0]}: {seen.conftest[1]}"
    if seen.strangers:
        return (
            Verdict.COULD_NOT_RUN,
            f"{seen.strangers[0]} was imported from the work tree and not from the tree under test",
        )
    broken_off = _broken_off(done, seen)
    if broken_off is not None:
        return broken_off
    return _failures(seen, missing)


def _broken_off(done: Completed, seen: Observed) -> tuple[Verdict, str] | None:
    """Why the run does not count as whole and honest; None where it does."""
    if seen.status is None:
        return _no_finish(done, seen)
    if seen.status == _INTERNAL_ERROR:
        return Verdict.COULD_NOT_RUN, f"pytest stopped on a fault of its own: {seen.fault}"
    if seen.status == _USAGE_ERROR:
        return Verdict.COULD_NOT_RUN, _last_line(done.output)
    if seen.status == _INTERRUPTED:
        return Verdict.PARTIAL, "The run was interrupted"
    if len(seen.canaries) < _CANARIES:
        return Verdict.PARTIAL, f"The tests that must fail did not run: {seen.fault or 'cut short'}"
    if any("failed" not in outcomes for outcomes in seen.canaries):
        return Verdict.TAMPERED, "A test that must fail did not fail"
    if done.exit_code is None:
        return Verdict.PARTIAL, done.note or "The process was killed after the tests"
    if seen.status != _TESTS_FAILED or done.exit_code != _TESTS_FAILED:
        return Verdict.TAMPERED, f"The run ended with exit code {done.exit_code} instead of 1"
    unfinished = seen.unfinished()
    if unfinished or seen.truncated:
        return Verdict.PARTIAL, f"{len(unfinished)} collected tests did not report an end"
    return None


def _no_finish(done: Completed, seen: Observed) -> tuple[Verdict, str]:
    if done.exit_code == 0:
        return Verdict.TAMPERED, "The process ended with success before the tests did"
    if not seen.configured:
        return Verdict.COULD_NOT_RUN, done.note or _last_line(done.output)
    if seen.ended and not seen.collected:
        return Verdict.COULD_NOT_RUN, _last_line(done.output)
    how = done.note or f"The process ended with exit code {done.exit_code}"
    last = next(iter(seen.unfinished()), "")
    return Verdict.PARTIAL, f"{how} before the tests did" + (f", in or before {last}" * bool(last))


def _failures(seen: Observed, missing: Sequence[str]) -> tuple[Verdict, str]:
    outcomes = set(seen.outcomes().values())
    gone = [*missing, *seen.unmatched]
    if outcomes & {Outcome.FAIL, Outcome.ERROR} or seen.broken:
        return Verdict.FAIL, ""
    if seen.extra:
        return Verdict.FAIL, "A plugin failed the run as a whole, e.g. for a coverage threshold"
    if not outcomes:
        return Verdict.NOTHING_COLLECTED, _absent(seen, missing)
    if gone:
        return Verdict.FAIL, _absent(seen, missing)
    return (Verdict.PASS if Outcome.PASS in outcomes else Verdict.SKIPPED), ""


def _absent(seen: Observed, missing: Sequence[str]) -> str:
    """Which target is not there; one whose file is there names what the file lacks."""
    if missing:
        return f"{missing[0]} is {MISSING}"
    path, _, test = next(iter(seen.unmatched), "").partition("::")
    return f"{path} has no {test or 'tests'}" if path else ""


def _last_line(output: str) -> str:
    """The last line of an output that says something, for a person."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("ERROR", "E ")) or ": error: " in line]
    errors = [line for line in marked if "usage:" not in line]
    return (errors or lines or ["It ended without a word"])[-1][:300]


def config_hash(config: BaseConfig) -> str:
    """What of the base's configuration a verdict depends on."""
    return hashlib.sha256(config.path.encode("utf-8", "surrogatepass") + config.content).hexdigest()
