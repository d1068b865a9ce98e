"""Run pytest and report every test over a pipe, keyed so that nothing else can.

A program of its own because it runs inside the user's interpreter (Python 3.8 or later, pytest 6 or
later) and must import nothing of RAGE:

    python rage_probe.py SETTINGS ROOT [pytest arguments]

SETTINGS is a JSON file that is read and removed before any code of the workspace is imported; ROOT
is the workspace as this process sees it. Run as a script, so that this file's folder and not the
workspace is first on `sys.path` while pytest and its plugins are imported, on every version of
Python.
"""

# Python 3.8 must be able to run it, and nothing may be imported before main() has cleaned up:
# ruff: noqa: UP006, UP031, UP035, PLC0415, PTH108, PTH109, PTH118, PTH120, PTH123, PTH124, PTH206

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import types
import unittest
from typing import Any, Dict, Generator, List

Wrapper = Generator[None, Any, None]
Settings = Dict[str, Any]

_TEXT = 300
_LINE = 60000
_CHUNK = 8000


class Pipe:
    """Writes events, each with its number and a MAC, for as long as this process lives.

    Functions are bound here, before a test can replace them.
    """

    def __init__(self, fd: int, key: str) -> None:
        self._fd = fd
        self._mac = hmac.new(key.encode(), digestmod=hashlib.sha256)
        self._number = 0
        self._pid = os.getpid()
        self._getpid = os.getpid
        self._write = os.write
        self._encode = json.JSONEncoder().encode

    def send(self, kind: str, **data: object) -> None:
        """Write one event; silent in a forked child and once the pipe is gone."""
        if self._getpid() != self._pid or self._fd < 0:
            return
        body = self._encode([self._number, kind, data]).encode()
        if len(body) > _LINE:
            body = self._encode([self._number, kind, {"id": data.get("id", ""), "cut": 1}]).encode()
        mac = self._mac.copy()
        mac.update(body)
        line = mac.hexdigest().encode() + b" " + body + b"\n"
        self._number += 1
        try:
            while line:
                line = line[self._write(self._fd, line) :]
        except OSError:
            self._fd = -1


