"""One repository a module: its verdicts are cached, its files are reset for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .project import Project


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The repository that the tests of a module share."""
    return Project.make(tmp_path_factory.mktemp("größe und raum"))


@pytest.fixture
def project(shared: Project) -> Iterator[Project]:
    """The shared repository as it was committed."""
    yield shared
    shared.reset()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a repository of a test's own."""
    return tmp_path
