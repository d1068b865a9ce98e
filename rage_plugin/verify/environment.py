"""Which interpreter a check runs with, what it may see of the environment, and a hash of both.

Separate because a verdict holds for one environment: what is not allowed here cannot influence it,
and what is allowed is in the hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rage_plugin.verify.pytest_command import PytestCommand

# fmt: off
_ALLOWED = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ",
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "UV_PYTHON",
    "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR",
    "SYSTEMROOT", "COMSPEC", "PATHEXT",
})
# fmt: on
_VENVS = (".venv", "venv", "env")
_RUNNER = ("pytest", "_pytest", "pluggy", "iniconfig")
_DESCRIBE = """
import sys
sys.path[:1] = []
import importlib.util, json, site, sysconfig
sites = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
if site.ENABLE_USER_SITE is not False:
    sites.append(site.getusersitepackages())
version = ""
if importlib.util.find_spec("pytest"):
    try:
        from importlib.metadata import version as of
        version = of("pytest")
    except Exception:
        import pytest
        version = pytest.__version__
print("rage:" + json.dumps([sys.executable, sys.version, sys.prefix, sorted(set(sites)), version]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that a check runs with."""

    argv: tuple[str, ...]
    """What is put before the script, prefix and flags included."""
    executable: str
    version: str
    prefix: str
    sites: tuple[str, ...]
    """Folders of installed packages."""
    pytest: str
    """pytest's version; empty where it cannot be imported."""


class Environment:
    """Interpreters and variables for the checks of one workspace."""

    def __init__(self, root: Path, allow: Sequence[str] = ()) -> None:
        """`allow` names variables beside the built-in ones; `NAME*` is a prefix."""
        self._root = root
        self._allow = tuple(allow)
        self._described: dict[tuple[str, ...], Interpreter | None] = {}

    def variables(self, interpreter: Interpreter | None = None) -> dict[str, str]:
        """The whole environment of a check, without TMPDIR; the virtual environment's bin first.

        TERM is a constant, so that a verdict does not depend on the terminal that RAGE runs in;
        no colour is asked for or forbidden, because products have tests of their own colours.
        """
        kept = {name: value for name, value in os.environ.items() if self._allowed(name)}
        kept["TERM"] = "xterm-256color"
        venv = interpreter.prefix if interpreter is not None else ""
        if not (venv and (Path(venv) / "pyvenv.cfg").is_file()):
            venv = next((str(v) for v in self._venvs(self._root)), "")
        if venv:
            kept["VIRTUAL_ENV"] = venv
            kept["PATH"] = os.pathsep.join([str(_bin(Path(venv))), kept.get("PATH", os.defpath)])
        return kept

    def _allowed(self, name: str) -> bool:
        if name in _ALLOWED or name.startswith("LC_"):
            return True
        return any(name.startswith(a[:-1]) if a.endswith("*") else name == a for a in self._allow)

    def interpreter(self, command: PytestCommand, cwd: str) -> Interpreter | None:
        """The first interpreter that can import pytest; None where none can.

        The workspace's own virtual environment (of `cwd`, then of the root) comes before
        `$VIRTUAL_ENV`, that before the program on PATH, and RAGE's own interpreter is the last.
        """
        if command.managed:
            return self._describe((*command.prefix, "python", *command.flags), cwd)
        for program in self._candidates(command.program, cwd):
            found = self._describe((*command.prefix, program, *command.flags), cwd)
            if found is not None and found.pytest:
                return found
        return None

    def _candidates(self, program: str, cwd: str) -> Iterator[str]:
        folder = self._root / cwd
        script = not Path(program).name.startswith(("python", "pypy"))
        if "/" in program:
            path = Path(os.path.abspath(folder / program))  # noqa: PTH100 - a venv's python is a link
            if script:
                yield from _beside(path)
            else:
                yield str(path)
            return
        name = "python" if script else program
        active = os.environ.get("VIRTUAL_ENV")
        for venv in [*self._venvs(folder), *([Path(active)] if active else [])]:
            if (_bin(venv) / name).exists():
                yield str(_bin(venv) / name)
        on_path = shutil.which(program)
        if on_path:
            yield from _beside(Path(on_path)) if script else [on_path]
        for name in ("python3", "python"):
            other = shutil.which(name)
            if other:
                yield other
        yield sys.executable

    def _venvs(self, folder: Path) -> Iterator[Path]:
        for parent in dict.fromkeys((folder, self._root)):
            for name in _VENVS:
                if (parent / name / "pyvenv.cfg").is_file():
                    yield parent / name

    def _describe(self, argv: tuple[str, ...], cwd: str) -> Interpreter | None:
        if argv not in self._described:
            self._described[argv] = _describe(argv, self._root / cwd, self.variables())
        return self._described[argv]

    def hash(self, interpreter: Interpreter | None, argv: Sequence[str]) -> str:
        """A hash of what a verdict depends on besides tree and command.

        Found by stat and small reads, so that a changed runner, a new `.pth` file, a
        sitecustomize or a new entry point is seen; other installed packages by their names.
        """
        parts: list[object] = [list(argv), sorted(self.variables(interpreter).items())]
        if interpreter is not None:
            parts += [interpreter.executable, interpreter.version, _stat(interpreter.executable)]
            parts += [_site(Path(folder)) for folder in interpreter.sites]
        elif argv:
            program = shutil.which(argv[0], path=self.variables()["PATH"])
            parts += [program, _stat(program) if program else ""]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _describe(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> Interpreter | None:
    """Ask an interpreter about itself; None where it does not start or answers nonsense."""
    try:
        done = subprocess.run(
            [*argv, "-c", _DESCRIBE],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith("rage:"):
            executable, version, prefix, sites, pytest = json.loads(line[5:])
            return Interpreter(argv, executable, version, prefix, tuple(sites), pytest)
    return None


def _beside(script: Path) -> Iterator[str]:
    """The interpreter that a console script belongs to: beside it, else of its first line."""
    for name in ("python", "python3"):
        if (script.parent / name).exists():
            yield str(script.parent / name)
            return
    try:
        with script.open("rb") as file:
            first = file.readline(512)
    except OSError:
        return
    if first.startswith(b"#!/"):
        yield os.fsdecode(first[2:].strip())


def _bin(venv: Path) -> Path:
    return venv / ("Scripts" if os.name == "nt" else "bin")


def _stat(path: str) -> str:
    try:
        found = Path(path).stat()
    except OSError:
        return ""
    return f"{found.st_size}:{found.st_mtime_ns}"


def _site(folder: Path) -> list[object]:
    """What of a folder of installed packages can change how any check runs."""
    parts: list[object] = [str(folder)]
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return parts
    for entry in entries:
        name = entry.name
        if name.endswith(".pth") or name in {"sitecustomize.py", "usercustomize.py"}:
            parts.append([name, hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()])
        elif name in {"sitecustomize", "usercustomize"} or name.startswith("__editable__"):
            parts.append([name, _stat(entry.path)])
        elif name.endswith((".dist-info", ".egg-info", ".egg-link")):
            parts.append([name, _stat(entry.path + "/entry_points.txt")])
        elif name in _RUNNER or name.removesuffix(".py") in _RUNNER:
            parts.append([name, _sources(Path(entry.path))])
    return parts


def _sources(path: Path) -> list[str]:
    """Size and time of a package's sources."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [f"{file.name}:{_stat(str(file))}" for file in files]
