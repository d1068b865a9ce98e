"""`rage run TARGET`: start a run, drive it until it rests, and answer with an exit code.

Progress goes to standard error; with `--json` exactly one object goes to standard output.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .ui import Terminal

if TYPE_CHECKING:
    from .host import Host

DONE, REFUSED, FAULT, PERSON, INTERRUPTED = 0, 1, 3, 4, 130
_BY_STATUS = {"done": DONE, "failed": REFUSED, "stopped": REFUSED, "paused": PERSON}


def run(host: Host, target: str, options: Sequence[str], *, as_json: bool) -> int:
    """Send `/rage start TARGET`, work until everything rests, say what came of it."""
    if isinstance(host.ui, Terminal):
        host.ui.move(sys.stderr, sys.stderr if as_json else sys.stdout)
    host.hooks.session_start()
    try:
        # Not `send`: a start that nobody answers must not reach the agent as a message.
        reply = host.command(f"/rage start {shlex.join([target, *options])}")
        interrupted = host.last_turn is not None and host.last_turn.reason == "interrupt"
        if host.rage is None or reply is None:
            result, code = _nothing("RAGE did not answer the start"), FAULT
        elif reply.error:
            result, code = _nothing(reply.text), INTERRUPTED if interrupted else REFUSED
        else:
            result = host.rage.report(host.session)
            code = _code(result, interrupted)
    finally:
        host.close()
    if as_json:
        # ASCII: a name that is not UTF-8, or a terminal that is not, must not cost the result.
        print(json.dumps(result))
    return code


def _code(result: dict[str, object], interrupted: bool) -> int:
    reason = str(result.get("reason", ""))
    if result.get("status") != "done" and (interrupted or reason.startswith("INTERRUPT")):
        return INTERRUPTED
    if reason.startswith("INTERNAL_FAULT"):
        return FAULT
    return _BY_STATUS.get(str(result.get("status")), FAULT)


def _nothing(why: str) -> dict[str, object]:
    """The result of a run that did not begin."""
    return {"run": None, "status": "failed", "reason": why, "items": [], "tokens": 0, "head": ""}
