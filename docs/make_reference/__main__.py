"""Write `docs/reference.md` from the code: `python -m docs.make_reference`.

What can be read from the code is read from it; what an enumeration's members mean is written in
`words.py`. `--check` writes nothing and fails when the page is not what the code says.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from . import hooks, states, storage, typed

PAGE = Path(__file__).parents[1] / "reference.md"
COMMAND = "python -m docs.make_reference"
HEAD = f"""# Reference

For looking things up: every command, option, profile key, hook, state, table and file, as the code
has them. This page is made by `{COMMAND}`: change the code and not the page.
A test fails when the two differ.

How-to pages: [the profile](profile.md), [scripts](scripts.md), [a host adapter](host-adapter.md),
[an extension](extensions.md). Why things are so: [how the loop decides](how-the-loop-decides.md).
"""


def page() -> str:
    """The whole page."""
    parts = (HEAD, *typed.sections(), *hooks.sections(), *states.sections(), *storage.sections())
    return "\n\n".join(p.strip("\n") for p in parts if p) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with `--check` compare it; the exit code."""
    fresh = page()
    if "--check" not in arguments:
        PAGE.write_text(fresh, "utf-8")
        return 0
    old = PAGE.read_text("utf-8").splitlines()
    lines = list(difflib.unified_diff(old, fresh.splitlines(), "reference.md", "the code", n=0))
    if lines:
        print(*lines, f"The page is old. Next: {COMMAND}", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
