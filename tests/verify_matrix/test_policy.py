"""Which paths are tests, support, sealed or protected; what a change to one of them means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.config import CheckCommand, ProjectConfig, VerifyConfig
from rage_plugin.core.errors import Refused
from rage_plugin.core.model import Change
from rage_plugin.core.testids import MISSING, SESSION
from rage_plugin.verify import pytest_run
from rage_plugin.verify.cosmetic import cosmetic
from rage_plugin.verify.detect import detect
from rage_plugin.verify.globs import matches
from rage_plugin.verify.policy import Policy, only_adds
from rage_plugin.verify.sections import same_sections
from rage_plugin.verify.targets import valid_targets, validate_target

COMMANDS = (
    CheckCommand("tests", ("python", "-m", "pytest", "{targets}"), report="pytest"),
    CheckCommand("lint", ("ruff", "check", "--config=lint/rules.cfg", "src")),
    CheckCommand("all", ("sh", "-c", "cd x && ./scripts/check.sh && make test"), cwd="."),
    CheckCommand("sub", ("python", "tools/run.py"), cwd="pkg"),
)
CONFIG = ProjectConfig(path="rage.yaml", sources=("plans", "docs/work.md"))
POLICY = Policy(CONFIG, COMMANDS)


@pytest.mark.parametrize(
    "path",
    [
        *("tests/test_a.py", "test_a.py", "pkg/a_test.py", "app/tests.py", "a/b.test.tsx"),
        *("x.spec.js", "p/a_test.go", "spec/a_spec.rb", "src/test/java/ATest.java", "TestB.kt"),
    ],
)
def test_usual_names_of_test_files(path: str) -> None:
    """F140: pytest's, and those of other runners."""
    assert POLICY.is_test(path)


@pytest.mark.parametrize("path", ["src/contest.py", "tests/helper.py", "latest.js", "attest.go"])
def test_no_test_files(path: str) -> None:
    """F140: a helper is no test file."""
    assert not POLICY.is_test(path)


def test_the_profile_names_its_own_tests() -> None:
    """F140: `verification.tests` replaces the usual names; support stays support."""
    config = replace(CONFIG, verification=VerifyConfig(tests=("checks/**/*.py",)))
    policy = Policy(config, COMMANDS)
    assert policy.is_test("checks/a/b.py")
    assert not policy.is_test("tests/test_a.py")
    assert not policy.is_test("checks/conftest.py")
    assert policy.sealed([Change("M", "checks/data.json")]) == ("checks/data.json",)


