"""What every kind of test is reported as, by exact id."""

from __future__ import annotations

from pathlib import Path

from rage_plugin.core.config import CheckCommand
from rage_plugin.core.judgement import Outcome, Verdict

from .conftest import Project

KINDS = """
import unittest
import pytest

@pytest.mark.parametrize("x", ["a\\nb", "ü", "[::]", "a/b::c", " ", ""])
def test_odd(x): pass

def test_fails(): assert 1 == 2, "one is not two"

@pytest.mark.skip(reason="not today")
def test_skipped(): pass

@pytest.mark.xfail(reason="known")
def test_xfailed(): assert False

@pytest.mark.xfail(strict=True)
def test_strict(): pass

@pytest.mark.xfail
def test_xpassed(): pass

@pytest.fixture
def broken(): raise ValueError("no service")

def test_setup(broken): pass

@pytest.fixture
def late():
    yield
    raise ValueError("cannot clean up")

def test_teardown(late): pass

class TestClass:
    def test_method(self): pass

class TestCase(unittest.TestCase):
    def test_parts(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)

    @unittest.skip("no")
    def test_not_now(self): pass

    @unittest.expectedFailure
    def test_expected(self): self.fail()

async def test_async(): pass
"""


def test_every_kind_has_its_outcome(project: Project) -> None:
    """F017: skipped, xfailed and broken tests are told apart from passes."""
    cell = project.check({"tests/test_kinds.py": KINDS})
    p, f, e, s = Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.SKIP
    assert {id.partition("::")[2]: outcome for id, outcome in cell.outcomes.items()} == {
        r"test_odd[a\nb]": p,
        r"test_odd[\xfc]": p,
        "test_odd[[::]]": p,
        "test_odd[a/b::c]": p,
        "test_odd[ ]": p,
        "test_odd[]": p,
        "test_fails": f,
        "test_skipped": s,
        "test_xfailed": s,
        "test_strict": f,
        "test_xpassed": s,
        "test_setup": e,
        "test_teardown": e,
        "TestClass::test_method": p,
        "TestCase::test_parts": f,
        "TestCase::test_not_now": s,
        "TestCase::test_expected": s,
        "test_async": f,
    }
    assert cell.verdict is Verdict.FAIL
    assert cell.messages["tests/test_kinds.py::test_fails"].endswith("one is not two")
    assert cell.messages["tests/test_kinds.py::test_setup"] == "ValueError: no service"
    assert cell.messages["tests/test_kinds.py::test_skipped"] == "Skipped: not today"
    assert (cell.record.passed, cell.record.failed, cell.record.skipped) == (7, 6, 5)


def test_a_green_run_is_a_pass(project: Project) -> None:
    cell = project.check({"tests/test_a.py": "def test_a(): pass\n"})
    assert cell.verdict is Verdict.PASS
    assert cell.outcomes == {"tests/test_a.py::test_a": Outcome.PASS}
    assert cell.per_test
    assert not cell.broken
    output = Path(cell.record.artifact).read_text()
    assert "1 passed" in output
    assert "must fail" not in output


def test_a_file_that_cannot_be_collected_does_not_hide_the_others(project: Project) -> None:
    cell = project.check(
        {
            "tests/test_a.py": "def test_a(): pass\n",
            "tests/test_b.py": "import nowhere_at_all\n",
            "tests/test_c.py": "def test_c(: pass\n",
        }
    )
    assert cell.verdict is Verdict.FAIL
    assert cell.outcomes == {"tests/test_a.py::test_a": Outcome.PASS}
    assert set(cell.broken) == {"tests/test_b.py", "tests/test_c.py"}
    assert "nowhere_at_all" in cell.broken["tests/test_b.py"]


