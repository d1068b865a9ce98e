"""Commands that are not pytest: a JUnit report, or an exit code and nothing else."""

from __future__ import annotations

import sys

import pytest

from rage_plugin.core.config import CheckCommand
from rage_plugin.core.judgement import Outcome, Verdict

from .conftest import Project

RUNNER = """
import sys
report, *cases = sys.argv[1:]
body = "".join(
    f'<testcase classname="suite" name="{name}">{"<failure/>" if bad else ""}</testcase>'
    for name, _, bad in (case.partition("!") if "!" not in case else (case[:-1], "", "1")
                         for case in cases if not case.startswith("exit="))
)
if report != "none":
    open(report, "w").write(f"<testsuites><testsuite>{body}</testsuite></testsuites>")
sys.exit(next((int(c[5:]) for c in cases if c.startswith("exit=")), 0))
"""


def junit(*words: str) -> CheckCommand:
    """A runner in the workspace that reports what it is told to."""
    return CheckCommand("junit", (sys.executable, "run.py", *words), report="junit", timeout_s=30)


@pytest.mark.parametrize(
    "words, verdict, outcomes",
    [
        (("{junit}", "a", "b"), Verdict.PASS, {"suite::a": "pass", "suite::b": "pass"}),
        (("{junit}", "a", "b!"), Verdict.FAIL, {"suite::a": "pass", "suite::b": "fail"}),
        (("{junit}", "a", "exit=1"), Verdict.FAIL, {"suite::a": "pass"}),
        (("{junit}",), Verdict.NOTHING_COLLECTED, {}),
        (("none", "a"), Verdict.PARTIAL, {}),
        (("none", "exit=1"), Verdict.PARTIAL, {}),
    ],
)
def test_report_and_exit_code_together(
    bare: Project, words: tuple[str, ...], verdict: Verdict, outcomes: dict[str, str]
) -> None:
    """F017: neither a report nor an exit code alone makes a pass."""
    cell = bare.check({"run.py": RUNNER}, command=junit(*words))
    assert cell.verdict is verdict
    assert cell.per_test
    assert cell.outcomes == {id: Outcome(value) for id, value in outcomes.items()}


def test_targets_take_the_place_of_their_element(bare: Project) -> None:
    cell = bare.check({"run.py": RUNNER}, command=junit("{junit}", "{targets}"), targets=["a", "b"])
    assert set(cell.outcomes) == {"suite::a", "suite::b"}


@pytest.mark.parametrize(
    "code, verdict",
    [
        ("pass", Verdict.PASS),
        ("raise SystemExit(3)", Verdict.FAIL),
        ("import os; os.kill(os.getpid(), 9)", Verdict.PARTIAL),
        ("while True: pass", Verdict.TIMEOUT),
        ("import os; os.execvp('sh', ['sh', '-c', 'no-such-program'])", Verdict.COULD_NOT_RUN),
    ],
)
def test_an_exit_code_only(bare: Project, code: str, verdict: Verdict) -> None:
    command = CheckCommand("plain", (sys.executable, "-c", code), timeout_s=1.5)
    cell = bare.check(command=command)
    assert cell.verdict is verdict
    assert not cell.per_test
    assert not cell.outcomes


def test_the_command_runs_in_its_own_folder(bare: Project) -> None:
    command = CheckCommand("x", (sys.executable, "-c", "open('there').close()"), cwd="sub dir")
    assert bare.check({"sub dir/there": ""}, command=command).verdict is Verdict.PASS
    missing = CheckCommand("x", (sys.executable, "-c", ""), cwd="gone")
    cell = bare.check(command=missing)
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert "gone" in cell.note
