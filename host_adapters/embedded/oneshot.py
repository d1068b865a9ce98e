"""`rage run TARGET`: start a run, drive it until it rests, and answer with an exit code.

Progress goes to standard error; with `--json` exactly one object goes to standard output.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .signals import as_interrupt, no_more
from .ui import Terminal

if TYPE_CHECKING:
    from rage_plugin import Reply

    from .host import Host

DONE, REFUSED, FAULT, PERSON, INTERRUPTED = 0, 1, 3, 4, 130
_BY_STATUS = {"done": DONE, "failed": REFUSED, "stopped": REFUSED, "paused": PERSON}


def run(host: Host, target: str, options: Sequence[str], *, as_json: bool) -> int:
    """Send `/rage start TARGET`, work until everything rests, say what came of it."""
    if isinstance(host.ui, Terminal):
        host.ui.move(sys.stderr, sys.stderr if as_json else sys.stdout)
    reply, interrupted = None, False
    as_interrupt()
    try:
        host.hooks.session_start()
        # Not `send`: a start that nobody answers must not reach the agent as a message.
        reply = host.command(f"/rage start {shlex.join([target, *options])}")
        interrupted = host.last_turn is not None and host.last_turn.reason == "interrupt"
        no_more()
    except KeyboardInterrupt:  # between two of the host's steps
        no_more()
        interrupted = True
    try:
        result, code = _result(host, reply, interrupted)
    finally:
        host.close()
    if as_json:
        # ASCII: a name that is not UTF-8, or a terminal that is not, must not cost the result.
        print(json.dumps(result), flush=True)
    return code


def _result(host: Host, reply: Reply | None, interrupted: bool) -> tuple[dict[str, object], int]:
    """What is printed, and the exit code."""
    if reply is not None and reply.error:
        return _nothing(reply.text), INTERRUPTED if interrupted else REFUSED
    if host.rage is not None and (reply is not None or host.rage.active):
        host.hooks.session_end()  # what an interrupt left active is paused before it is told
        result = host.rage.report(host.session)
        return result, _code(result, interrupted)
    if interrupted:
        return _nothing("Interrupted before the run began"), INTERRUPTED
    return _nothing("RAGE did not answer the start"), FAULT


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
