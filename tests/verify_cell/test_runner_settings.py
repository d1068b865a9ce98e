"""Settings of the project that would cut a run short, and settings that must keep their meaning."""

from __future__ import annotations

import os
import py_compile
import sys

import pytest

from rage_plugin.core.config import CheckCommand, VerifyConfig
from rage_plugin.core.judgement import Outcome, Verdict
from rage_plugin.core.testids import SESSION

from .conftest import Project, link_packages, site_of

TWO = "def test_a(): assert 0\ndef test_b(): pass\n"


@pytest.mark.parametrize(
    "options", ["-x", "--maxfail=1", "--sw", "--lf", "--ff", "-x --color=yes -v", "--tb=no -qq"]
)
def test_nothing_cuts_a_run_short(project: Project, options: str) -> None:
    project.write({".pytest_cache/v/cache/lastfailed": '{"test_a.py::test_a": true}'})
    cell = project.check({"pytest.ini": f"[pytest]\naddopts = {options}\n", "test_a.py": TWO})
    assert cell.outcomes == {"test_a.py::test_a": Outcome.FAIL, "test_a.py::test_b": Outcome.PASS}
    assert cell.messages == {"test_a.py::test_a": "assert 0"}


def test_strict_settings_and_warnings_as_errors_are_no_trouble(project: Project) -> None:
    ini = "[pytest]\naddopts = --strict-markers --strict-config -W error -p no:cacheprovider\n"
    cell = project.check({"pytest.ini": ini, "test_a.py": "def test_a(): pass\n"})
    assert cell.verdict is Verdict.PASS


def test_distributed_settings_run_in_one_process(project: Project) -> None:
    link_packages(site_of(project.root / ".venv"), "pytest-xdist", "execnet")
    cell = project.check(
        {"pytest.ini": "[pytest]\naddopts = -n 2 --dist loadfile\n", "test_a.py": TWO}
    )
    assert cell.outcomes == {"test_a.py::test_a": Outcome.FAIL, "test_a.py::test_b": Outcome.PASS}


def test_a_plugin_that_fails_the_whole_run_is_heard(project: Project) -> None:
    """A threshold (of coverage, for instance) that is not met fails the run, not a test."""
    conftest = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    result = yield
    session.testsfailed += 1
    return result
"""
    cell = project.check({"conftest.py": conftest, "test_a.py": "def test_a(): pass\n"})
    assert cell.verdict is Verdict.FAIL
    assert cell.outcomes == {"test_a.py::test_a": Outcome.PASS, SESSION: Outcome.FAIL}
    targeted = project.check(targets=["test_a.py"])
    assert SESSION not in targeted.outcomes


def test_a_broken_conftest_is_named(project: Project) -> None:
    cell = project.check(
        {"conftest.py": "import nowhere_at_all\n", "test_a.py": "def test_a(): pass\n"}
    )
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert "nowhere_at_all" in cell.broken["conftest.py"]
    assert "conftest.py" in cell.note


@pytest.mark.parametrize(
    "argv, word",
    [
        (["pytest", "--no-such-option"], "--no-such-option"),
        (["pytest", "no_such_folder"], "no_such_folder"),
        (["pytest", "-p", "nowhere_at_all"], "nowhere_at_all"),
        (["no-such-program-at-all"], "no-such-program-at-all"),
    ],
)
def test_what_cannot_run_says_why(project: Project, argv: list[str], word: str) -> None:
    """F017: a check that could not run is neither red nor green."""
    cell = project.check({"test_a.py": "def test_a(): pass\n"}, command=argv)
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert word in cell.note
    assert not cell.broken


def test_a_broken_configuration_of_the_base_could_not_run(project: Project) -> None:
    cell = project.check({"pyproject.toml": "[tool.pytest\n", "test_a.py": TWO})
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert cell.note


def test_an_internal_error_could_not_run(project: Project) -> None:
    conftest = "def pytest_runtest_protocol(item): raise RuntimeError('in a plugin')\n"
    cell = project.check({"conftest.py": conftest, "test_a.py": TWO})
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert "in a plugin" in cell.note


def test_a_failing_prepare_could_not_run(project: Project) -> None:
    project.config = VerifyConfig(prepare=(sys.executable, "-c", "raise SystemExit('no compiler')"))
    cell = project.check({"test_a.py": TWO})
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert "no compiler" in cell.note


def test_flat_and_src_layouts_import_the_tree_under_test(project: Project) -> None:
    """A stale installed copy does not stand in for the tree with `python -m pytest`."""
    stale = site_of(project.root / ".venv") / "flat.py"
    stale.write_text("VALUE = 'stale'\n")
    test = "import flat\ndef test_a(): assert flat.VALUE == 'tree'\n"
    files: dict[str, str | None] = {"flat.py": "VALUE = 'tree'\n", "tests/test_a.py": test}
    module = CheckCommand("t", ("python3", "-m", "pytest"), timeout_s=60)
    assert project.check(files, command=module).verdict is Verdict.PASS
    assert project.check(command=["pytest"]).verdict is Verdict.FAIL


def test_relative_paths_in_the_base_configuration_still_hold(project: Project) -> None:
    files: dict[str, str | None] = {
        "setup.cfg": "[tool:pytest]\ntestpaths = checks\npythonpath = lib\n",
        "lib/thing.py": "X = 1\n",
        "checks/test_a.py": "import thing\ndef test_a(): assert thing.X\n",
        "other/test_b.py": "def test_b(): pass\n",
    }
    cell = project.check(files)
    assert cell.outcomes == {"checks/test_a.py::test_a": Outcome.PASS}


def test_sources_of_one_size_and_second_are_compiled_afresh(project: Project) -> None:
    """Stale bytecode never decides: the same size and time, another content."""
    test = "import mod, subprocess, sys\ndef test_a(): assert mod.X == 1\n"
    files: dict[str, str | None] = {"mod.py": "X = 1\n", "test_a.py": test}
    assert project.check(files).verdict is Verdict.PASS
    os.utime(project.root / "mod.py", (1_700_000_000, 1_700_000_000))
    py_compile.compile(str(project.root / "mod.py"), doraise=True)
    (project.root / "mod.py").write_text("X = 2\n")
    os.utime(project.root / "mod.py", (1_700_000_000, 1_700_000_000))
    assert project.check().verdict is Verdict.FAIL
