"""The four runs on a real repository: which are made, what is cached, what is run again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rage_plugin.core.config import CheckCommand, ProjectConfig, VerifyConfig
from rage_plugin.core.errors import Refused
from rage_plugin.core.judgement import Judgement, Origin, Verdict
from rage_plugin.core.model import Verification

from .project import (
    CORE,
    FILES,
    FIXED,
    GATE,
    PYPROJECT,
    PYTEST,
    TEST_CORE,
    TEST_TEXT,
    Project,
    git,
    judge_now,
    write,
)

PASS, FAIL, UNVERIFIED = Verification.PASS, Verification.FAIL, Verification.UNVERIFIED
CORE_PY = "src/calc/core.py"
FIX = {CORE_PY: FIXED}


def cells(found: Judgement) -> list[str]:
    return [c.cell for c in found.checks]


def test_a_failing_gate_is_all_that_is_run(project: Project) -> None:
    """F137: cheap first: with the gate red on the candidate no whole suite runs."""
    found = project.judge({CORE_PY: CORE.replace("a - b", "a * b")})
    assert found.verification is FAIL
    assert cells(found) == ["target"]
    assert found.message == f"{GATE} fails: assert 6 == 5" or "6" in found.message
    assert found.failing == (GATE,)


def test_a_sealed_change_runs_nothing(project: Project) -> None:
    """F138: path policy needs no run."""
    found = project.judge({**FIX, "conftest.py": ""})
    assert (found.verdict, cells(found)) == (Verdict.TAMPERED, [])


def test_the_candidate_is_the_next_items_base(folder: Path) -> None:
    """F137: its whole run is not made again, although a version changed in pyproject.toml."""
    project = Project.make(folder)
    first = project.judge({**FIX, "pyproject.toml": PYPROJECT.replace("1.0", "2.0")})
    assert first.verification is PASS
    git(project.root, "commit", "-qam", "done")
    more = "\n\ndef test_neg():\n    assert add(1, -1) == 0\n    from calc.more import X\n"
    change = {"tests/test_core.py": TEST_CORE + more, "src/calc/more.py": "X = 1\n"}
    second = project.judge(change, ("tests/test_core.py::test_neg",))
    assert (second.verification, second.origin) == (PASS, Origin.AGENT)
    whole = next(c for c in second.checks if c.cell == "base")
    assert whole.cached
    assert whole.tree == first.tree


def test_an_identical_pair_is_not_run_again(folder: Path) -> None:
    """F137: a second judgement of the same tree comes from the cache, stability runs included."""
    project = Project.make(folder)
    room = project.room
    base = room.open("r1")
    write(project.root, FIX)
    judge_now(room, base, (GATE,))
    again = judge_now(project.room, base, (GATE,))
    assert again.verification is PASS
    assert all(c.cached for c in again.checks)


FLAKY = """
from pathlib import Path


def test_flaky():
    runs = Path({counter!r})
    count = int(runs.read_text() or 0) + 1
    runs.write_text(str(count))
    assert count != 2
"""


def test_a_flaky_unrelated_test_does_not_stand_in_the_way(folder: Path) -> None:
    """F140: what passed at base and fails once is run again on both, and is named unstable."""
    counter = folder / "counter"
    counter.write_text("")
    flaky = FLAKY.format(counter=str(counter))
    project = Project.make(folder, {**FILES, "tests/test_flaky.py": flaky})
    found = project.judge(FIX)
    assert found.verification is PASS, found
    assert found.unstable == ("tests/test_flaky.py::test_flaky",)


LEAKS = """
from calc import text


def test_first():
    assert text.shout("a") == "A!"


def test_second():
    assert text.shout("b") == "B!"
"""


def test_what_fails_only_in_company_is_no_chance(folder: Path) -> None:
    """F140: a test that passes alone and fails after another, every time, is a regression."""
    project = Project.make(folder, {**FILES, "tests/test_leaks.py": LEAKS})
    once = "def shout(word, seen=[]):\n    seen.append(word)\n    return word.upper() + '!' * (seen[0] == word)\n"
    found = project.judge({**FIX, "src/calc/text.py": once})
    assert found.verification is FAIL, found
    assert "tests/test_leaks.py::test_second" in found.regressions
    assert found.unstable == ()


NEEDS = """
from calc import text

state = []


def test_first():
    state.append(text.shout("a"))