class Probe:
    """The pytest plugin: neutralises what would cut a run short, observes, and adds the canaries.

    All hooks are wrappers of the old style, which pluggy 0.13 and later know.
    """

    def __init__(self, pipe: Pipe, settings: Settings, root: str) -> None:
        self._pipe = pipe
        self._settings = settings
        self._root = os.path.realpath(root)
        self._prefix = ""
        self._failed = 0

    def _name(self, nodeid: object) -> str:
        """An id relative to the workspace, whatever pytest's root folder is."""
        return self._prefix + str(nodeid)

    def pytest_load_initial_conftests(self) -> Wrapper:
        """Plugins are loaded by now: place the current directory; tell of a broken conftest."""
        if self._settings["cwd_on_path"]:
            place_current_directory()
        outcome = yield
        error = outcome.excinfo
        if error:
            path = getattr(error[1], "path", "")
            cause = getattr(error[1], "excinfo", None) or getattr(error[1], "cause", None)
            if isinstance(cause, tuple):
                cause = cause[1]
            cause = getattr(cause, "value", cause) or error[1]
            self._pipe.send(
                "conftest",
                path=os.path.relpath(os.path.realpath(str(path)), self._root) if path else "",
                text=first_line("%s: %s" % (type(cause).__name__, cause)),
            )

    def pytest_cmdline_main(self, config: Any) -> Wrapper:
        """Switch off what distributes, reorders or stops a run early, wherever it was asked for."""
        option = config.option
        for name, value in (
            ("maxfail", 0),
            ("continue_on_collection_errors", True),
            ("stepwise", False),
            ("cacheclear", True),
            ("numprocesses", 0),
            ("dist", "no"),
            ("tx", []),
            ("randomly_reorganize", False),
            ("randomly_seed", 1),
        ):
            if hasattr(option, name):
                setattr(option, name, value)
        import pytest

        folder = os.path.realpath(str(getattr(config, "rootpath", None) or config.rootdir))
        if folder.startswith(self._root + os.sep):
            self._prefix = folder[len(self._root) + 1 :].replace(os.sep, "/") + "/"
        self._pipe.send("configure", pytest=pytest.__version__)
        yield

    def pytest_internalerror(self, excrepr: object) -> Wrapper:
        """Tell of a fault inside pytest or a plugin."""
        self._pipe.send("internal", text=first_line(str(excrepr).strip().rpartition("\n")[2]))
        yield

    def pytest_collectreport(self, report: Any) -> Wrapper:
        """Tell which files could not be collected, and which were skipped as a whole."""
        yield
        if report.failed:
            self._failed += 1
            self._pipe.send("broken", id=self._name(report.nodeid), text=reason(report))
        elif report.skipped:
            self._pipe.send("skipped_file", id=self._name(report.nodeid), text=reason(report))

    def pytest_collection_modifyitems(self, config: Any, items: List[Any]) -> Wrapper:
        """Keep what the targets name; tell which of them named nothing."""
        yield
        targets = self._settings["targets"]
        if targets is None:
            return
        used = set()
        seen = set()
        kept: List[Any] = []
        dropped: List[Any] = []
        for item in items:
            name = self._name(item.nodeid)
            wanted = [t for t in targets if covers(t, name)]
            used.update(wanted)
            (kept if wanted and name not in seen else dropped).append(item)
            seen.add(name)
        if dropped:
            items[:] = kept
            config.hook.pytest_deselected(items=dropped)
        self._pipe.send("unmatched", ids=[t for t in targets if t not in used])

    def pytest_runtestloop(self, session: Any) -> Wrapper:
        """Tell what is about to run; when it ran, run the tests that must fail."""
        ids: List[str] = []
        for item in session.items:
            ids.append(self._name(item.nodeid))
            if sum(map(len, ids)) > _CHUNK:
                self._pipe.send("collected", ids=ids)
                ids = []
        self._pipe.send("collected", ids=ids)
        outcome = yield
        if outcome.excinfo:
            return
        try:
            self._failed += run_canaries(session, self, self._settings["canary"], self._pipe)
        except BaseException as error:  # noqa: BLE001 - a fault here must be told, not raised
            self._pipe.send("fault", text=first_line(repr(error)))

    def pytest_runtest_logreport(self, report: Any) -> Wrapper:
        """Tell what one phase of one test did, after every other plugin has had its say."""
        yield
        nodeid = str(report.nodeid)
        if nodeid.startswith(self._settings["canary"]):
            return
        xfail = hasattr(report, "wasxfail")
        if report.outcome == "failed" and not xfail:
            self._failed += 1
        data = {"id": self._name(nodeid), "when": report.when, "outcome": str(report.outcome)}
        if xfail:
            data["xfail"] = 1
        if type(report) is not self._settings["report_type"]:
            data["part"] = 1
        if report.outcome != "passed":
            data["text"] = reason(report)
        self._pipe.send("report", **data)

    def pytest_sessionfinish(self, session: Any) -> Wrapper:
        """Tell how the session ended, and which modules came from where they must not."""
        yield
        self._pipe.send(
            "finish",
            status=int(session.exitstatus),
            extra=max(0, int(session.testsfailed) - self._failed),
            strangers=strangers(self._settings["guard"]),
        )


def run_canaries(session: Any, probe: Probe, token: str, pipe: Pipe) -> int:
    """Run tests that must fail the way any test runs; the number of failures they reported.

    They run last, when whatever code under test could have patched is patched, without fixtures,
    and nobody but the session and third parties is told, so that no summary shows them. A function
    and a TestCase, because different parts of pytest run them.
    """
    from _pytest.runner import runtestprotocol

    manager = session.config.pluginmanager
    quiet = [
        plugin
        for name, plugin in manager.list_name_plugin()
        if plugin is not None
        and plugin is not session
        and (
            name in ("terminalreporter", "capturemanager")
            or plugin is probe
            or str(getattr(plugin, "__module__", "") or getattr(plugin, "__name__", "")).startswith(
                "_pytest."
            )
        )
    ]
    tell = manager.subset_hook_caller("pytest_runtest_logreport", remove_plugins=quiet)
    before = session.testsfailed
    for item in canaries(session, token):
        reports = runtestprotocol(item, nextitem=None, log=False)
        for report in reports:
            tell(report=report)
        pipe.send("canary", outcomes=[str(report.outcome) for report in reports])
    return int(session.testsfailed - before)


def canaries(session: Any, token: str) -> List[Any]:
    """Two tests that must fail, as items below a module that no file holds."""
    import pytest
    from _pytest.unittest import UnitTestCase

    def wrong() -> None:
        assert token == "", "this test must fail"  # noqa: S101

    def also_wrong(self: unittest.TestCase) -> None:
        self.assertEqual(token, "")

    case = type(token, (unittest.TestCase,), {"test_" + token: also_wrong})
    module = types.ModuleType(token)
    case.__module__ = token
    setattr(module, token, case)
    try:
        from pathlib import Path

        node: Any = pytest.Module.from_parent(session, path=Path(__file__))
    except TypeError:  # before pytest 7
        import py  # type: ignore[import-untyped]

        node = pytest.Module.from_parent(session, fspath=py.path.local(__file__))
    node._nodeid = token
    node._obj = module
    items: List[Any] = [pytest.Function.from_parent(node, name="test_" + token, callobj=wrong)]
    items.extend(UnitTestCase.from_parent(node, name=token, obj=case).collect())
    for item in items:
        del item.fixturenames[:]
    return items


