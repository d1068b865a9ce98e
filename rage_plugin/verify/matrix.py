"""The four runs: which are made, in which order, and when there is nothing more to learn.

    |                     | base's code                  | candidate's code                        |
    |---------------------|------------------------------|-----------------------------------------|
    | base's tests        | base: what passed and failed | regression: what passed still passes    |
    | candidate's tests   | red: the new tests fail      | green: they pass, and so does the whole |

Each is a git tree; where two trees coincide the cache makes them one run. Cheap comes first: the
gate alone, then the base, then the base's tests on the candidate, then the candidate as it is.
A red fails twice and passes twice, and what is in doubt is run again on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rage_plugin.core.compare import Runs, failing
from rage_plugin.core.config import CheckCommand
from rage_plugin.core.gates import Facts, find
from rage_plugin.core.judgement import Cell, Outcome, Verdict
from rage_plugin.core.testids import MISSING, covered, covers, ids, narrow, path_of, status

from .pytest_command import recognise


class Runner(Protocol):
    """What the matrix needs of `Cells`."""

    def run(
        self,
        name: str,
        command: CheckCommand,
        tree: str,
        *,
        current: str,
        hidden: Sequence[str],
        config_tree: str,
        targets: Sequence[str] = (),
        repeat: int = 0,
    ) -> Cell: ...


@dataclass(frozen=True, slots=True)
class Sides:
    """The four trees of one judgement, and what every run of it shares."""

    base: str
    red: str
    regression: str
    green: str
    config: str
    """Where runner configuration comes from on every tree but the base, which has its own."""
    current: str
    """What the work tree holds."""
    hidden: tuple[str, ...] = ()
    new_tests: tuple[str, ...] = ()
    """Test files that the candidate added or changed."""
    at_base: Callable[[str], bool] = lambda _path: True
    """Whether the base has a file or folder of this path."""


def takes_targets(command: CheckCommand) -> bool:
    """Whether a command can be asked for single tests."""
    named = any("{targets}" in element for element in command.command)
    return named or recognise(command.command) is not None


def per_test(command: CheckCommand) -> bool:
    """Whether a command reports test by test."""
    return command.report != "none" or recognise(command.command) is not None


def own_ids(command: CheckCommand) -> bool:
    """Whether a runner names tests in a way of its own, so that a path says nothing about ids."""
    return per_test(command) and recognise(command.command) is None


def aim(commands: Sequence[CheckCommand], targets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Which targets each command is asked for, by the command's name.

    A target goes to the commands with a per-test report, else to those that take targets, and of
    these to the ones whose folder holds it.
    """
    required = [c for c in commands if c.required]
    able = [c for c in required if per_test(c)] or [c for c in required if takes_targets(c)]
    aimed: dict[str, list[str]] = {c.name: [] for c in commands}
    for target in targets:
        inside = [c for c in able if c.cwd == "." or covers(c.cwd.rstrip("/"), f"{target}/")]
        for command in inside:
            aimed[command.name].append(target)
    return {name: tuple(found) for name, found in aimed.items()}