def test_only_skipped_and_nothing_collected_are_not_passes(project: Project) -> None:
    """F017: skipped only, and nothing collected, each have a verdict of their own."""
    skips = "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"
    assert project.check({"tests/test_a.py": skips}).verdict is Verdict.SKIPPED
    whole = "import pytest\npytest.skip('later', allow_module_level=True)\n"
    cell = project.check({"tests/test_a.py": whole})
    assert cell.verdict is Verdict.SKIPPED
    assert cell.outcomes == {"tests/test_a.py": Outcome.SKIP}
    assert project.check({"tests/test_a.py": "x = 1\n"}).verdict is Verdict.NOTHING_COLLECTED


def test_an_id_that_several_tests_carry_is_named(project: Project) -> None:
    twice = """
import pytest
class Twice(pytest.File):
    def collect(self):
        for _ in range(2):
            yield Item.from_parent(self, name="same")
class Item(pytest.Item):
    def runtest(self): pass
def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".twice":
        return Twice.from_parent(parent, path=file_path)
"""
    cell = project.check({"conftest.py": twice, "a.twice": ""})
    assert cell.duplicates == ("a.twice::same",)


def test_doctests_and_modules_named_on_the_command_line(project: Project) -> None:
    cell = project.check(
        {"pkg.py": 'def f():\n    """\n    >>> f()\n    3\n    """\n    return 2\n'},
        command=["pytest", "--doctest-modules", "pkg.py"],
    )
    assert cell.outcomes == {"pkg.py::pkg.f": Outcome.FAIL}


def test_ids_are_relative_to_the_root_whatever_the_folder(project: Project) -> None:
    files: dict[str, str | None] = {
        "packages/a/pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['checks']\n",
        "packages/a/checks/test_a.py": "def test_a(): pass\n",
        "packages/b/test_b.py": "def test_b(): assert 0\n",
    }
    command = CheckCommand("a", ("pytest", "{targets}"), cwd="packages/a", timeout_s=60)
    cell = project.check(files, command=command)
    assert cell.outcomes == {"packages/a/checks/test_a.py::test_a": Outcome.PASS}
    again = project.check(command=command, targets=["packages/a/checks/test_a.py::test_a"])
    assert again.outcomes == cell.outcomes
    assert again.verdict is Verdict.PASS


def test_session_fixtures_are_torn_down_once_and_before_the_verdict(project: Project) -> None:
    conftest = """
import pytest
@pytest.fixture(scope="session", autouse=True)
def service(tmp_path_factory):
    started = tmp_path_factory.getbasetemp() / "started"
    assert not started.exists()
    started.touch()
    yield
    raise RuntimeError("the service left a mess")
"""
    cell = project.check(
        {"conftest.py": conftest, "test_a.py": "def test_a(): pass\ndef test_b(): pass\n"}
    )
    assert cell.outcomes == {"test_a.py::test_a": Outcome.PASS, "test_a.py::test_b": Outcome.ERROR}
    assert cell.verdict is Verdict.FAIL


def test_unraisable_exceptions_and_broken_bytes_do_no_harm(project: Project) -> None:
    text = """
import os
class Bad:
    def __del__(self): raise ValueError("in a finalizer")
def test_a():
    Bad()
    os.write(1, b"\\xff\\xfe\\x00")
def test_b():
    os.write(2, b"\\xe4" * 10)
"""
    cell = project.check({"test_a.py": text}, command=["pytest", "-s"])
    assert set(cell.outcomes.values()) == {Outcome.PASS}
    assert cell.verdict is Verdict.PASS


def test_flaky_means_two_runs_and_two_verdicts(project: Project) -> None:
    """F137: a repeat is run again although the pair is known."""
    marker = project.state / "count"
    marker.parent.mkdir(exist_ok=True)
    flaky = f"""
import pathlib
def test_a():
    marker = pathlib.Path({str(marker)!r})
    first = not marker.exists()
    marker.touch()
    assert first
"""
    project.force = "swap"  # where a check can leave something behind outside the workspace
    first = project.check({"test_a.py": flaky})
    assert first.outcomes == {"test_a.py::test_a": Outcome.PASS}
    assert project.check().record.cached
    second = project.check(repeat=1)
    assert second.outcomes == {"test_a.py::test_a": Outcome.FAIL}
    assert not second.record.cached
