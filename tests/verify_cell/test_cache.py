"""F137: a verdict is keyed to tree, command and environment, and reached once."""

from __future__ import annotations

from dataclasses import replace

from rage_plugin.core.judgement import Verdict

from .conftest import PYTEST, Project, site_of

A = "def test_a(): pass\n"


def test_an_identical_pair_is_not_run_again(project: Project) -> None:
    first = project.check({"test_a.py": A})
    again = project.check()
    assert again.record.cached
    assert not first.record.cached
    assert replace(again, record=replace(again.record, cached=False)) == first
    assert len(project.lines) == 2


def test_whatever_it_depends_on_makes_another_pair(project: Project) -> None:
    project.check({"test_a.py": A})
    other = project.tree({"pytest.ini": "[pytest]\naddopts = -v\n"})
    assert not project.check().record.cached, "another tree"
    assert project.check().record.cached
    project.write({"pytest.ini": None})
    assert project.check().record.cached
    assert not project.check(base=other).record.cached, "another configuration"
    assert not project.check(targets=["test_a.py"]).record.cached, "other targets"
    assert not project.check(command=["pytest"]).record.cached, "another argv"
    slower = replace(PYTEST, timeout_s=61)
    assert not project.check(command=slower).record.cached, "another limit"
    (site_of(project.root / ".venv") / "new.pth").write_text("")
    assert not project.check().record.cached, "another environment"


def test_repeats_have_keys_of_their_own(project: Project) -> None:
    project.check({"test_a.py": A})
    assert not project.check(repeat=1).record.cached
    assert project.check(repeat=1).record.cached
    assert not project.check(repeat=2).record.cached


def test_what_found_nothing_out_is_tried_again(project: Project) -> None:
    cell = project.check({"test_a.py": A}, command=["pytest", "--no-such-option"])
    assert cell.verdict is Verdict.COULD_NOT_RUN
    assert not project.check(command=["pytest", "--no-such-option"]).record.cached


def test_a_cache_that_cannot_be_read_costs_time_only(project: Project) -> None:
    project.check({"test_a.py": A})
    (project.state / "verdicts.db").write_bytes(b"not a database" * 100)
    assert project.check().verdict is Verdict.PASS
    assert project.check().record.cached


def test_the_name_of_the_cell_is_the_callers(project: Project) -> None:
    tree = project.tree({"test_a.py": A})
    run = project.cells().run
    first = run("base", PYTEST, tree, current=tree, hidden=(), config_tree=tree)
    second = run("green", PYTEST, tree, current=tree, hidden=(), config_tree=tree)
    assert (first.record.cell, second.record.cell) == ("base", "green")
    assert second.record.cached