class Matrix:
    """Makes the runs of one judgement, as few as the answer needs."""

    def __init__(self, cells: Runner, sides: Sides) -> None:
        self._cells = cells
        self._sides = sides

    def collect(
        self, facts: Facts, commands: Sequence[CheckCommand]
    ) -> tuple[Facts, tuple[Runs, ...]]:
        """Run what is needed; the facts may come back with more reasons than they had."""
        given, proposed = aim(commands, facts.given), aim(commands, facts.proposed)
        pairs = [
            (c, Runs(c.name, c.required, per_test(c), given[c.name], proposed[c.name]))
            for c in commands
        ]
        every = tuple(r for _, r in pairs)
        facts = self._gates(facts, pairs)
        for command, runs in pairs:
            if any(c.verdict is Verdict.COULD_NOT_RUN for c in runs.target):
                # The base tells whether that is the agent's fault or the environment's.
                runs.base.append(self._run("base", command, self._sides.base))
        if facts.unchanged or any(find(facts, r).settled for r in every):
            return facts, every
        for command, runs in pairs:
            if runs.required:
                self._whole(facts, command, runs)
                if find(facts, runs).settled:
                    return facts, every
        if facts.accept == "red_green" and not any(find(facts, r).given_red for r in every):
            for command, runs in pairs:
                if runs.required:
                    self._agents_tests(command, runs)
        for command, runs in pairs:
            if not runs.required:
                runs.green.append(self._run("green", command, self._sides.green))
        return facts, every

    def _gates(self, facts: Facts, pairs: Sequence[tuple[CheckCommand, Runs]]) -> Facts:
        """The gates alone on the candidate, once more with hidden files where that could help."""
        unaimed = [t for t in facts.given if not any(t in r.given for _, r in pairs)]
        if unaimed:
            reason = f"No command of the profile can run the gate {unaimed[0]}"
            facts = replace(facts, reasons=(*facts.reasons, reason))
        for command, runs in pairs:
            if not runs.targets:
                continue
            if own_ids(command):
                self._ask_for_ids(command, runs)
                continue
            runs.target.append(self._run("target", command, self._sides.green, runs.targets))
            helpless = runs.target[0].verdict is Verdict.TIMEOUT or not self._sides.hidden
            if helpless or not find(facts, runs).settled:
                continue
            seen = self._run("target", command, self._sides.green, runs.targets, visible=True)
            wanted = runs.targets if runs.per_test else ()
            if seen.verdict is Verdict.PASS and not failing(seen, wanted):
                names = ", ".join(self._sides.hidden[:3])
                reason = f"The gate passes only with untracked files that a commit lacks: {names}"
                facts = replace(facts, reasons=(*facts.reasons, reason))
                runs.given = runs.proposed = ()
                runs.target.clear()
        return facts

    def _ask_for_ids(self, command: CheckCommand, runs: Runs) -> None:
        """Where a path says nothing about ids, a run of the target tells what it stands for."""
        wanted = runs.given or runs.proposed
        cell = self._run("target", command, self._sides.green, wanted)
        runs.target.append(cell)
        found = tuple(sorted(ids([cell]))) or wanted
        runs.given, runs.proposed = (found, ()) if runs.given else ((), found)

    def _whole(self, facts: Facts, command: CheckCommand, runs: Runs) -> None:
        """Base, regression and green of one command, until something settles it."""
        sides = self._sides
        runs.base.append(self._run("base", command, sides.base))
        if find(facts, runs).settled:
            return
        old = tuple(t for t in runs.targets if sides.at_base(path_of(t)))
        for name, tree, cells in (
            ("regression", sides.regression, runs.regression),
            ("green", sides.green, runs.green),
        ):
            cells.append(self._run(name, command, tree))
            self._doubts(facts, command, runs, tree, cells)
            if find(facts, runs).settled:
                return
        if runs.per_test:
            self._second_look(command, runs, old)
        elif takes_targets(command) and old:
            self._twice("base", command, sides.base, old, runs.base)
            runs.regression.append(self._run("regression", command, sides.regression, old))
            runs.green.append(self._run("green", command, sides.green, old, repeat=1))

    def _doubts(
        self, facts: Facts, command: CheckCommand, runs: Runs, tree: str, cells: list[Cell]
    ) -> None:
        """What passed at base and does not here is run again on both, before it is believed."""
        doubtful = find(facts, runs).doubtful
        if not doubtful:
            return
        name = "regression" if cells is runs.regression else "green"
        if not runs.per_test:
            runs.again.append(self._run("base", command, self._sides.base, repeat=1))
            runs.again.append(self._run(name, command, tree, repeat=1))
            return
        for targets in (_names(command, doubtful), ()):
            runs.base.append(self._run("base", command, self._sides.base, targets, repeat=1))
            cells.append(self._run(name, command, tree, targets, repeat=1))
            if not targets or not set(doubtful) & set(find(facts, runs).unstable):
                return
            # Alone they did something else: by chance, or because of what runs before them. Only
            # the whole run once more, on both sides, tells the two apart.
            runs.base.pop()
            cells.pop()

    def _second_look(self, command: CheckCommand, runs: Runs, old: Sequence[str]) -> None:
        """What was red at base fails a second time; what is green passes a second time."""
        sides = self._sides
        whole = runs.base[0]
        outside = [t for t in old if not covered([t], ids([whole])) and not _broken(whole, t)]
        if outside:
            self._twice("base", command, sides.base, outside, runs.base)
            runs.regression.append(self._run("regression", command, sides.regression, outside))
            runs.green.append(self._run("green", command, sides.green, outside, repeat=1))
        fixed = [
            t
            for t in sorted(ids(runs.regression[:1]))
            if status(runs.regression[0], t) is Outcome.PASS
            and status(whole, t) in (Outcome.FAIL, Outcome.ERROR)
            and (not runs.given or covered(runs.given, [t]))
        ]
        if fixed:
            targets = _names(command, fixed)
            runs.base.append(self._run("base", command, sides.base, targets, repeat=1))
            # A run of the target is a run of its own only where the command takes targets.
            if not (takes_targets(command) and covered(runs.targets, fixed)):
                runs.green.append(self._run("green", command, sides.green, targets, repeat=1))

    def _agents_tests(self, command: CheckCommand, runs: Runs) -> None:
        """The candidate's tests on the base's code, where no given check was red."""
        sides = self._sides
        if not sides.new_tests or not (runs.per_test or takes_targets(command)):
            return
        files = aim([command], sides.new_tests)[command.name]
        if not files:
            return
        runs.red.append(self._run("red", command, sides.red, files))
        if runs.red[0].verdict is Verdict.PASS:
            return
        runs.red.append(self._run("red", command, sides.red, files, repeat=1))
        runs.green.append(self._run("green", command, sides.green, files, repeat=1))

    def _twice(
        self, name: str, command: CheckCommand, tree: str, targets: Sequence[str], into: list[Cell]
    ) -> None:
        into += [self._run(name, command, tree, targets, repeat=n) for n in (0, 1)]

    def _run(
        self,
        name: str,
        command: CheckCommand,
        tree: str,
        targets: Sequence[str] = (),
        *,
        repeat: int = 0,
        visible: bool = False,
    ) -> Cell:
        return self._cells.run(
            name,
            command,
            tree,
            current=self._sides.current,
            hidden=() if visible else self._sides.hidden,
            config_tree=tree if tree == self._sides.base else self._sides.config,
            targets=tuple(targets) if takes_targets(command) else (),
            repeat=repeat,
        )


def _names(command: CheckCommand, tests: Sequence[str]) -> tuple[str, ...]:
    """Targets for a re-run of these ids; nothing (the whole) where ids are no targets."""
    return () if own_ids(command) else narrow(tests)


def _broken(cell: Cell, target: str) -> bool:
    return cell.broken.get(path_of(target), MISSING) != MISSING
