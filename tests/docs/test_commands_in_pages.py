"""Every page against the product: its shell lines run, its links lead somewhere, its names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from rage_plugin import cli, commands
from rage_plugin.hookspecs import ExtensionSpec, HostSpec
from rage_plugin.profile import parse_profile, profile_reference

from ..e2e.project import ENVIRONMENT, FIX, FIXED, Project, reply
from .pages import EXTRA, PAGES, ROOT, Block, anchors, blocks, code_words, links, name

NOT_RUN = {
    r"git clone\b": "needs the address of a repository",
    r"cd\b": "goes with a clone",
    r"make (demo|test|bench|lock|clean)\b": "sets up an environment of its own; CI runs `make test`",
    r"(\S*python3? -m )?pip install\b": "installs from a package index",
    r"(uv|pipx) \w+": "installs from a package index",
    r"export \w*KEY=": "needs a key",
    r".*--model (?!script:)": "needs a model",
    r"rage chat$": "waits for a person; `chat` is run with a pipe elsewhere",
    r"rage completion\b.*>>": "writes into a person's own files",
    r"rage (accept|reject)\b": "needs an unverified item; test_scripts.py has one",
    r".*> result\.json$": "test_scripts.py runs it and compares what it prints",
    r".*python -m docs\.make_reference$": "writes the reference; test_reference.py compares it",
}
"""Lines that are not run, by pattern, each with the reason."""

SHELL = [b for page in (*PAGES, *EXTRA) for b in blocks(page, "sh", "bash", "shell")]
SECTIONS = {row.key.partition(".")[0] for row in profile_reference()}
KEYS = {row.key for row in profile_reference()}
KEYS |= {key.rpartition(".")[0] for key in KEYS} | {k.rpartition("[].")[0] for k in KEYS}
HOOKS = {n for spec in (HostSpec, ExtensionSpec) for n in vars(spec) if n.startswith("rage_")}
PACKAGES = ("rage_plugin", "rage_probe", "rage_tickets", "rage_config")
OURS = re.compile(
    r"(?:rage_plugin|host_adapters|core|store|packet|verify|deliver|guard|review|docs|benchmarks)"
    r"/[\w./-]*"
)
THEIRS = ("docs/backlog/", "docs/plan/")
"""Paths of a person's project that begin like ours."""
HANDWRITTEN = [p for p in (*PAGES, *EXTRA) if p.exists()]


