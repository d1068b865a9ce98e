"""The tree hash against `git status`, and one trivial check an isolation; 20,000 files.

Run: `python benchmarks/tree_hash.py [FILES]`. The figure to reach is a ratio within one run, since
machines are noisy: hash ≤ 1.5 times `git status` + 20 ms.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rage_plugin.verify.isolation import CouldNotRun, ViewSpec, ladder
from rage_plugin.verify.tree import Trees


def milliseconds(work: Callable[[], object], times: int) -> float:
    """Median duration."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def workspace(root: Path, files: int) -> Path:
    """A repository with one commit of `files` files and 8,000 ignored ones."""
    root.mkdir()
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "init", "-q"], cwd=root, check=True)
    for number in range(files):
        path = root / f"d{number // 100}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n")
    (root / ".gitignore").write_text("out/\n")
    (root / "out").mkdir()
    for number in range(8000):
        (root / "out" / str(number)).touch()
    subprocess.run([*git, "add", "-A"], cwd=root, check=True)
    subprocess.run([*git, "commit", "-qm", "base"], cwd=root, check=True)
    return root


def main(files: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        root = workspace(Path(folder) / "w", files)
        state = root / ".git" / "rage"
        trees = Trees(root, state)
        status = ["git", "status", "--porcelain"]
        print(f"first hash            {milliseconds(trees.snapshot, 1):8.1f} ms")
        ours, git = [], []
        for _ in range(9):  # in turns, so that both meet the same noise
            ours.append(milliseconds(trees.snapshot, 1))
            git.append(milliseconds(lambda: subprocess.run(status, cwd=root, check=True), 1))
        hashed, compared = statistics.median(ours), statistics.median(git)
        old = [f"old{number}" for number in range(500)]
        print(f"hash, unchanged       {hashed:8.1f} ms")
        print(f"git status            {compared:8.1f} ms")
        print(f"hash within the limit {hashed <= 1.5 * compared + 20}")
        print(f"hash without 500      {milliseconds(lambda: trees.snapshot(old), 5):8.1f} ms")
        base = trees.snapshot()
        (root / "d1/f100").write_text("candidate\n")
        view = ViewSpec(tree=base, current=trees.snapshot())
        env = {"PATH": os.environ["PATH"]}
        for name in ("overlay", "swap", "scratch"):
            try:
                rung = ladder(trees, state, name)
            except CouldNotRun:
                print(f"{name:22}not here")
                continue
            taken = milliseconds(
                lambda rung=rung: rung.run(view, ["true"], cwd=".", env=env, timeout_s=600), 3
            )
            print(f"{name:22}{taken:8.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