def test_second():
    assert state == ["A!"]
"""


def test_a_test_that_needs_another_is_no_flaky_one(folder: Path) -> None:
    """F140: failing alone on the base does not excuse a failure in the whole run."""
    project = Project.make(folder, {**FILES, "tests/test_needs.py": NEEDS})
    found = project.judge({**FIX, "src/calc/text.py": "def shout(word):\n    return word\n"})
    assert found.verification is FAIL, found
    assert "tests/test_needs.py::test_second" in found.regressions


def test_a_red_suite_needs_only_what_passed(folder: Path) -> None:
    """F164: failures of before are named, a file that cannot be collected among them."""
    red = {
        "tests/test_red.py": "def test_red():\n    assert 0\n",
        "tests/test_b.py": "import nix\n",
    }
    project = Project.make(folder, {**FILES, **red})
    found = project.judge(FIX)
    assert found.verification is PASS, found
    assert found.preexisting == ("tests/test_b.py", "tests/test_red.py::test_red")


def test_a_gate_that_cannot_be_imported_before_is_red(folder: Path) -> None:
    """F162: the given file exists at base and imports what is still to be written."""
    gate = "from calc.more import X\n\n\ndef test_x():\n    assert X == 1\n"
    project = Project.make(folder, {**FILES, "tests/test_more.py": gate})
    found = project.judge({"src/calc/more.py": "X = 1\n"}, ("tests/test_more.py",))
    assert (found.verification, found.origin) == (PASS, Origin.GIVEN), found
    assert found.red == ("tests/test_more.py::test_x",)


@pytest.mark.parametrize(
    ("line", "verification"),
    [("pytestmark = __import__('pytest').mark.skip", UNVERIFIED), ("# nothing", PASS)],
)
def test_an_old_failure_stays_in_sight(folder: Path, line: str, verification: Verification) -> None:
    """F164: a skip is added to tests that failed before, beside the right fix."""
    old = "def test_old():\n    assert 1 == 2\n"
    project = Project.make(folder, {**FILES, "tests/test_old.py": old})
    found = project.judge({**FIX, "tests/test_old.py": f"{old}\n{line}\n"})
    assert found.verification is verification, found
    named = found.preexisting or found.reasons
    assert any("tests/test_old.py::test_old" in name for name in named)


def test_checks_that_run_nowhere_are_not_the_agents_fault(folder: Path) -> None:
    """F104: a runner's option that the environment does not know: a person mends it, no attempt."""
    old = PYPROJECT + 'addopts = "--of-a-plugin-that-is-not-there"\n'
    project = Project.make(folder, {**FILES, "pyproject.toml": old})
    found = project.judge(FIX)
    assert (found.verdict, found.blocked) == (Verdict.COULD_NOT_RUN, True)
    assert "--of-a-plugin-that-is-not-there" in found.message
    assert cells(found) == ["target", "base"]


def test_a_gate_that_cannot_run_by_the_change_is_the_agents_fault(folder: Path) -> None:
    """F104: the same verdict, and the base runs."""
    support = "import calc.core\n"
    project = Project.make(folder, {**FILES, "tests/conftest.py": support})
    found = project.judge({CORE_PY: "def add(a, b:\n"})
    assert (found.verification, found.verdict) == (FAIL, Verdict.COULD_NOT_RUN)
    assert not found.blocked


def test_untracked_files_of_before_prove_nothing(folder: Path) -> None:
    """F162: a gate that passes only with files that a commit lacks is unverified."""
    project = Project.make(folder)
    write(project.root, {"src/calc/answer.txt": "5"})
    reads = "__import__('pathlib').Path(__file__).with_name('answer.txt').read_text()"
    found = project.judge({CORE_PY: CORE.replace("a - b", f"int({reads})")})
    assert found.verification is UNVERIFIED
    assert "src/calc/answer.txt" in found.message


def test_a_tree_that_moves_during_the_checks_never_passes(folder: Path) -> None:
    """F137: what was checked must be what is there."""
    project = Project.make(folder)
    room = project.room
    base = room.open("r1")
    write(project.root, FIX)
    tree = room.snapshot(base)
    lines: list[str] = []

    def meddle(line: str) -> None:
        lines.append(line)
        write(project.root, {CORE_PY: FIXED + "# more\n"})

    from rage_plugin.core.judgement import JudgeRequest

    found = room.judge(JudgeRequest("r1", "5", base, tree, (GATE,)), meddle)
    assert lines
    assert (found.verification, found.verdict) == (FAIL, Verdict.PARTIAL)


