"""What the cells of a command without a per-test report prove: an exit code says little.

Red needs a targeted command that fails on the base and passes on the candidate; regression needs
a green baseline; everything else is for a person.
"""

from __future__ import annotations

from collections.abc import Sequence

from .compare import RAN, Finding, Runs, unusable
from .judgement import Cell, Verdict


def compare_exit(runs: Runs) -> Finding:
    """What the exit codes say so far; the first cell of each kind is the whole command."""
    finding = Finding(runs.command)
    for cell in runs.target:
        if not unusable(finding, "The gate's run", cell) and cell.verdict is Verdict.FAIL:
            finding.failing[", ".join(runs.targets) or runs.command] = _why(cell)
    if runs.base and unusable(finding, "The base's run", runs.base[0]):
        finding.blocked = True
    if finding.settled or not runs.base:
        return finding
    for cells in (runs.regression, runs.green):
        for cell in cells[:1]:
            if not unusable(finding, "The candidate's run", cell) and cell.verdict is Verdict.FAIL:
                _fails(finding, runs, cell)
    if runs.given and any(c.verdict is Verdict.FAIL for c in runs.regression[1:]):
        finding.failing[", ".join(runs.given)] = _why(runs.regression[-1])
    finding.complete = bool(runs.regression and runs.green)
    if finding.complete and not finding.settled:
        _red(finding, runs)
    return finding


def _fails(finding: Finding, runs: Runs, cell: Cell) -> None:
    name = runs.command
    if runs.base[0].verdict is Verdict.FAIL:
        if name not in finding.preexisting:
            finding.preexisting.append(name)
            finding.reasons.append(f"{name} failed before and still fails")
    elif not runs.again:
        finding.doubtful.append(name)
        finding.regressions[name] = _why(cell)
    elif [c.verdict for c in runs.again] == [Verdict.PASS, Verdict.FAIL]:
        finding.regressions[name] = _why(cell)
    else:
        finding.unstable.append(name)
        finding.reasons.append(f"{name} does not give the same answer twice")


def _red(finding: Finding, runs: Runs) -> None:
    """Targets that failed twice on the base and passed twice on the candidate."""
    green = _all(runs.candidate, Verdict.PASS)
    if green and _all(runs.base[1:], Verdict.FAIL) and _all(runs.regression[1:], Verdict.PASS, 1):
        finding.given_red += runs.targets
    elif green and _all(runs.red, Verdict.FAIL):
        finding.agent_red.append(runs.command)


def _all(cells: Sequence[Cell], verdict: Verdict, times: int = 2) -> bool:
    return len(cells) >= times and all(c.verdict is verdict for c in cells)


def _why(cell: Cell) -> str:
    if cell.note:
        return cell.note
    return f"exit code {cell.exit_code}" if cell.verdict in RAN else str(cell.verdict)
