"""A real database in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rage_plugin.store import RunStore, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database of a test lies; the folder has a name that people really use."""
    return tmp_path / "my büro" / "rage" / "rage.db"


@pytest.fixture
def store(path: Path) -> Iterator[RunStore]:
    opened = open_store(path)
    yield opened
    opened.close()
