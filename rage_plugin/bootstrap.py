"""Composition root: from a folder to the rooms that work on its repository.

Imported only when a command was typed or a run is active; every heavy library comes in here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pluggy

from . import control, telemetry, tokens
from . import kill as kill_switch
from .backlog import BacklogRoom, MarkdownPlugin
from .core.config import ProjectConfig
from .core.errors import RageError
from .core.model import RunState
from .deliver import DeliverRoom, JsonlSink
from .flag import active_flag
from .hookspecs import PROJECT, ExtensionSpec
from .kill_command import KILLED
from .packet import PacketRoom, known_values
from .parts import Parts
from .profile import load_profile
from .repository import Repository
from .review import WorkspaceSurvey
from .store import RunStore, open_store
from .telemetry import Accounting
from .verify import JUnitPlugin, VerifyRoom


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything that is open for one repository."""

    parts: Parts
    store: RunStore
    accounting: Accounting
    state: Path

    def context(self) -> tuple[str, dict[str, object]]:
        """What RAGE added to the model's context: as lines and as JSON."""
        ledger = self.store.ledger
        problems = [p for s in ledger.sessions() for p in ledger.verify(s)]
        account = telemetry.account(ledger.summary(), problems)
        return telemetry.lines(account), telemetry.as_json(account)

    def audit(self, run: str, head: str) -> tuple[str, dict[str, object]]:
        """Whether anything that was recorded was altered, moved or cut off."""
        text, data, _ = audited(self.state, run, head)
        return text, data

    def settle(self) -> None:
        """Say in the run's state that it was killed, where that could not be said at once."""
        run = self.store.active_run(self.parts.workspace)
        if run is not None and kill_switch.ordered(self.state, run.id):
            control.stop(self.parts, KILLED)
            kill_switch.forget(self.state, run.id)

    def reap(self) -> None:
        """End what a driver that was killed itself left behind: it would work beside the next."""
        kill_switch.reap(self.state)

    def kill(self) -> RunState:
        """End the run and what it started, from the chat that drives it; the chat goes on."""
        run = control.current(self.parts).id
        kill_switch.end_processes(self.state, run)
        return control.stop(self.parts, KILLED)

    def close(self) -> None:
        """Close the database."""
        self.store.close()


class WallClock:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only ever pass, the machine's sleep not counted."""
        return time.monotonic()


def open_workspace(folder: str, config: ProjectConfig | None = None) -> Workspace:
    """Open the rooms of the repository that a folder lies in.

    A `config` stands in for the repository's profile, which is then not read. Raises `RageError`
    without a repository, with an unreadable profile or a damaged database.
    """
    repository = Repository(Path(folder))
    root = repository.root  # asked first: without files to work on nothing is made
    state = state_folder(repository)
    config = config or load_profile(root)
    extensions = extension_manager()
    store = open_store(state / "rage.db")
    count, exact = tokens.counter()
    verifier = VerifyRoom(root, state, config, extensions)
    with suppress(RageError):  # whoever needs the work tree is told; a person's word is not held up
        verifier.put_back()
    parts = Parts(
        workspace=str(repository.common_dir),
        root=str(root),
        config=config,
        store=store,
        backlog=BacklogRoom(root, config.sources, extensions),
        verifier=verifier,
        deliver=DeliverRoom(root, state, config.git),
        packets=PacketRoom(config.packet, known=known_values(os.environ)),
        survey=WorkspaceSurvey(root),
        clock=WallClock(),
        sink=_sinks(extensions, state),
    )
    room = Workspace(parts, store, Accounting(store.ledger, count, exact), state)
    room.settle()
    return room


def audit(folder: str, run: str, head: str) -> tuple[str, dict[str, object], bool]:
    """`rage audit verify`: words for a person, the same as JSON, and whether all of it holds.

    It opens no workspace, since a database that cannot be opened is what it must be able to tell.
    """
    return audited(state_folder(Repository(Path(folder))), run, head)


def audited(state: Path, run: str, head: str) -> tuple[str, dict[str, object], bool]:
    """The audit of a state folder."""
    from .audit_command import verify  # noqa: PLC0415

    text, data = verify(state / "rage.db", run or None, head or None)
    return text, data, not data["problems"]


def state_folder(repository: Repository) -> Path:
    """`<git common dir>/rage`, where no host's file listing and no `git clean` reaches."""
    folder = repository.common_dir / "rage"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RageError(
            f"{folder} cannot be written: {error.strerror}", next="check its permissions"
        ) from error
    return folder


def known_state(folder: str) -> Path | None:
    """The state folder of a repository in which RAGE ran before; nothing is made or opened."""
    try:
        state = Repository(Path(folder)).common_dir / "rage"
    except RageError:
        return None
    return state if (state / "rage.db").is_file() else None


def extension_manager() -> pluggy.PluginManager:
    """Built-in sources, parsers and sinks, registered like a third party's, then the others."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExtensionSpec)
    for plugin in (MarkdownPlugin(), JUnitPlugin(), JsonlSink()):
        manager.register(plugin)
    manager.load_setuptools_entrypoints("rage")
    return manager


def _sinks(manager: pluggy.PluginManager, state: Path) -> Callable[[RunState, str], None]:
    def tell(run: RunState, event: str) -> None:
        data: Mapping[str, object] = {
            "run": run.run.id,
            "target": run.run.target,
            "status": str(run.run.status),
            "item": run.run.current_item or "",
            "detail": run.run.pause_detail,
            "state_folder": str(state),
        }
        try:
            manager.hook.rage_sink(run=data, event=event)
        except Exception as error:  # noqa: BLE001 - a sink is never a reason to stop
            log_line(state, f"a sink failed on {event}: {error!r}")

    return tell


def record_refusal(folder: str, what: str) -> None:
    """Note an attempt that was refused, where a run is there to note it on."""
    room = open_workspace(folder)
    try:
        run = room.store.active_run(room.parts.workspace)
        if run is not None:
            now = room.parts.clock.now()
            room.store.observe(run.id, run.current_item or "", "refused", {"what": what}, now)
    finally:
        room.close()


# --- faults --------------------------------------------------------------------------------------


def log_fault(folder: str, text: str) -> str:
    """Keep a traceback beside the state, else in the user's state folder; the log's path."""
    try:
        state = state_folder(Repository(Path(folder)))
    except RageError:
        state = Path(active_flag()).parent
        with suppress(OSError):
            state.mkdir(parents=True, exist_ok=True)
    return log_line(state, text)


def log_line(state: Path, text: str) -> str:
    """Append to the log of a state folder; the log's path."""
    path = state / "rage.log"
    with suppress(OSError), path.open("a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {text.rstrip()}\n")
    return str(path)
