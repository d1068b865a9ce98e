"""Which paths are tests, test support, sealed or protected, and what changing one means.

Pure over paths and contents: the room hands in what git says. A person's `unseal` lifts a seal; an
agent's word never does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from rage_plugin.core.config import CheckCommand, ProjectConfig
from rage_plugin.core.model import Change

from .globs import matches
from .sections import SHARED, same_sections

Read = Callable[[str], bytes | None]
"""Content of a path in one tree; None if it has no such file."""

TEST_FILE = re.compile(
    r"""(?x) (?: test_[^/]*\.(?:py|rb) | [^/]*_test\.(?:py|rb|go|exs|dart) | tests\.py
    | [^/]*[._-](?:test|spec)\.[cm]?[jt]sx? | [^/]*_spec\.rb
    | (?:Test[^/]* | [^/]*Tests?) \.(?:java|kt|cs|php|swift) )"""
)
TEST_FOLDERS = frozenset({"test", "tests", "__tests__"})
ROOT_TEST_FOLDERS = frozenset({"spec", "specs"})
"""Folders of tests at the root alone: deeper, the word is as often a part of the product."""
SUPPORT = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "noxfile.py",
    ".coveragerc",
    "sitecustomize.*",
    "usercustomize.*",
    "*.pth",
)
"""Files that change how tests run wherever they lie, whether they exist at base or not."""
BACKLOG = ("backlog/**/*.md", "issues/**/*.md", "docs/backlog/**/*.md", "/BACKLOG.md", "/TODO.md")
PROFILES = ("/rage.yaml", "/rage.yml", "/rage.json", "/.rage.yaml")
_SHADOWS = re.compile(
    r"(?:src/)?(?:_?pytest\w*|pluggy|iniconfig|xdist|coverage|hypothesis)(?:\.\w[^/]*|/__init__\.[^/]+)"
)
_IMPLIED = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "rake": ("Rakefile",),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "npx": ("package.json",),
}


@dataclass(frozen=True, slots=True)
class Policy:
    """The project's rules about paths, resolved from its profile and commands."""

    config: ProjectConfig
    commands: tuple[CheckCommand, ...]

    def is_test(self, path: str) -> bool:
        """Whether the path is a file of tests, by the profile's globs or the usual names."""
        globs = self.config.verification.tests
        if globs:
            return matches(path, globs) and not matches(path, SUPPORT)
        return TEST_FILE.fullmatch(PurePosixPath(path).name) is not None

    def beside_tests(self, path: str) -> bool:
        """Whether the path lies in a folder of tests: data, helpers and scripts of the tests."""
        folders = PurePosixPath(path).parts[:-1]
        return (
            any(f in TEST_FOLDERS for f in folders)
            or bool(ROOT_TEST_FOLDERS.intersection(folders[:1]))
            or any(path.startswith(f"{r}/") for r in self._test_roots())
        )

    def test_side(self, path: str) -> bool:
        """Whether a changed path belongs to the tests' side of the four runs."""
        return self.is_test(path) or self.beside_tests(path)

    def sealed(self, changes: Sequence[Change], unseal: Sequence[str] = ()) -> tuple[str, ...]:
        """The changed paths that are sealed or protected as whole files, sorted."""
        lifted = (*self.config.verification.unseal, *unseal)
        return tuple(
            sorted(
                c.path
                for c in changes
                if self._protected(c.path) or (self._is_sealed(c) and not matches(c.path, lifted))
            )
        )

    def tampered(
        self,
        changes: Sequence[Change],
        before: Read,
        after: Read,
        unseal: Sequence[str] = (),
        item: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """What `sealed` says, the item's own source, and the sealed sections of shared files."""
        lifted = (*self.config.verification.unseal, *unseal)
        bad = {c.path for c in changes if c.path in item and not matches(c.path, lifted)}
        for change in changes:
            name = PurePosixPath(change.path).name
            if name not in SHARED or matches(change.path, lifted):
                continue
            if not same_sections(name, before(change.path), after(change.path), self._tools()):
                bad.add(change.path)
        return tuple(sorted(bad.union(self.sealed(changes, unseal))))

    def lifted(self, changes: Sequence[Change], unseal: Sequence[str]) -> frozenset[str]:
        """Changed paths that a person unsealed: they count in the candidate's version."""
        globs = (*self.config.verification.unseal, *unseal)
        return frozenset(c.path for c in changes if matches(c.path, globs))

    def product(self, path: str) -> bool:
        """Whether a sealed path is code of the product that a check command happens to name."""
        return path in self._named() and not (self.test_side(path) or matches(path, SUPPORT))

    def weakened(
        self, changes: Sequence[Change], before: Read, after: Read, unseal: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """A sentence for each existing test file that lost or changed a line; adding is free."""
        lifted = (*self.config.verification.unseal, *unseal)
        reasons = []
        for change in changes:
            path = change.path
            if change.status == "A" or not self.is_test(path) or matches(path, lifted):
                continue
            old, new = before(path), after(path)
            if new is None:
                reasons.append(f"{path}: an existing test file was deleted")
            elif change.status == "T" or not only_adds(old or b"", new):
                word = "changed" if new.strip() else "emptied"
                reasons.append(f"{path}: existing tests were {word}, a person has to decide")
        return tuple(reasons)

    def _is_sealed(self, change: Change) -> bool:
        path = change.path
        name = PurePosixPath(path).name
        verification = self.config.verification
        by_name = (*SUPPORT, *PROFILES, *BACKLOG, *verification.sealed, *self._sources())
        if matches(path, by_name) or path == self.config.path or path in self._named():
            return True
        if name in SHARED:
            return False
        if _tool_file(name, self._tools()):
            return True
        if change.status == "A":
            return _SHADOWS.fullmatch(path) is not None
        return self.beside_tests(path) and not self.is_test(path)

    @staticmethod
    def _protected(path: str) -> bool:
        return ".git" in (p.lower() for p in path.split("/"))

    def _sources(self) -> tuple[str, ...]:
        """The backlog's files; of a folder only what items are written in."""
        return tuple(
            s if PurePosixPath(s).suffix else f"{s.rstrip('/')}/**/*.md"
            for s in self.config.sources
            if "://" not in s
        )

    def _words(self) -> list[tuple[str, str]]:
        """(cwd, word) of every command line; a shell's `-c` text is split into its words."""
        lines = [(c.cwd, c.command) for c in self.commands]
        lines.append((".", self.config.verification.prepare))
        return [
            (cwd, word.strip("'\""))
            for cwd, argv in lines
            for element in argv
            for word in re.split(r"[\s;&|=]+", element)
            if word
        ]

    def _named(self) -> frozenset[str]:
        """Paths that a command line names, e.g. `scripts/check.sh`, and what its tool reads."""
        found = set()
        for cwd, word in self._words():
            for path in (word, *_IMPLIED.get(PurePosixPath(word).name, ())):
                joined = PurePosixPath(cwd, path)
                if not joined.is_absolute() and "{" not in path:
                    found.add(str(joined))
        return frozenset(
            p for p in found if not self.is_test(p) and p.rsplit("/")[-1] not in SHARED
        )

    def _tools(self) -> frozenset[str]:
        names = {PurePosixPath(word).name for _, word in self._words()}
        return frozenset(n for n in names if re.fullmatch(r"[a-z][\w-]+", n))

    def _test_roots(self) -> tuple[str, ...]:
        """The fixed folders that the profile's test globs begin with."""
        roots = (re.split(r"[*?\[]", g)[0] for g in self.config.verification.tests)
        return tuple(r.rsplit("/", 1)[0].removeprefix("./") for r in roots if "/" in r)


def only_adds(before: bytes, after: bytes) -> bool:
    """Whether every line of `before` is still there, in order."""
    rest = iter(after.splitlines())
    return all(line in rest for line in before.splitlines())


def _tool_file(name: str, tools: frozenset[str]) -> bool:
    """A configuration file of a tool that a command runs: `ruff.toml`, `.mypy.ini`, `.eslintrc`."""
    stem = name.removeprefix(".")
    return any(
        stem in (f"{t}.toml", f"{t}.ini", f"{t}.cfg", f"{t}rc")
        or stem.startswith((f"{t}rc.", f"{t}.config."))
        or name == f".{t}"
        for t in tools
    )
