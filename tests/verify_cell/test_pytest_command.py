"""Command lines that are pytest, and the configuration that pytest would read."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.verify.pytest_command import BaseConfig, base_config, recognise
from rage_plugin.verify.pytest_run import PROBE


@pytest.mark.parametrize(
    "line, prefix, program, module, arguments",
    [
        ("pytest", "", "pytest", False, ""),
        ("pytest -q {targets}", "", "pytest", False, "-q"),
        ("py.test tests", "", "py.test", False, "tests"),
        (".venv/bin/pytest -x", "", ".venv/bin/pytest", False, "-x"),
        ("python -m pytest -k x", "", "python", True, "-k x"),
        ("python3.12 -X dev -m pytest", "", "python3.12", True, ""),
        ("/opt/bin/pypy3 -m pytest", "", "/opt/bin/pypy3", True, ""),
        ("uv run pytest -q", "uv run", "pytest", False, "-q"),
        (
            "uv run --with pytest --frozen pytest a",
            "uv run --with pytest --frozen",
            "pytest",
            False,
            "a",
        ),
        ("uv run -m pytest a", "uv run", "python", True, "a"),
        ("uv run python -m pytest", "uv run", "python", True, ""),
        ("poetry run pytest", "poetry run", "pytest", False, ""),
        ("hatch run pytest", "hatch run", "pytest", False, ""),
        ("pdm run python -m pytest", "pdm run", "python", True, ""),
        ("env -i A=1 pytest", "env -i A=1", "pytest", False, ""),
    ],
)
def test_recognised(line: str, prefix: str, program: str, module: bool, arguments: str) -> None:
    found = recognise(line.split())
    assert found is not None
    assert (found.prefix, found.program) == (tuple(prefix.split()), program)
    assert (found.module, found.arguments) == (module, tuple(arguments.split()))
    assert found.managed == (prefix.split(" ", maxsplit=1)[0] in {"uv", "poetry", "hatch", "pdm"})


@pytest.mark.parametrize(
    "line",
    ["make pytest", "python pytest.py", "python -m unittest", "python -c pytest", "tox -e py",
     "npm test", "uv sync", "uv run", "python", "docker run x pytest", "pytest-watch", "env A=1"],
)  # fmt: skip
def test_other_commands_are_left_alone(line: str) -> None:
    assert recognise(line.split()) is None


@given(
    st.lists(st.sampled_from(["uv", "run", "-m", "pytest", "python", "-x", "--with", "a=b", ""]))
)
def test_any_argv_has_an_answer(argv: list[str]) -> None:
    found = recognise(argv)
    if found is not None:
        assert found.program
        assert tuple(argv[: len(found.prefix)]) == found.prefix


@dataclass
class Files:
    """A tree that is a dictionary."""

    files: dict[str, str]

    def read(self, path: str) -> bytes | None:
        return self.files[path].encode() if path in self.files else None

    def is_folder(self, path: str) -> bool:
        return (path or ".") in {str(p) for name in self.files for p in Path(name).parents}

    def has(self, path: str) -> bool:
        return path in self.files or self.is_folder(path)


def plan(
    files: dict[str, str], line: str = "pytest", cwd: str = ".", version: str = "9.0.1"
) -> BaseConfig:
    """The configuration for a base that holds these files."""
    command = recognise(line.split())
    assert command is not None
    return base_config(command, cwd, Files(files), version)


INI, TOOL, CFG = "[pytest]\n", "[tool.pytest.ini_options]\n", "[tool:pytest]\n"
ALL = {
    "pytest.toml": "", ".pytest.toml": "", "pytest.ini": "", ".pytest.ini": "",
    "pyproject.toml": TOOL, "tox.ini": INI, "setup.cfg": CFG,
}  # fmt: skip


@pytest.mark.parametrize(
    "version, order",
    [
        ("9.2.0", ["pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini",
                   ".rage-pytest.toml", ".rage-pytest.ini", ".rage-pytest.cfg"]),
        ("8.3.5", ["pytest.ini", ".pytest.ini",
                   ".rage-pytest.toml", ".rage-pytest.ini", ".rage-pytest.cfg"]),
    ],
)  # fmt: skip
def test_the_order_is_that_of_pytest(version: str, order: list[str]) -> None:
    files = dict(ALL)
    for expected in order:
        assert plan(files, version=version).path == expected
        original = {".toml": "pyproject.toml", ".ini": "tox.ini", ".cfg": "setup.cfg"}
        name = expected
        if "rage" in expected:
            name = original[Path(expected).suffix]
        assert plan(files, version=version).content == files.pop(name).encode()


def test_without_any_the_run_gets_an_empty_one() -> None:
    files = {"tox.ini": "[tox]\n", "setup.cfg": "[metadata]\n", "pyproject.toml": "[project]\n"}
    assert plan(files) == BaseConfig(".rage-pytest.ini", b"[pytest]\n", given=False)


def test_files_that_are_not_for_pytest_are_passed_over() -> None:
    files = {"pyproject.toml": "[tool.ruff]\n", "setup.cfg": CFG}
    assert plan(files).path == ".rage-pytest.cfg"


def test_it_is_looked_for_from_what_the_command_names_upwards() -> None:
    files = {
        "pytest.ini": INI,
        "a/tests/test_a.py": "",
        "a/tox.ini": INI,
        "b/pyproject.toml": "[project]\n",
        "b/test_b.py": "",
    }
    assert plan(files).path == "pytest.ini"
    assert plan(files, "pytest a/tests").path == "a/.rage-pytest.ini"
    assert plan(files, "pytest -q a/tests/test_a.py::test_x b").path == "pytest.ini"
    assert plan(files, "pytest tests", cwd="a").path == "a/.rage-pytest.ini"
    del files["pytest.ini"]
    assert plan(files, cwd="b").path == "b/.rage-pytest.ini"


@pytest.mark.parametrize("option", ["-c conf/x.ini", "-cconf/x.ini", "--config-file=conf/x.ini"])
def test_a_file_that_the_command_names_keeps_its_place(option: str) -> None:
    found = plan({"a/conf/x.ini": INI, "pytest.ini": INI}, f"pytest {option}", cwd="a")
    assert found == BaseConfig("a/conf/x.ini", INI.encode(), given=True)
    assert plan({}, f"pytest {option}").content == b""


def test_the_probe_can_be_read_by_python_3_8() -> None:
    source = PROBE.read_text()
    ast.parse(source, feature_version=(3, 8))
    assert "rage_plugin" not in source