def covers(target: str, nodeid: str) -> bool:
    """Whether a target (a folder, a file, or an id with or without parameters) names this test."""
    if nodeid == target or target in ("", "."):
        return True
    return nodeid.startswith((target + "::", target + "[", target.rstrip("/") + "/"))


def reason(report: Any) -> str:
    """One short line that says why a report is not a pass."""
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        return first_line(str(longrepr[2]))
    if getattr(report, "wasxfail", ""):
        return first_line(str(report.wasxfail))
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        return first_line(str(crash.message))
    lines = [line for line in str(longrepr).splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return first_line((marked[-1:] or lines[-1:] or [""])[0])


def first_line(text: str) -> str:
    """The first line of a text, cut."""
    return (text.strip().splitlines() or [""])[0][:_TEXT]


def strangers(guard: str) -> List[str]:
    """Modules that were imported from below `guard` and not from an environment's site-packages."""
    if not guard:
        return []
    guard = os.path.realpath(guard).rstrip(os.sep) + os.sep
    prefix = os.path.realpath(sys.prefix) + os.sep
    found = set()
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str):
            continue
        path = os.path.realpath(path)
        if path.startswith(guard) and not path.startswith(prefix) and not installed(path):
            found.add(path)
    return sorted(found)[:5]


def installed(path: str) -> bool:
    """Whether a file belongs to an environment's packages."""
    parts = path.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts


def place_current_directory() -> None:
    """Put the current directory before the installed packages and after the standard library.

    `python -m pytest` would put it first; there it could stand in for the standard library that
    the tests were written for. Behind the packages a stale installed copy would be tested instead.
    """
    here = os.getcwd()
    if here in sys.path:
        sys.path.remove(here)
    index = next((i for i, p in enumerate(sys.path) if installed(p)), len(sys.path))
    sys.path.insert(index, here)


def keep_package_bytecode(folder: str) -> None:
    """Compile the workspace afresh, into `folder`, but read the packages' own bytecode.

    Stale bytecode is a danger where sources change within one second: in the workspace. To compile
    every dependency again would double the time of a short run.
    """
    import importlib._bootstrap_external as machinery

    sys.pycache_prefix = folder
    os.environ["PYTHONPYCACHEPREFIX"] = folder
    library = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
    original = machinery.cache_from_source
    tag = sys.implementation.cache_tag

    def cache_from_source(path: Any, debug_override: Any = None, **kwargs: Any) -> Any:
        name = os.fspath(path)
        plain = not kwargs.get("optimization") and not sys.flags.optimize
        if plain and tag and (installed(name) or name.startswith(library)):
            head, tail = os.path.split(name)
            return os.path.join(head, "__pycache__", "%s.%s.pyc" % (tail.rpartition(".")[0], tag))
        if debug_override is not None:
            return original(path, debug_override, **kwargs)
        return original(path, **kwargs)

    machinery.cache_from_source = cache_from_source


def main() -> None:
    """Read the settings, take every trace of them away, and hand over to pytest."""
    with open(sys.argv[1], encoding="utf-8") as file:
        settings = json.load(file)
    os.unlink(sys.argv[1])
    root = sys.argv[2]
    arguments = sys.argv[3:]
    if settings["fifo"]:
        fd = os.open(settings["fifo"], os.O_WRONLY)
        os.unlink(settings["fifo"])
    else:
        fd = settings["fd"]
        os.set_inheritable(fd, False)
    pipe = Pipe(fd, settings.pop("key"))
    settings["guard"] = os.environ.pop("RAGE_GUARD_ROOT", "")
    del sys.path[0]
    keep_package_bytecode(settings["bytecode"])

    import pytest
    from _pytest.reports import TestReport

    sys.argv[:] = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), *arguments]
    if settings["cwd_on_path"]:
        sys.path.append(os.getcwd())
    settings["report_type"] = TestReport
    for name, function in vars(Probe).items():
        if name.startswith("pytest_"):
            pytest.hookimpl(hookwrapper=True, tryfirst=True)(function)
    status = int(pytest.main(arguments, plugins=[Probe(pipe, settings, root)]))
    pipe.send("end", status=status)
    sys.exit(status)


if __name__ == "__main__":
    main()
