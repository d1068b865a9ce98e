"""A workspace written from a mapping, and the room over it with the built-in source registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pluggy
import pytest

from rage_plugin import hookspecs
from rage_plugin.backlog import BacklogRoom, MarkdownPlugin

Tree = Mapping[str, "str | bytes"]
MakeRoom = Callable[..., BacklogRoom]


def write_tree(root: Path, tree: Tree) -> None:
    """Write files byte for byte: no newline is translated."""
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder whose own path holds a space and an umlaut."""
    root = tmp_path / "ein Größe"
    root.mkdir()
    return root


@pytest.fixture
def make_room(workspace: Path) -> MakeRoom:
    """Write a tree, get the room over it; plugins are registered after the built-in one."""

    def make(tree: Tree, *sources: str, plugins: tuple[object, ...] = ()) -> BacklogRoom:
        write_tree(workspace, tree)
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs.ExtensionSpec)
        for plugin in (MarkdownPlugin(), *plugins):
            manager.register(plugin)
        return BacklogRoom(workspace, sources, manager)

    return make