def test_another_environment_is_for_a_person(project: Project) -> None:
    """F137: the environment at the end is the one the run began with."""
    project = project.with_(env_allow=("RAGE_TEST_X",))
    with pytest.MonkeyPatch.context() as patch:
        room = project.room
        base = room.open("r1")
        write(project.root, FIX)
        patch.setenv("RAGE_TEST_X", "1")
        found = judge_now(room, base, (GATE,))
    assert found.verification is UNVERIFIED
    assert "environment changed" in " ".join(found.reasons)


def test_a_person_may_unseal(project: Project) -> None:
    """F138: the item's front matter or the profile lifts a seal, and nothing else does."""
    change = {**FIX, "tests/helper.py": FILES["tests/helper.py"] + "\n\ndef far():\n    pass\n"}
    assert project.judge(change).verdict is Verdict.TAMPERED
    project.reset()
    assert project.judge(change, unseal=("tests/helper.py",)).verification is PASS
    project.reset()
    weaker = {**FIX, "tests/test_text.py": TEST_TEXT.replace('== "!"', '!= "?"')}
    assert project.judge(weaker).verification is UNVERIFIED
    project.reset()
    assert project.with_(unseal=("tests/test_text.py",)).judge(weaker).verification is PASS
    project.reset()
    own = {**FIX, "plan.md": "# other\n"}
    assert project.judge(own, sealed=("plan.md",)).verdict is Verdict.TAMPERED


def test_a_gate_that_the_agent_never_wrote_does_not_hide_a_persons(project: Project) -> None:
    """A proposal is never more than a proposal: where a person gave a gate, that one decides."""
    found = project.judge(FIX, proposed=("tests/test_later.py",))
    assert found.verification is PASS
    assert any("test_later" in w for w in found.warnings)
    project.reset()
    assert project.judge(FIX, (), proposed=("tests/test_later.py",)).verification is not PASS


@pytest.mark.parametrize(
    ("path", "hook"), [(".githooks", ".githooks/pre-commit"), (".husky/_", ".husky/pre-commit")]
)
def test_hooks_that_lie_in_the_work_tree_are_sealed(project: Project, path: str, hook: str) -> None:
    """F138: a commit runs them as the person, so an agent may not write them."""
    git(project.root, "config", "core.hooksPath", path)
    assert project.judge({**FIX, hook: "#!/bin/sh\n"}).verdict is Verdict.TAMPERED
    git(project.root, "config", "--unset", "core.hooksPath")
    project.reset()
    assert project.judge({**FIX, hook: "#!/bin/sh\n"}).verdict is Verdict.PASS


def test_unsealed_product_code_stays_old_in_the_red_run(project: Project) -> None:
    """F162: a file that a check names and a person unsealed is still what the test is about."""
    code = "src/calc/text.py"
    syntax = CheckCommand("syntax", ("python", "-m", "py_compile", code), required=False)
    named = project.with_(commands=(PYTEST, syntax), unseal=(code,))
    calm = FILES[code] + "\n\ndef calm(word):\n    return word.lower()\n"
    test = "from calc.text import calm\n\n\ndef test_calm():\n    assert calm('A') == 'a'\n"
    found = named.judge({code: calm, "tests/test_calm.py": test}, ())
    assert (found.verification, found.origin) == (PASS, Origin.AGENT), found


def test_a_candidate_that_hangs_is_a_timeout(project: Project) -> None:
    """F105: a verdict of its own, and no pass."""
    quick = project.with_(commands=(replace(PYTEST, timeout_s=3.0),))
    found = quick.judge({CORE_PY: CORE.replace("return a - b", "while True: pass")})
    assert (found.verification, found.verdict) == (FAIL, Verdict.TIMEOUT)
    assert not found.blocked


def test_a_base_that_cannot_be_checked_blocks(folder: Path) -> None:
    """F164: the base's own conftest cannot be imported: no attempt can help."""
    project = Project.make(folder, {**FILES, "conftest.py": "import nix\n"})
    found = project.judge({"src/calc/extra.py": "X = 1\n"}, ())
    assert (found.verification, found.verdict) == (FAIL, Verdict.COULD_NOT_RUN)
    assert found.blocked