SEALED = [
    *("conftest.py", "a/b/conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "noxfile.py"),
    *("sitecustomize.py", "src/usercustomize.py", "x.pth", ".coveragerc", "rage.yaml"),
    *("backlog/1.md", "issues/a/2.md", "docs/backlog/3.md", "BACKLOG.md", "TODO.md"),
    *("plans/x/1.md", "docs/work.md", "lint/rules.cfg", "scripts/check.sh", "Makefile"),
    *("ruff.toml", ".ruff.toml", "pkg/tools/run.py", ".git/config", "sub/.GIT/hooks/x"),
]


@pytest.mark.parametrize("path", SEALED)
@pytest.mark.parametrize("status", ["A", "M", "D"])
def test_sealed_whether_it_existed_or_not(path: str, status: str) -> None:
    """F138: support, configuration, commands, profile and backlog; absence is sealed too."""
    assert POLICY.sealed([Change(status, path)]) == (path,)


@pytest.mark.parametrize(
    "path",
    [
        *("src/a.py", "README.md", "CHANGELOG.md", "docs/TODO.md", "issues/models.py", "setup.py"),
        *("pyproject.toml", "src/pytest_helper/__init__.pyi", "tools/run.py", "lib/pytest.py"),
    ],
)
@pytest.mark.parametrize("status", ["M", "D"])
def test_open_to_the_agent(path: str, status: str) -> None:
    """F138: the product, its documents and its version are the agent's to change."""
    assert POLICY.sealed([Change(status, path)]) == ()


def test_what_tests_read_is_sealed_if_it_was_there() -> None:
    """F138: data and helpers beside tests; a new one goes along with the new tests."""
    for path in ("tests/data/x.json", "a/tests/util.py", "spec/support.rb"):
        assert POLICY.sealed([Change("M", path), Change("A", path)]) == (path,)
    assert POLICY.sealed([Change("M", "src/spec/parser.py")]) == ()


@pytest.mark.parametrize("path", ["pytest.py", "_pytest/__init__.py", "src/pluggy.py", "xdist.so"])
def test_a_new_module_that_hides_the_runner(path: str) -> None:
    """F138: it is sealed where it is new; a project that is the runner may change itself."""
    assert POLICY.sealed([Change("A", path)]) == (path,)
    assert POLICY.sealed([Change("M", path)]) == ()


def test_a_person_lifts_seals_but_never_git() -> None:
    """F138: `unseal` in the profile or front matter; `.git` stays protected."""
    changes = [Change("M", "conftest.py"), Change("M", ".git/config"), Change("M", "a/pytest.ini")]
    assert POLICY.sealed(changes, ("**",)) == (".git/config",)
    config = replace(CONFIG, verification=VerifyConfig(unseal=("conftest.py",)))
    assert Policy(config, COMMANDS).sealed(changes) == (".git/config", "a/pytest.ini")
    sealed = replace(CONFIG, verification=VerifyConfig(sealed=("schema/*.sql",)))
    assert Policy(sealed, ()).sealed([Change("M", "schema/a.sql")]) == ("schema/a.sql",)


PYPROJECT = b"[project]\nversion='1'\n[tool.pytest.ini_options]\naddopts='-q'\n[tool.ruff]\nx=1\n"


@pytest.mark.parametrize(
    ("name", "before", "after", "same"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace(b"'1'", b"'2'"), True),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace(b"-q", b"-k x"), False),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace(b"x=1", b"x=2"), False),
        ("pyproject.toml", None, b"[tool.pytest.ini_options]\n", False),
        ("pyproject.toml", None, b"[project]\nname='x'\n", True),
        ("pyproject.toml", PYPROJECT, None, False),
        ("pyproject.toml", PYPROJECT, PYPROJECT + b"]", False),
        ("pyproject.toml", PYPROJECT, PYPROJECT + b"[tool.coverage.run]\nomit=['x']\n", False),
        ("setup.cfg", b"[metadata]\nversion=1\n", b"[metadata]\nversion=2\n", True),
        ("setup.cfg", b"", b"[tool:pytest]\naddopts=-x\n", False),
        ("setup.cfg", b"", b"[DEFAULT]\naddopts=-x\n", False),
        ("tox.ini", b"", b"[pytest]\n", False),
        ("tox.ini", b"", b"[flake8]\nmax=1\n", True),
        ("tox.ini", b"[testenv]\na=1\n", b"[testenv]\na=2\n", True),
        ("package.json", b'{"version": "1"}', b'{"version": "2", "dependencies": {}}', True),
        ("package.json", b'{"scripts": {}}', b'{"scripts": {"test": "true"}}', False),
    ],
)
def test_only_the_runners_sections_are_sealed(
    name: str, before: bytes | None, after: bytes | None, same: bool
) -> None:
    """F138: a version bump is free, a runner's option is not, unreadable is different."""
    assert same_sections(name, before, after, {"ruff"}) is same


def test_tampered_compares_sections_and_the_items_own_source() -> None:
    """F138: what a judgement calls tampered."""
    old = {"pyproject.toml": PYPROJECT, "plan.md": b"a"}
    new = {"pyproject.toml": PYPROJECT.replace(b"-q", b"-x"), "plan.md": b"b"}
    changes = [Change("M", p) for p in old]
    assert POLICY.tampered(changes, old.get, new.get) == ("pyproject.toml",)
    both = POLICY.tampered(changes, old.get, new.get, item=("plan.md",))
    assert both == ("plan.md", "pyproject.toml")
    assert POLICY.tampered(changes, old.get, new.get, ("pyproject.toml",)) == ()


@pytest.mark.parametrize(
    ("before", "after", "adds"),
    [
        (b"a\nb\n", b"a\nx\nb\ny\n", True),
        (b"a\nb", b"a\nb\nc", True),
        (b"a\nb\n", b"b\na\n", False),
        (b"a\na\n", b"a\n", False),
        (b"a\n", b"A\n", False),
        (b"", b"a", True),
    ],
)
def test_adding_lines_is_free(before: bytes, after: bytes, adds: bool) -> None:
    """F140: every line of before is still there, in order."""
    assert only_adds(before, after) is adds


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_only_adds_is_a_subsequence(before: list[str], after: list[str]) -> None:
    """F140: against the definition: deleting lines of `after` can give `before`."""
    rest = list(after)
    for line in before:
        if line not in rest:
            assert not only_adds("\n".join(before).encode(), "\n".join(after).encode())
            return
        del rest[: rest.index(line) + 1]
    assert only_adds("\n".join(before).encode(), "\n".join(after).encode())


def test_weakened_names_what_happened() -> None:
    """F140: deleted, emptied, changed; unsealed by a person is not weakened."""
    old = dict.fromkeys(["test_a.py", "test_b.py", "test_c.py", "test_d.py", "x.py"], b"a\nb\n")
    new = {"test_b.py": b"\n", "test_c.py": b"a\n", "test_d.py": b"a\nb\nc\n"}
    changes = [Change("D" if p not in new else "M", p) for p in old]
    said = POLICY.weakened(changes, old.get, new.get)
    assert [s.split(":")[0] for s in said] == ["test_a.py", "test_b.py", "test_c.py"]
    assert "deleted" in said[0] and "emptied" in said[1] and "changed" in said[2]
    assert POLICY.weakened(changes, old.get, new.get, ("test_*.py",)) == ()