def runnable(block: Block) -> str:
    """The block without the lines that `NOT_RUN` names; continued lines count as one."""
    lines = block.text.replace("\\\n", " ").splitlines()
    kept = [x for x in lines if not any(re.match(p, x.strip()) for p in NOT_RUN)]
    return "\n".join(x for x in kept if x.strip() and not x.lstrip().startswith("#"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The small project, with the rehearsal that `--model script:rehearsal.json` names."""
    project = Project(tmp_path / "repo", tmp_path / "home")
    script = project.script([reply("", FIX), reply("Fixed.")]).removeprefix("script:")
    (project.root / "rehearsal.json").write_text(Path(script).read_text("utf-8"), "utf-8")
    project.commit("a rehearsal")
    return project


@pytest.mark.parametrize("block", [b for b in SHELL if runnable(b)], ids=lambda block: block.place)
def test_every_shell_block_runs(block: Block, project: Project) -> None:
    """F155: what a page tells a person to type works as it stands, in a small project."""
    env = {
        **ENVIRONMENT,
        "PATH": f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}",
        "HOME": str(project.home),
        "XDG_STATE_HOME": str(project.home / "state"),
        "RAGE_MODEL": f"script:{project.root / 'rehearsal.json'}",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", runnable(block)],
        cwd=project.root,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, (
        f"{block.place} fails in a small project: mend it, or name its lines in NOT_RUN with the "
        f"reason\n{done.stdout}\n{done.stderr}"
    )
    if "rage run" in runnable(block):
        assert (project.root / "calc/__init__.py").read_text("utf-8") == FIXED


@pytest.mark.parametrize("page", HANDWRITTEN, ids=name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name(page)}: {link}"


class Typed(NamedTuple):
    """A command line that a page shows."""

    place: str
    words: list[str]
    in_chat: bool


def typed(page: Path) -> list[Typed]:
    """Every `rage …` and `/rage …` between backticks, in a shell block or in a chat block."""
    lines = [(name(page), word) for word in code_words(page)]
    for block in blocks(page, "sh", "bash", "shell", "console", "text"):
        text = block.text.replace("\\\n", " ")
        lines += [(block.place, line.strip().removeprefix("$ ")) for line in text.splitlines()]
    found = []
    for place, line in lines:
        match = re.match(r"(?:> )?(/?)rage +([a-z].*)", line)
        if match:
            words = re.split(r"[|;>]| #", match[2])[0].split()
            found.append(Typed(place, words, bool(match[1])))
    return found


@pytest.mark.parametrize("page", HANDWRITTEN, ids=name)
def test_no_page_names_a_command_or_option_that_does_not_exist(page: Path) -> None:
    for place, words, in_chat in typed(page):
        known = set(commands.NAMES) if in_chat else set(cli.rage.commands)
        assert words[0] in known, f"{place}: there is no command {words[0]}"
        options = {x.partition("=")[0] for x in words[1:] if x.startswith("--")} - {"--help"}
        if in_chat:
            usage = next(v.usage for v in commands.VERBS if v.name == words[0])
            allowed = set(re.findall(r"--[\w-]+", usage))
        else:
            params = cli.rage.commands[words[0]].params
            allowed = {o for p in params if isinstance(p, click.Option) for o in p.opts}
        assert options <= allowed, f"{place}: {words[0]} does not know {options - allowed}"


@pytest.mark.parametrize("page", HANDWRITTEN, ids=name)
def test_no_page_names_a_key_or_a_hook_that_does_not_exist(page: Path) -> None:
    for word in code_words(page):
        key = re.fullmatch(r"([a-z]+)\.[a-z_]+(?:\[\])?(?:\.[a-z_]+)*", word)
        if key and key[1] in SECTIONS and not word.endswith((".py", ".md", ".json")):
            assert word in KEYS, f"{name(page)}: there is no key {word}"
        hook = re.match(r"(rage_[a-z_]+)(?:\(|$)", word)
        if hook and not hook[1].startswith(PACKAGES):
            assert hook[1] in HOOKS, f"{name(page)}: there is no hook {hook[1]}"


@pytest.mark.parametrize("page", HANDWRITTEN, ids=name)
def test_no_page_names_a_file_of_ours_that_does_not_exist(page: Path) -> None:
    """Paths between backticks, from the root or from the package; `core/phases.name` too."""
    for word in code_words(page):
        if not OURS.fullmatch(word) or word.startswith(THEIRS):
            continue
        paths = [root / word for root in (ROOT, ROOT / "rage_plugin")]
        module, _, attribute = word.rpartition(".")
        inside = ROOT / "rage_plugin" / f"{module}.py"
        named = inside.exists() and attribute in inside.read_text("utf-8")
        assert named or any(p.exists() for p in paths), f"{name(page)}: no {word}"


@pytest.mark.parametrize(
    "block", [b for page in HANDWRITTEN for b in blocks(page, "yaml")], ids=lambda b: b.place
)
def test_every_yaml_block_is_a_profile(block: Block) -> None:
    parse_profile(block.text)


def test_the_tree_of_the_house_is_the_tree_on_disk() -> None:
    """Every module of the package has its line in docs/architecture.md, and every line a file."""
    [tree] = [b.text for b in blocks(ROOT / "docs/architecture.md", "text") if "cli.py" in b.text]
    told: set[str] = set()
    top = ""
    for line in tree.splitlines():
        word = line.split()[0]
        top = word if not line.startswith(" ") else top
        told.add(word if word == top else top + word)
    assert [path for path in sorted(told) if not (ROOT / path).exists()] == []
    package = ROOT / "rage_plugin"
    real = {f"rage_plugin/{p.parent.name}/" for p in package.glob("*/__init__.py")}
    assert real - told == set(), "these rooms are not in the tree"


def test_every_line_that_is_not_run_has_a_reason() -> None:
    assert all(len(reason) > 10 for reason in NOT_RUN.values())


@pytest.mark.parametrize("page", ["reference", "host-adapter", "extensions", "scripts", "profile"])
def test_every_page_says_first_what_it_is_for(page: str) -> None:
    """A heading, then a sentence that begins with `For`."""
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    lines = [x for x in text.splitlines() if x.strip()]
    assert lines[0].startswith("# ")
    assert lines[1].startswith("For "), lines[1]
