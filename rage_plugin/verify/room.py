"""The verify room: trees, policy, cells and matrix behind the one port that the loop knows.

Separate because it alone knows all of them; it decides nothing itself (`core/gates.py` does).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

import pluggy

from rage_plugin.core.config import CheckCommand, ProjectConfig
from rage_plugin.core.errors import Refused
from rage_plugin.core.gates import Facts, judge, one_line
from rage_plugin.core.judgement import Judgement, JudgeRequest, Outcome, Verdict
from rage_plugin.core.model import Base, Change, Verification
from rage_plugin.core.ports import Progress
from rage_plugin.core.testids import path_of

from .cell import Cells
from .cosmetic import cosmetic
from .detect import detect, nothing_detected
from .isolation import CouldNotRun, ladder, recover, swap
from .matrix import Matrix, Sides
from .policy import Policy
from .sections import SHARED
from .targets import valid_targets, validate_target
from .tree import Trees

_HARMLESS = (".coverage", ".DS_Store")
"""Ignored files that a person's own tools write and no check reads."""


class VerifyRoom:
    """Implements `core.ports.Verifier` for one work tree."""

    def __init__(
        self,
        root: Path,
        state: Path,
        config: ProjectConfig,
        extensions: pluggy.PluginManager,
    ) -> None:
        """`state` is the folder beside `rage.db`; `extensions` holds the report parsers."""
        self._trees = Trees(root, state)
        self._state = state
        self._config = config
        self._extensions = extensions
        self._progress: Progress = _silent

    def preflight(self) -> None:
        """`Refused` unless there is a command to check with; `CouldNotRun` without isolation."""
        self._recover()
        if not any(c.required for c in self.commands()):
            raise nothing_detected()
        for command in self.commands():
            unable = self._cells.unable(command) if command.required else ""
            if unable:
                raise Refused(
                    unable,
                    next="python3 -m venv .venv && .venv/bin/pip install pytest, and what it tests",
                )

    def commands(self) -> tuple[CheckCommand, ...]:
        """The profile's check commands, else the detected ones."""
        return self._policy.commands

    def check_targets(self, targets: Sequence[str]) -> None:
        """`Refused` for a target that is not a path or test id inside the workspace."""
        for target in targets:
            validate_target(self._trees.root, target)

    def open(self, run: str) -> Base:
        """Record tree, untracked files, ignored files and environment of now for a run."""
        self._recover()
        untracked = self._trees.untracked()
        tree = self._trees.snapshot(untracked)
        path = self._opened(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        seen = {"ignored": self._ignored(), "environment": self._environment()}
        path.write_text(json.dumps(seen, sort_keys=True), "utf-8")
        return Base(tree, self._head(), untracked)

    def snapshot(self, base: Base) -> str:
        """The work tree's tree now, without what was untracked at the base."""
        self.put_back()
        return self._trees.snapshot(base.untracked)

    def put_back(self) -> None:
        """Undo a swap that a kill left in the work tree; `CouldNotRun` where that is not possible.

        Before anybody looks at the work tree: what lies there is a check's view, not the work of
        an agent, and what is written on top of it would be undone with it.
        """
        if line := swap.recover(self._trees, self._state):
            self._progress(line)

    def changes(self, tree: str, other: str) -> tuple[Change, ...]:
        """What leads from one tree to the other."""
        return self._trees.changes(tree, other)

    def added(self, tree: str, other: str) -> str:
        """The lines that `other` adds to `tree`, text files only; `RageError` for too many."""
        return self._trees.added(tree, other)

    def size(self, tree: str, other: str) -> tuple[int, int]:
        """Files that differ between two trees, and lines added or removed in them."""
        return self._trees.size(tree, other)

    def restore(self, base: Base, tree: str) -> tuple[str, ...]:
        """Take the work tree from `tree` back to the base; the paths that were left alone."""
        return self._trees.restore(tree, base.tree)

    def cosmetic(self, tree: str, other: str) -> bool:
        """Whether two trees differ in comments and white space alone: no new attempt."""
        read = self._trees.read
        return all(
            change.status == "M"
            and cosmetic(change.path, read(tree, change.path), read(other, change.path))
            for change in self._trees.changes(tree, other)
        )

    def judge(self, request: JudgeRequest, progress: Progress) -> Judgement:
        """Run what is needed of the four cells and say what they prove."""
        self._progress = progress
        self._recover()
        changes = self._trees.changes(request.base.tree, request.tree)
        facts = self._facts(request, changes)
        if facts.tampered or facts.moved or (facts.unchanged and not facts.claim_no_change):
            return judge(facts, ())
        try:
            cells = self._cells
        except CouldNotRun as error:
            return _blocked(facts, error)
        facts = self._surroundings(request, facts)
        matrix = Matrix(cells, self._sides(request, changes, facts))
        facts, runs = matrix.collect(facts, self.commands())
        if self.snapshot(request.base) != request.tree:
            facts = replace(facts, moved=True)
        return judge(facts, runs)

    # --- facts about the paths -----------------------------------------------------------------

    def _facts(self, request: JudgeRequest, changes: Sequence[Change]) -> Facts:
        """What the paths say before anything is run."""
        policy, base, tree = self._policy, request.base.tree, request.tree
        before, after = partial(self._trees.read, base), partial(self._trees.read, tree)
        given, _ = valid_targets(self._trees.root, request.given)
        proposed, dropped = valid_targets(self._trees.root, request.proposed)
        if given:
            # A person's gate decides: a file that the agent meant to write and did not is no gate.
            there = self._places(tree)
            absent = tuple(t for t in proposed if path_of(t) not in there)
            proposed = tuple(t for t in proposed if t not in absent)
            dropped += tuple(f"{t}: the agent proposed it and did not write it" for t in absent)
        tampered = policy.tampered(changes, before, after, request.unseal, request.sealed)
        if len(given) < len(set(request.given)):
            # They were valid at intake: a link was put in their way since.
            tampered += tuple(t for t in request.given if t not in given)
        return Facts(
            base_tree=base,
            tree=tree,
            given=given,
            proposed=proposed,
            accept=self._config.verification.accept,
            tampered=tampered,
            reasons=policy.weakened(changes, before, after, request.unseal),
            warnings=dropped,
            lifted=policy.lifted(changes, request.unseal),
            claim_no_change=request.claim_no_change,
            moved=self.snapshot(request.base) != tree,
        )

    def _surroundings(self, request: JudgeRequest, facts: Facts) -> Facts:
        """What no tree holds and a verdict may still rest on: ignored files, the environment."""
        try:
            seen = json.loads(self._opened(request.run).read_text("utf-8"))
        except (OSError, ValueError):
            reason = "What the environment was when the run began is not known any more"
            return replace(facts, reasons=(*facts.reasons, reason))
        reasons = list(facts.reasons)
        before = seen["ignored"]
        changed = sorted(p for p, mark in self._ignored().items() if before.get(p) != mark)
        if changed:
            names = ", ".join(changed[:3])
            reasons.append(f"Files that git ignores are new or changed: {names}")
        if seen["environment"] != self._environment():
            reasons.append("The environment changed since the run began")
        return replace(facts, reasons=tuple(reasons))

    def _sides(self, request: JudgeRequest, changes: Sequence[Change], facts: Facts) -> Sides:
        """Compose the trees of the four runs."""
        trees, policy, base, tree = self._trees, self._policy, request.base.tree, request.tree
        ours = [c for c in changes if policy.test_side(c.path)]
        lifted = {c.path: tree for c in changes if c.path in facts.lifted}
        # Base's configuration. A shared file whose runner's sections are the same is taken as it
        # is now: so this candidate is the next item's base, with all its verdicts.
        support = {p: tree for p in lifted if not policy.is_test(p)}
        support |= {c.path: tree for c in changes if PurePosixPath(c.path).name in SHARED}
        new = {c.path: tree for c in ours if c.status != "D"}
        back = {c.path: base for c in ours if c.path not in lifted}
        return Sides(
            base=base,
            red=trees.compose(base, new | {p: tree for p in lifted if not policy.product(p)}),
            regression=trees.compose(tree, back) if back else tree,
            green=tree,
            config=trees.compose(base, support) if support else base,
            current=tree,
            hidden=request.base.untracked,
            new_tests=tuple(p for p in new if policy.is_test(p)),
            at_base=self._places(base).__contains__,
        )

    def _places(self, tree: str) -> frozenset[str]:
        """Every file and folder of a tree."""
        files = frozenset(self._trees.paths(tree))
        return files | {str(parent) for path in files for parent in PurePosixPath(path).parents}

    # --- parts ---------------------------------------------------------------------------------

    @cached_property
    def _policy(self) -> Policy:
        commands = self._config.verification.commands
        if not commands:
            paths = (*self._trees.paths(self._trees.head_tree()), *self._trees.untracked())
            commands = detect(self._trees.root, paths)
        config, hooks = self._config, self._trees.place.hooks_in_tree()
        if hooks:
            sealed = (*config.verification.sealed, f"{hooks}/**")
            config = replace(config, verification=replace(config.verification, sealed=sealed))
        return Policy(config, commands)

    @cached_property
    def _cells(self) -> Cells:
        verification = self._config.verification
        isolation = ladder(self._trees, self._state, verification.isolation)
        return Cells(
            self._trees,
            self._state,
            verification,
            isolation,
            self._parse_report,
            self._tell,
        )

    def _parse_report(self, kind: str, path: Path) -> Mapping[str, Outcome] | None:
        found = self._extensions.hook.rage_parse_report(kind=kind, path=str(path))
        return None if found is None else {test: Outcome(said) for test, said in found.items()}

    def _tell(self, line: str) -> None:
        # The cells outlive one judgement; who listens is another each time.
        self._progress(line)

    def _environment(self) -> dict[str, str]:
        return {c.name: self._cells.environment_hash(c) for c in self.commands()}

    def _ignored(self) -> dict[str, str]:
        found = self._trees.ignored_fingerprint()
        return {p: mark for p, mark in found.items() if PurePosixPath(p).name not in _HARMLESS}

    def _head(self) -> str:
        return self._trees.place.head()

    def _opened(self, run: str) -> Path:
        if not run or "/" in run or run.startswith("."):
            raise Refused(f"{run!r} is no run's id")
        return self._state / "opened" / f"{run}.json"

    def _recover(self) -> None:
        line = recover(self._trees, self._state)
        if line:
            self._progress(line)


def _blocked(facts: Facts, error: CouldNotRun) -> Judgement:
    return Judgement(
        verification=Verification.FAIL,
        verdict=Verdict.COULD_NOT_RUN,
        base_tree=facts.base_tree,
        tree=facts.tree,
        message=one_line(error.what),
        reasons=(error.line(),),
        blocked=True,
    )


def _silent(_line: str) -> None:
    """Until somebody listens."""
