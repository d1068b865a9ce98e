"""One project in every isolation of the ladder: the verdicts are the same, and nothing stays."""

from __future__ import annotations

from rage_plugin.core.judgement import Outcome, Verdict

from .conftest import Project, site_of

TEST = "from pkg import value\n\ndef test_value():\n    assert value() == 2\n"
ID = "tests/test_pkg.py::test_value"


def install_editable(project: Project) -> None:
    """What `pip install -e .` leaves for a src layout: a .pth file with the absolute path."""
    site = site_of(project.root / ".venv")
    (site / "__editable__.pkg.pth").write_text(f"{project.root / 'src'}\n")


def test_an_editable_install_is_red_on_the_base_and_green_on_the_candidate(rung: Project) -> None:
    """F162: the base's code is what runs on the base, though the candidate lies in the folder."""
    install_editable(rung)
    base = rung.tree({"src/pkg/__init__.py": "def value(): return 1\n", "tests/test_pkg.py": TEST})
    candidate = rung.tree({"src/pkg/__init__.py": "def value(): return 2\n"})
    red = rung.check(tree=base, base=base)
    green = rung.check(tree=candidate, base=base)
    assert red.outcomes == {ID: Outcome.FAIL}
    assert green.outcomes == {ID: Outcome.PASS}
    assert red.record.isolation == green.record.isolation == rung.force
    assert rung.trees.snapshot() == candidate


def test_code_from_the_work_tree_itself_makes_the_scratch_run_inconclusive(
    project: Project,
) -> None:
    project.force = "scratch"
    outside = f"import sys\nsys.path.insert(0, {str(project.root / 'elsewhere')!r})\n"
    project.write({"elsewhere/pkg.py": "def value(): return 2\n", "tests/test_pkg.py": TEST})
    project.write({"conftest.py": outside})
    cell = project.check()
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert "elsewhere/pkg.py" in cell.note


def test_hidden_files_are_not_there(rung: Project) -> None:
    rung.write({"test_a.py": "import pathlib\ndef test_a(): assert pathlib.Path('d').exists()\n"})
    rung.write({"d": "untracked before the run"})
    assert rung.check(hidden=["d"]).outcomes == {"test_a.py::test_a": Outcome.FAIL}
    assert rung.check().outcomes == {"test_a.py::test_a": Outcome.PASS}
    assert (rung.root / "d").read_text() == "untracked before the run"


def test_the_private_configuration_is_gone_afterwards(rung: Project) -> None:
    base = rung.tree({"test_a.py": "def test_a(): pass\n"})
    cell = rung.check({"pytest.ini": "[pytest]\naddopts = --collect-only\n"}, base=base)
    assert cell.verdict is Verdict.PASS
    assert not list(rung.root.glob(".rage-pytest*"))
    assert "collect-only" in (rung.root / "pytest.ini").read_text()


def test_a_killed_run_and_a_timeout_look_alike_everywhere(rung: Project) -> None:
    text = "import os\ndef test_a(): os.kill(os.getpid(), 9)\n"
    assert rung.check({"test_a.py": text}).verdict is Verdict.PARTIAL
