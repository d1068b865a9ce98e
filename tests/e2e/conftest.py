"""A fresh project for each test, in a path that holds a space and an umlaut."""

from __future__ import annotations

from pathlib import Path

import pytest

from .project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "mein projekt ü" / "calc", tmp_path / "home")
