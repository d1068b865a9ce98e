"""`make demo`: copy the project to a temporary repository, type `/rage start #5`, watch."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..host import Host

HERE = Path(__file__).parent


def main() -> int:
    """Run the demo; exit code 0 when the epic is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=f"script:{HERE / 'rehearsal.json'}")
    parser.add_argument("--into", help="an empty folder to work in instead of a temporary one")
    options = parser.parse_args()
    workspace = Path(options.into or tempfile.mkdtemp(prefix="rage-demo-")) / "minuta"
    prepare(workspace)
    print(f"A package with a failing suite and an epic of four items lies in {workspace}\n")
    print("> /rage start #5", flush=True)
    host = Host(str(workspace), options.model)
    host.hooks.session_start()
    host.send("/rage start #5")
    print("\n> /rage context", flush=True)
    host.send("/rage context")
    host.hooks.session_end()
    print(f"\nWhat git has now, in {workspace}:", flush=True)
    subprocess.run(["git", "log", "--oneline", "--graph", "--all"], cwd=workspace, check=False)
    state = workspace / ".git" / "rage"
    print(f"\nState, artifacts and the log of events: {state}")
    report = host.rage.report(host.session) if host.rage else {}
    return 0 if report.get("status") == "done" else 4


def prepare(workspace: Path) -> None:
    """The project as a git repository of its own."""
    shutil.copytree(HERE / "project", workspace)
    (workspace / "gitignore").rename(workspace / ".gitignore")
    who = {"GIT_AUTHOR_NAME": "Demo", "GIT_AUTHOR_EMAIL": "demo@example.invalid"}
    who |= {"GIT_COMMITTER_NAME": "Demo", "GIT_COMMITTER_EMAIL": "demo@example.invalid"}
    for command in (
        ["git", "init", "--quiet", "--initial-branch", "main"],
        ["git", "config", "user.name", "Demo"],
        ["git", "config", "user.email", "demo@example.invalid"],
        ["git", "add", "."],
        ["git", "commit", "--quiet", "--message", "Durations, as far as they work"],
    ):
        subprocess.run(command, cwd=workspace, check=True, env={**os.environ, **who})


if __name__ == "__main__":
    sys.exit(main())
