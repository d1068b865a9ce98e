"""The other end of the probe's pipe: what was told, and whether only the probe told it.

Separate because everything that comes through the pipe comes from a process that runs the
candidate's code: each line is checked, numbered and bounded before anything is believed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import select
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rage_plugin.core.judgement import Outcome

MAX_BYTES = 256 * 1024 * 1024
"""What is read of one run's report (about a million tests); more is a truncated report."""
_MAX_LINE = 1 << 17
_POLL_MS = 50


@dataclass(slots=True)
class _Test:
    """The phases of one test so far."""

    setup: str = ""
    call: str = ""
    teardown: str = ""
    part_failed: bool = False
    text: str = ""

    def outcome(self) -> Outcome | None:
        """What the phases come to; None where the test did not end."""
        if self.call == "failed" or self.part_failed:
            return Outcome.FAIL
        if "failed" in (self.setup, self.teardown):
            return Outcome.ERROR
        if "skipped" in (self.setup, self.call):
            return Outcome.SKIP
        return Outcome.PASS if self.call == "passed" and self.teardown else None


@dataclass(slots=True)
class Observed:
    """What the probe told about one run. Ids and paths are relative to the workspace's root."""

    configured: bool = False
    collected: Counter[str] = field(default_factory=Counter)
    tests: dict[str, _Test] = field(default_factory=dict)
    skipped_files: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    canaries: list[list[str]] = field(default_factory=list)
    conftest: tuple[str, str] | None = None
    """A conftest that could not be imported, and why."""
    fault: str = ""
    """A fault inside pytest, a plugin or the probe."""
    status: int | None = None
    """pytest's exit status; None where the session did not end."""
    ended: bool = False
    """pytest returned to the probe."""
    extra: int = 0
    """Failures that a plugin declared beside the tests', e.g. a coverage threshold."""
    strangers: tuple[str, ...] = ()
    """Modules imported from the work tree itself instead of the view."""
    forged: bool = False
    """Something else wrote into the pipe, or lines are missing."""
    truncated: bool = False

    def outcomes(self) -> dict[str, Outcome]:
        """What each test that ended did; a file skipped as a whole counts as one."""
        ended = ((id, test.outcome()) for id, test in self.tests.items())
        result = {id: outcome for id, outcome in ended if outcome is not None}
        return result | dict.fromkeys(self.skipped_files, Outcome.SKIP)

    def messages(self) -> dict[str, str]:
        """One short line for each test that did not pass."""
        said = {id: test.text for id, test in self.tests.items() if test.text}
        return said | self.skipped_files

    def unfinished(self) -> list[str]:
        """Ids that were about to run and did not end."""
        ended = self.outcomes()
        return [id for id in self.collected if id not in ended]

    def duplicates(self) -> tuple[str, ...]:
        """Ids that several tests carry."""
        return tuple(sorted(id for id, count in self.collected.items() if count > 1))

    def take(self, kind: str, data: dict[str, object]) -> None:
        """Fold one event in."""
        id, text = str(data.get("id", "")), str(data.get("text", ""))
        match kind:
            case "configure":
                self.configured = True
            case "collected":
                self.collected.update(_strings(data["ids"]))
            case "report":
                self._report(id, data, text)
            case "broken":
                self.broken[id] = text
            case "skipped_file":
                self.skipped_files[id] = text
            case "unmatched":
                self.unmatched = tuple(_strings(data["ids"]))
            case "canary":
                self.canaries.append(_strings(data["outcomes"]))
            case "conftest":
                self.conftest = (str(data["path"]), text)
            case "internal" | "fault":
                self.fault = text
            case "finish":
                self.status = int(str(data["status"]))
                self.extra = int(str(data["extra"]))
                self.strangers = tuple(_strings(data["strangers"]))
            case "end":
                self.ended = True
            case _:
                self.forged = True

    def _report(self, id: str, data: dict[str, object], text: str) -> None:
        test = self.tests.setdefault(id, _Test())
        when, outcome = str(data.get("when")), str(data.get("outcome"))
        if outcome not in {"passed", "failed", "skipped"}:
            return  # e.g. `rerun`: what counts comes later
        if data.get("xfail") and outcome == "passed":
            outcome = "skipped"  # expected to fail: whatever it does, it is no evidence
        if data.get("part"):
            test.part_failed |= outcome == "failed"
        elif when == "setup":
            test.setup, test.call, test.teardown = outcome, "", ""
        elif when == "call":
            test.call = outcome
        elif when == "teardown":
            test.teardown = outcome
        if text and (outcome == "failed" or not test.text):
            test.text = text


class Channel:
    """Makes the pipe and the probe's settings, and reads in the background until told to stop."""

    def __init__(
        self, folder: Path, *, named: bool, cwd_on_path: bool, targets: Sequence[str] | None
    ) -> None:
        """`named` makes a FIFO in `folder`, for programs that close what they inherit."""
        key = secrets.token_hex(32)
        self.observed = Observed()
        self.settings = folder / "settings.json"
        self._mac = hmac.new(key.encode(), digestmod=hashlib.sha256)
        self._next = 0
        self._stop = threading.Event()
        fifo = str(folder / "report") if named else ""
        if named:
            os.mkfifo(fifo, 0o600)
            self._read = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
            self._write = -1
        else:
            self._read, self._write = os.pipe()
            os.set_blocking(self._read, False)
        self.settings.write_text(
            json.dumps(
                {
                    "key": key,
                    "fd": self._write,
                    "fifo": fifo,
                    "canary": "c" + secrets.token_hex(8),
                    "cwd_on_path": cwd_on_path,
                    "targets": targets,
                    "bytecode": str(folder / "pyc"),
                }
            ),
            encoding="utf-8",
        )
        self._thread = threading.Thread(target=self._pump, name="rage-probe", daemon=True)

    @property
    def pass_fds(self) -> tuple[int, ...]:
        """What the command has to inherit."""
        return (self._write,) if self._write >= 0 else ()

    def __enter__(self) -> Channel:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Read what is left and close; a survivor that holds the pipe is not waited for."""
        if self._write >= 0:
            os.close(self._write)
        self._stop.set()
        self._thread.join()
        os.close(self._read)

    def _pump(self) -> None:
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        pending = b""
        total = 0
        while True:
            stopping = self._stop.is_set()
            poll.poll(0 if stopping else _POLL_MS)
            try:
                chunk = os.read(self._read, 1 << 16)
            except BlockingIOError:
                chunk = b""
            if not chunk:
                if stopping:
                    break
                self._stop.wait(_POLL_MS / 1000)
                continue
            total += len(chunk)
            if total > MAX_BYTES:
                self.observed.truncated = True
                if stopping:
                    break  # something outlived the command and goes on writing
                continue
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._line(line)
            if len(pending) > _MAX_LINE:
                self.observed.forged, pending = True, b""
        if pending:
            self.observed.truncated = True

    def _line(self, line: bytes) -> None:
        """Believe a line only if it is the next one and carries the right MAC."""
        mac, _, body = line.partition(b" ")
        expected = self._mac.copy()
        expected.update(body)
        if not hmac.compare_digest(mac, expected.hexdigest().encode()):
            self.observed.forged = True
            return
        number, kind, data = json.loads(body)
        if number != self._next:
            self.observed.forged = True
            return
        self._next += 1
        self.observed.take(kind, data)


def _strings(value: object) -> list[str]:
    return [str(element) for element in value] if isinstance(value, list) else []
