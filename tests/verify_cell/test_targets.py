"""What a targeted run does with targets that are there, partly there, or not there."""

from __future__ import annotations

import pytest

from rage_plugin.core.config import CheckCommand
from rage_plugin.core.judgement import Outcome, Verdict
from rage_plugin.core.testids import MISSING

from .conftest import Project

FILE = """
import pytest
@pytest.mark.parametrize("x", [1, 2])
def test_p(x): assert x == 1
def test_pp(): pass
class TestC:
    def test_m(self): pass
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.write({"tests/test_a.py": FILE, "tests/deep/test_b.py": "def test_b(): pass\n"})
    return project


@pytest.mark.parametrize(
    "targets, ids",
    [
        (["tests/test_a.py::test_p[1]"], ["test_p[1]"]),
        (["tests/test_a.py::test_p"], ["test_p[1]", "test_p[2]"]),
        (["tests/test_a.py::TestC"], ["TestC::test_m"]),
        (["tests/test_a.py::test_pp", "tests/test_a.py::test_p[1]"], ["test_pp", "test_p[1]"]),
        (["tests/deep"], ["test_b"]),
        (
            ["tests", "tests/deep/"],
            ["test_p[1]", "test_p[2]", "test_pp", "TestC::test_m", "test_b"],
        ),
    ],
)
def test_exactly_what_is_named_runs(suite: Project, targets: list[str], ids: list[str]) -> None:
    cell = suite.check(targets=targets)
    assert sorted(id.partition("::")[2] for id in cell.outcomes) == sorted(ids)
    assert not cell.duplicates


def test_a_missing_id_does_not_keep_the_others_from_running(suite: Project) -> None:
    gone = ["tests/test_a.py::test_gone", "tests/test_new.py::test_x", "tests/new.py"]
    cell = suite.check(targets=["tests/test_a.py::test_pp", *gone])
    assert cell.outcomes == {"tests/test_a.py::test_pp": Outcome.PASS}
    assert cell.broken == dict.fromkeys(gone, MISSING)
    assert cell.verdict is Verdict.FAIL


def test_nothing_but_missing_targets_is_not_a_usage_error(suite: Project) -> None:
    cell = suite.check(targets=["tests/test_new.py"])
    assert cell.verdict is Verdict.NOTHING_COLLECTED
    assert cell.broken == {"tests/test_new.py": MISSING}
    assert cell.note == "tests/test_new.py is not in this tree"
    cell = suite.check(targets=["tests/test_a.py::test_gone"])
    assert cell.verdict is Verdict.NOTHING_COLLECTED
    assert cell.broken == {"tests/test_a.py::test_gone": MISSING}
    assert cell.note == "tests/test_a.py has no test_gone"
    cell = suite.check({"tests/test_a.py": ""}, targets=["tests/test_a.py"])
    assert (cell.verdict, cell.note) == (Verdict.NOTHING_COLLECTED, "tests/test_a.py has no tests")


def test_targets_narrow_a_command_that_names_folders(suite: Project) -> None:
    command = CheckCommand("t", ("pytest", "tests", "{targets}"), timeout_s=60)
    cell = suite.check(command=command, targets=["tests/test_a.py::test_pp"])
    assert cell.outcomes == {"tests/test_a.py::test_pp": Outcome.PASS}
    assert not cell.duplicates
    whole = suite.check(command=command)
    assert len(whole.outcomes) == 5


def test_a_target_in_a_file_that_cannot_be_imported_is_broken(suite: Project) -> None:
    cell = suite.check(
        {"tests/test_new.py": "from pkg import new\ndef test_new(): pass\n"},
        targets=["tests/test_new.py::test_new", "tests/test_a.py::test_pp"],
    )
    assert "pkg" in cell.broken["tests/test_new.py"]
    assert cell.outcomes == {"tests/test_a.py::test_pp": Outcome.PASS}
    assert cell.verdict is Verdict.FAIL


def test_a_path_of_the_command_that_the_candidate_removed_is_missing(suite: Project) -> None:
    base = suite.tree({"more/test_c.py": "def test_c(): pass\n"})
    command = CheckCommand("t", ("pytest", "tests", "more"), timeout_s=60)
    cell = suite.check({"more/test_c.py": None}, command=command, base=base)
    assert cell.broken == {"more": MISSING}
    assert len(cell.outcomes) == 5
    assert cell.verdict is Verdict.FAIL
    gone = suite.check(command=CheckCommand("t", ("pytest", "more"), timeout_s=60), base=base)
    assert gone.verdict is Verdict.NOTHING_COLLECTED


def test_odd_file_names_are_ids_like_any_other(project: Project) -> None:
    """F146: spaces, umlauts and newlines in file names."""
    names = ["tests/tést é.py", "tests/test_a b.py", "tests/test_ö\nx.py"]
    project.write(dict.fromkeys(names, "def test_x(): pass\n"))
    cell = project.check({"pytest.ini": "[pytest]\npython_files = t*.py\n"})
    assert set(cell.outcomes) == {f"{name}::test_x" for name in names}
    assert cell.verdict is Verdict.PASS
    for name in names:
        assert set(project.check(targets=[f"{name}::test_x"]).outcomes) == {f"{name}::test_x"}
