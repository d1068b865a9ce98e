"""The hosts that `rage run` and `rage chat` can drive, by the entry-point group `rage.hosts`.

Separate because somebody else's code begins here: what it raises is told in one line as the fault
of its distribution. RAGE's own hosts are found in the same way, and their faults are RAGE's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points

from .core.errors import RageError, UsageError

GROUP = "rage.hosts"
OURS = "rage-plugin"
"""The distribution whose faults are RAGE's own."""


def find(name: str) -> EntryPoint:
    """A registered host; `UsageError` with the registered ones where there is none."""
    found = {e.name: e for e in entry_points(group=GROUP)}
    if name not in found:
        raise UsageError(f"There is no host {name!r}; installed: {', '.join(sorted(found))}")
    return found[name]


class Driven:
    """A host of some distribution; `RageError` instead of anything that its code raises."""

    def __init__(
        self, entry: EntryPoint, workspace: str, model: str, *, with_rage: bool = True
    ) -> None:
        self._entry = entry
        self._workspace = workspace
        with self._blamed():
            self._host = entry.load()(workspace, model, with_rage=with_rage)

    def run(self, target: str, options: list[str], as_json: bool) -> int:
        """Work on one target without a person; the exit code."""
        with self._blamed():
            return _exit_code("run", self._host.run(target, options, as_json=as_json))

    def chat(self) -> int:
        """Read a person's lines until there are no more; the exit code."""
        with self._blamed():
            return _exit_code("chat", self._host.chat())

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        dist = self._entry.dist
        try:
            yield
        except (RageError, BrokenPipeError):
            raise
        except Exception as error:
            if dist is not None and dist.name == OURS:
                raise
            import traceback  # noqa: PLC0415

            from .bootstrap import log_fault  # noqa: PLC0415

            log = log_fault(self._workspace, traceback.format_exc())
            of = f"{dist.name} {dist.version}" if dist is not None else self._entry.value
            said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise RageError(
                f"The host {self._entry.name} of {of} failed: {said}",
                kept=f"Its traceback is in {log}",
                next="rage status",
            ) from error


def _exit_code(method: str, code: object) -> int:
    """None would be taken for 0, which says that the run is done."""
    if type(code) is not int:
        raise TypeError(f"{method} returned {code!r:.40} and no exit code")
    return code
