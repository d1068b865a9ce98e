"""The reference says what the code has: it is made from it, and this is the comparison."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from rage_plugin import cli, commands
from rage_plugin.hookspecs import ExtensionSpec, HostSpec
from rage_plugin.profile import profile_reference
from rage_plugin.store.schema import VIEWS

from .pages import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text("utf-8")
HOOKS = {
    name: function
    for spec in (HostSpec, ExtensionSpec)
    for name, function in vars(spec).items()
    if name.startswith("rage_")
}
WHEN = ("Before ", "After ", "When ", "Whenever ")


def test_the_page_is_what_the_code_says() -> None:
    """F155: whoever changes a command, a key or a hook makes the page again."""
    done = subprocess.run(
        [sys.executable, "-m", "docs.make_reference", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_in_the_page_and_says_when_it_is_called(name: str) -> None:
    function: Callable[..., object] = HOOKS[name]
    told = " ".join((inspect.getdoc(function) or "").split())
    assert told.startswith(WHEN), f"{name}: begin its docstring with one of {WHEN}"
    section = REFERENCE.split(f"### {name}\n", 1)[1].split("\n#", 1)[0]
    assert told in section
    for parameter in inspect.signature(function).parameters:
        assert parameter == "self" or f"{parameter}: " in section


def test_every_command_and_option_is_in_the_page() -> None:
    for verb in commands.VERBS:
        assert f"`/rage {verb.usage}`" in REFERENCE
    for name, command in cli.rage.commands.items():
        section = REFERENCE.split(f"### rage {name}\n", 1)[1].split("\n#", 1)[0]
        for option in command.params:
            if isinstance(option, click.Option):
                assert all(f"`{o}`" in section for o in option.opts), (name, option.opts)


def test_every_profile_key_is_in_the_page_with_its_default() -> None:
    for row in profile_reference():
        line = next(x for x in REFERENCE.splitlines() if x.startswith(f"| `{row.key}` |"))
        assert row.default in line
        assert row.doc in line.replace("\\|", "|")


def test_every_view_is_in_the_page() -> None:
    assert set(re.findall(r"^\| `(v_\w+)`", REFERENCE, re.MULTILINE)) == set(VIEWS)