def test_the_first_tests_of_a_project_count(folder: Path) -> None:
    """F162: a base without tests has nothing to lose, and its first test can be red."""
    bare = {k: v for k, v in FILES.items() if not k.startswith("tests/")}
    project = Project.make(folder, bare)
    found = project.judge(
        {
            **FIX,
            "tests/test_core.py": "from calc.core import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
        },
        (),
    )
    assert (found.verification, found.origin) == (PASS, Origin.AGENT), found


def test_a_gate_outside_the_whole_suite_is_run_by_name(folder: Path) -> None:
    """F162: `testpaths` does not hold the gate; base and candidate run it all the same."""
    gate = "from calc.core import add\n\n\ndef test_more():\n    assert add(1, 1) == 2\n"
    project = Project.make(folder, {**FILES, "extra/test_more.py": gate})
    found = project.judge(FIX, ("extra/test_more.py",))
    assert (found.verification, found.origin) == (PASS, Origin.GIVEN), found
    assert found.red == ("extra/test_more.py::test_more",)


def shell(name: str, script: str, **more: object) -> CheckCommand:
    return CheckCommand(name=name, command=("sh", "-c", script), **more)  # type: ignore[arg-type]


def test_required_commands_hold_and_optional_ones_warn(project: Project) -> None:
    """F104: every required command must hold; an optional one only warns."""
    count = "test $(grep -c def src/calc/core.py) -le 3"
    change = {CORE_PY: FIXED + "\n\ndef more():\n    pass\n"}
    both = project.with_(commands=(PYTEST, shell("few", count)))
    found = both.judge(change)
    assert (found.verification, found.regressions) == (FAIL, ("few",))
    project.reset()
    optional = project.with_(commands=(PYTEST, shell("few", count, required=False)))
    found = optional.judge(change)
    assert found.verification is PASS
    assert found.warnings == ("few (optional): fail",)


RUN = CheckCommand(
    name="scripts", command=("sh", "scripts/run.sh", "{targets}"), report="none", timeout_s=20
)
RUN_SH = 'for t in ${*:-t/*.sh}; do sh "$t" || exit 1; done\n'
SHELL = {
    "scripts/run.sh": RUN_SH,
    "lib.sh": "answer() { echo 41; }\n",
    "t/a.sh": '. ./lib.sh; test -n "$(answer)"\n',
}


def shell_project(folder: Path) -> Project:
    project = Project.make(folder, SHELL)
    config = ProjectConfig(verification=VerifyConfig(commands=(RUN,), tests=("t/*.sh",)))
    return replace(project, config=config)


def test_exit_codes_alone(folder: Path) -> None:
    """F162: red needs a targeted command, regression a green baseline; the script is sealed."""
    project = shell_project(folder)
    new = {"lib.sh": "answer() { echo 42; }\n", "t/b.sh": '. ./lib.sh; test "$(answer)" = 42\n'}
    found = project.judge(new, ("t/b.sh",))
    assert (found.verification, found.origin) == (PASS, Origin.AGENT), found
    git(project.root, "clean", "-qfd")
    project.reset()
    found = project.judge({**new, "t/b.sh": "true\n"}, ("t/b.sh",))
    assert found.verification is UNVERIFIED
    project.reset()
    found = project.judge({**new, "scripts/run.sh": "exit 0\n"}, ("t/b.sh",))
    assert found.tampered == ("scripts/run.sh",)
    project.reset()
    found = project.judge({"lib.sh": "answer() { :; }\n"}, ())
    assert (found.verification, found.regressions) == (FAIL, ("scripts",))


def test_a_red_baseline_of_exit_codes_is_for_a_person(folder: Path) -> None:
    """F164: with an exit code alone a red baseline shows no regression."""
    project = shell_project(folder)
    project.commit({"t/b.sh": '. ./lib.sh; test "$(answer)" = 42\n'})
    found = project.judge({"lib.sh": "answer() { echo 42; }\n"}, ("t/b.sh",))
    assert found.verification is UNVERIFIED
    assert found.origin is Origin.GIVEN


