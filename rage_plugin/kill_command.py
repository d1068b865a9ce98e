"""`rage kill` as a person types it: first the processes, then the run's state.

The database comes last, since it may be locked or damaged and nobody waits for it before the
processes are gone; what opens it is imported no sooner.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from . import kill
from .core.errors import RageError, Refused
from .repository import Repository

KILLED = "A person killed the run"


@dataclass(frozen=True, slots=True)
class AtOnce:
    """What was ended without a look at the database."""

    state: Path
    run: str
    """Empty where no driver was named."""
    killed: kill.Killed
    problem: str = ""


def at_once(folder: str) -> AtOnce:
    """End the processes of the run that is driven in a workspace (F045)."""
    state = Repository(Path(folder)).common_dir / "rage"
    found = kill.driver(state)
    if found is None:
        return AtOnce(state, "", kill.Killed("none"))
    problem = ""
    try:
        kill.order(state, found.run)
    except RageError as error:
        problem = error.line()
    return AtOnce(state, found.run, kill.end_processes(state, found.run), problem)


def settle(folder: str, ended: AtOnce) -> tuple[str, dict[str, object], bool]:
    """Say in the run's state that it is over: words, the same as JSON, and whether all is gone."""
    from . import bootstrap, control  # noqa: PLC0415
    from .core.config import ProjectConfig  # noqa: PLC0415
    from .flag import lower_flag  # noqa: PLC0415

    run, killed, problem = ended.run, ended.killed, ended.problem
    try:
        room = bootstrap.open_workspace(folder, ProjectConfig())
        try:
            current = room.store.active_run(room.parts.workspace)
            if current is not None:
                run = current.id
                if killed.driver == "none":  # no file names a driver, so go by the run itself
                    killed = kill.end(kill.Driver(run, current.holder, own_process=False))
                control.stop(room.parts, KILLED)
            with suppress(RageError):
                lower_flag(run)
        finally:
            room.close()
    except RageError as error:
        if not ended.run:
            raise
        problem = error.line()
    if not run:
        raise Refused(control.NO_RUN, next="rage start TARGET")
    told = replace(ended, run=run, killed=killed, problem=problem)
    return _words(told), _data(told), not killed.survivors and killed.driver != "unknown"


def _words(ended: AtOnce) -> str:
    killed, count = ended.killed, len(ended.killed.ended)
    many = "process" if count == 1 else "processes"
    said = [f"Run {ended.run} is killed: {count} {many} ended in {killed.seconds:.1f} s"]
    if killed.driver == "unknown":
        said.append("Its driver is on another machine or in a container: end it there")
    if killed.survivors:
        said.append(f"These could not be ended: {', '.join(map(str, killed.survivors))}")
    if ended.problem:
        said.append(f"Its state does not say so yet, and it goes on nowhere: {ended.problem}")
    return "\n".join(said)


def _data(ended: AtOnce) -> dict[str, object]:
    return {"run": ended.run, **asdict(ended.killed), "problem": ended.problem}