@pytest.mark.parametrize(
    ("path", "before", "after", "yes"),
    [
        ("a.py", b"x = 1\n", b"x = 1  # one\n\n\n", True),
        ("a.py", b"if x:\n    y\n", b"if x:\n        y\n", True),
        ("a.py", b"if x:\n    y\nz\n", b"if x:\n    y\n    z\n", False),
        ("a.py", b"x = 'a'\n", b"x = 'a '\n", False),
        ("a.py", b"x = (\n", b"x = ( \n", False),
        ("a.c", b"int x;\n", b"int  x;\n\n", True),
        ("a.c", b"int x;\n", b"int x; // c\n", False),
        ("a.py", None, b"", False),
    ],
)
def test_cosmetic_changes(path: str, before: bytes | None, after: bytes, yes: bool) -> None:
    """F162: comments and white space alone are no new attempt at a flaky gate."""
    assert cosmetic(path, before, after) is yes


@pytest.mark.parametrize(
    ("path", "pattern", "yes"),
    [
        ("a/b.py", "*.py", True),
        ("a/b.py", "/*.py", False),
        ("a/b.py", "a", True),
        ("a/b.py", "a/", True),
        ("ab/c.py", "a", False),
        ("a/b/c.py", "a/*.py", False),
        ("a/b/c.py", "a/**/*.py", True),
        ("a/c.py", "a/**/*.py", True),
        ("x/a/c.py", "a/*.py", False),
        ("p/[id].ts", "p/[id].ts", True),
        ("p/i.ts", "p/[!a-c].ts", True),
        ("p/new\nline.ts", "p/*.ts", True),
    ],
)
def test_globs(path: str, pattern: str, yes: bool) -> None:
    """F138: patterns as the profile writes them."""
    assert matches(path, [pattern]) is yes


@pytest.mark.parametrize(
    ("target", "clean"),
    [
        ("tests/test_x.py::test_y", "tests/test_x.py::test_y"),
        ("./tests//test_x.py", "tests/test_x.py"),
        ("tests/", "tests"),
        (".", "."),
        (
            "tests/ümlaut und raum.py::test_y[../a -b @c]",
            "tests/ümlaut und raum.py::test_y[../a -b @c]",
        ),
        ("tests/not_yet.py", "tests/not_yet.py"),
    ],
)
def test_targets_inside_the_workspace(tmp_path: Path, target: str, clean: str) -> None:
    """F106: a path or test id, in its shortest spelling; it need not exist."""
    assert validate_target(tmp_path, target) == clean


@pytest.mark.parametrize(
    "target",
    [
        *("", " ", "-k x", "--co", "@file", "./-x", "./@x", "a\nb", "a\0b", "a\rb", "/etc/passwd"),
        *(
            "../x",
            "a/../../x",
            "a/..",
            "~/x",
            "C:\\x",
            "::test",
            "a.py::",
            ".git/hooks/x",
            "a/.GIT",
        ),
        *("out/test_x.py", "loop/x", "x" * 2000, "a\u2028b", "\x1b[0m"),
    ],
)
def test_refused_targets(tmp_path: Path, target: str) -> None:
    """F106: never an option, a response file, a control character or a way out."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(Refused) as refused:
        validate_target(root, target)
    assert refused.value.next
    assert valid_targets(root, [target, "a.py", "./a.py"])[0] == ("a.py",)


@given(st.text())
def test_no_text_becomes_an_option_or_leaves(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """F106: whatever an agent writes."""
    root = tmp_path_factory.getbasetemp()
    for target in valid_targets(root, [text])[0]:
        assert target[0] not in "-@/~"
        assert "\n" not in target and "\0" not in target
        path = target.split("::")[0]
        assert (root / path).resolve().is_relative_to(root.resolve())


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pytest.ini", ""),
        ("tests/conftest.py", ""),
        ("pkg/test_a.py", ""),
        ("pkg/a_test.py", ""),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
        ("tox.ini", "[pytest]\n"),
    ],
)
def test_pytest_is_detected(tmp_path: Path, path: str, text: str) -> None:
    """F104: by its configuration files or by test files."""
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(text)
    (command,) = detect(tmp_path, [path])
    assert (command.name, command.report) == ("tests", "pytest")
    assert command.command == ("python", "-m", "pytest", "-q", "{targets}")


def test_nothing_is_guessed_from_other_files(tmp_path: Path) -> None:
    """F104: a version in pyproject.toml is no trace of pytest."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert detect(tmp_path, ["pyproject.toml", "src/latest.py", "package.json"]) == ()


def test_the_room_and_the_core_speak_of_the_same_marks() -> None:
    """F162: the words that runner and judgement share."""
    assert (pytest_run.MISSING, pytest_run.SESSION) == (MISSING, SESSION)