JUNIT = """
import sys, xml.sax.saxutils as x, importlib.util
names = sys.argv[2:] or ["checks/one.py", "checks/two.py"]
sys.path.insert(0, "src")
out = []
for name in names:
    scope = {}
    exec(open(name).read(), scope)
    for check, call in sorted(scope.items()):
        if check.startswith("check_"):
            try:
                call()
                out.append("<testcase classname='suite' name=%s/>" % x.quoteattr(check))
            except AssertionError:
                out.append("<testcase classname='suite' name=%s><failure/></testcase>" % x.quoteattr(check))
open(sys.argv[1], "w").write("<testsuite>" + "".join(out) + "</testsuite>")
sys.exit(any("failure" in o for o in out))
"""


def test_a_runner_with_ids_of_its_own(folder: Path) -> None:
    """F162: where a path says nothing about ids, a run of the target tells which ids are meant."""
    files = {
        "run.py": JUNIT,
        "src/calc/__init__.py": "",
        "src/calc/core.py": CORE,
        "checks/one.py": "from calc.core import add\ndef check_add(): assert add(2, 3) == 5\n",
        "checks/two.py": "from calc.core import mul\ndef check_mul(): assert mul(2, 3) == 6\n",
    }
    command = CheckCommand(
        name="checks", command=(sys.executable, "run.py", "{junit}", "{targets}"), report="junit"
    )
    project = Project.make(folder, files)
    verification = VerifyConfig(commands=(command,), tests=("checks/*.py",))
    project = replace(project, config=ProjectConfig(verification=verification))
    found = project.judge(FIX, ("checks/one.py",))
    assert (found.verification, found.origin) == (PASS, Origin.GIVEN), found
    assert found.red == ("suite::check_add",)
    project.reset()
    broken = FIXED.replace("a * b", "a")
    assert project.judge({CORE_PY: broken}, ("checks/one.py",)).regressions == ("suite::check_mul",)


def test_links_put_in_the_way(folder: Path) -> None:
    """F106, F138: a folder of tests that becomes a link is tampered with, inside and outside."""
    project = Project.make(folder)
    for place in (project.root / "other", folder / "outside"):
        room = project.room
        base = room.open("r1")
        place.mkdir()
        (place / "test_core.py").write_text("def test_add():\n    pass\n")
        for path in sorted((project.root / "tests").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (project.root / "tests").rmdir()
        (project.root / "tests").symlink_to(place)
        found = judge_now(room, base, (GATE,))
        assert (found.verification, found.verdict) == (FAIL, Verdict.TAMPERED)
        (project.root / "tests").unlink()
        project.reset()


def test_a_project_without_a_command_is_told_what_to_write(folder: Path) -> None:
    """F104: nothing detected, and nothing required: refused before anything begins."""
    project = Project.make(folder, {"a.txt": "a\n"})
    project = replace(project, config=ProjectConfig())
    with pytest.raises(Refused) as refused:
        project.room.preflight()
    assert "rage.yaml" in refused.value.next
    only = project.with_(commands=(replace(PYTEST, required=False),))
    with pytest.raises(Refused):
        only.room.preflight()


def test_pytest_is_detected(folder: Path) -> None:
    """F104: without a profile pytest's traces are enough."""
    room = replace(Project.make(folder), config=ProjectConfig()).room
    room.preflight()
    assert [c.report for c in room.commands()] == ["pytest"]


def test_a_base_is_run_once_for_all_candidates_of_an_item(folder: Path) -> None:
    """F137: what the base came to is known when the second candidate is judged."""
    project = Project.make(folder)
    room = project.room
    base = room.open("r1")
    seen = []
    for source in (FIXED, f"{FIXED}\n\nNAME = 'another candidate'\n"):
        write(project.root, {CORE_PY: source})
        found = judge_now(room, base, (GATE,))
        seen.append([c.cached for c in found.checks if c.cell == "base"])
    assert seen == [[False, False], [True, True]]


def test_trees_of_the_room(folder: Path) -> None:
    """F102: changes, cosmetic changes and taking a candidate back."""
    project = Project.make(folder)
    room = project.room
    base = room.open("r1")
    write(project.root, {CORE_PY: CORE + "# a remark\n", "tests/helper.py": "x = 1\n"})
    tree = room.snapshot(base)
    changes = room.changes(base.tree, tree)
    assert [c.path for c in changes] == [CORE_PY, "tests/helper.py"]
    assert not room.cosmetic(base.tree, tree)
    assert room.restore(base, tree) == ()
    assert room.snapshot(base) == base.tree
    write(project.root, {CORE_PY: CORE.replace("a - b", "a  -  b  # so")})
    assert room.cosmetic(base.tree, room.snapshot(base))
