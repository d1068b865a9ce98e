"""What the members of enumerations, the limits, the tables and the files mean.

Separate because it is prose: the names are the code's, and `same` stops when one has no words here
or words have no name.
"""

from __future__ import annotations

EXIT_CODES = {
    "DONE": "Done: the run is done, or the command was carried out.",
    "REFUSED": "Refused, failed or stopped; one line on standard error says why.",
    "USAGE": "The words are not a command.",
    "FAULT": "A fault inside RAGE. The run is paused, and the line names the log to report.",
    "PERSON": "The run is paused and needs a person.",
    "INTERRUPTED": "Interrupted with Ctrl-C.",
}

TARGETS = {
    "ITEM": ("`#5`, `5`, `5.2`", "The item with this id; when it is an epic, its parts."),
    "EPIC": ("`epic:5`", "The parts of item 5, which must be an epic."),
    "BACKLOG": ("`backlog`", "Every open item."),
    "PATH": ("`backlog/5-sums.md`, `docs/plan/`", "The items of a markdown file or a folder."),
    "WORD": ("`5-sums`", "A path where one exists, else the item with this id."),
    "FOREIGN": ("`scheme:rest`", "What an installed backlog source of that scheme makes of it."),
}

LIMITS = {
    "max_iterations": "The item fails if another can go on, else the run pauses: "
    "`LIMIT_ITERATIONS`.",
    "run_iterations": "The run pauses: `LIMIT_ITERATIONS`.",
    "item_tokens": "A model call that could go over it is not made. The item fails if another can "
    "go on, else the run pauses: `LIMIT_TOKENS`.",
    "run_tokens": "A model call that could go over it is not made, and tool calls are refused. The "
    "run pauses: `LIMIT_TOKENS`.",
    "wall_seconds": "The next model call is not made. The run pauses: `LIMIT_TIME`.",
    "token_multiple": "The next model call is not made. The run pauses: `CIRCUIT_BREAKER`.",
    "scope_multiple": "No check is run. The run pauses: `CIRCUIT_BREAKER`.",
    "max_fix_attempts": "One failed attempt more and the item fails; its changes are kept under a "
    "ref and taken back.",
    "noop_turns": "The run pauses: `NO_PROGRESS`.",
    "provider_errors": "The run pauses: `PROVIDER_ERRORS`.",
    "same_action": "The next such call is refused, and the item is planned anew.",
    "alert_at": "The person is told, once a budget. The run goes on.",
}

PROJECT_FIELDS = {
    "project.id": "id",
    "project.name": "name",
    "project.type": "type",
    "activation.auto": "activation_auto",
}
"""Keys that are fields of `ProjectConfig` itself."""

FRONT_MATTER = {
    "id": "The item's id; without it the number that the file's name begins with, or the name.",
    "title": "The item's title; without it the first heading, then the file's name.",
    "status": "A word like open, in progress, done or wontfix. A closed item is not worked.",
    "depends_on": "Ids that must be done first: `[4, 7]`.",
    "parent": "The id of the epic that the item is a part of.",
    "priority": "A whole number, lower first, or critical, high, medium, low.",
    "labels": "Words.",
    "gates": "Test files, folders or ids that must be red before and green after.",
    "unseal": "Sealed paths that this item may change.",
    "estimate": "What the item may come to: `{tokens: 20k, files: 3, lines: 120}`, or some of it. "
    "One that comes to a multiple of it waits for a person.",
}

HOST_HOOKS = """
The host calls these through its `pluggy.PluginManager("rage")`; RAGE implements them. While no run
is active only `rage_user_message` and `rage_session_start` are registered. See
[how to write a host adapter](host-adapter.md).
"""

EXTENSION_HOOKS = """
RAGE calls these; a distribution with an entry point in the group `rage` implements them. See
[how to write an extension](extensions.md).
"""

RUN_STATUS = {
    "active": "A host drives it. Only now is anything added to a model call.",
    "paused": "It waits for a person; `reason` says for what. `rage resume` goes on.",
    "stopped": "A person ended it.",
    "done": "Every item is done.",
    "failed": "It was refused before it began.",
}

PAUSE_REASONS = {
    "SPEC_DEVIATION": "The item's criteria changed since the run began, or the item is gone.",
    "NEEDS_CLARIFICATION": "The item does not say enough.",
    "CRITICAL_ISSUE": "A quality gate found a risk that is too high.",
    "CIRCUIT_BREAKER": "A breaker opened.",
    "USER": "A person paused it.",
    "INTERRUPT": "A person interrupted the turn or the checks.",
    "NO_PROGRESS": "Several turns in a row brought no new change and no new result of a check.",
    "PROVIDER_ERRORS": "Several model calls in a row failed.",
    "LIMIT_ITERATIONS": "The turns of the run, or of its only item, are used up.",
    "LIMIT_TOKENS": "The tokens of the run, or of its only item, are used up.",
    "LIMIT_TIME": "The run was active for as long as it may be.",
    "LIMIT_ITEMS": "As many items as `--items` asked for were worked.",
    "ITEM_FAILED": "An item failed, and nothing else can be begun.",
    "UNVERIFIED": "An item waits for `accept` or `reject`, and nothing else can be begun.",
    "SCOPE": "The agent's change left its declared scope twice.",
    "CHECK_COULD_NOT_RUN": "The checks, or the tree's hash, could not be had.",
    "COMMIT_FAILED": "The commit was refused: a hook, the signing, the branch.",
    "WORKSPACE_MOVED": "Files changed meanwhile in a way that RAGE leaves alone.",
    "SESSION_ENDED": "The chat that drove it ended.",
    "INTERNAL_FAULT": "A fault inside RAGE; the detail names the log.",
}

PHASES = {
    "review": "RAGE looks at the workspace and keeps the base tree.",
    "analyze": "The agent names one slice.",
    "generate": "The agent makes the change.",
    "execute": "RAGE runs the checks.",
    "done": "No item is left.",
}

ITEM_STATES = {
    "PENDING": "Not begun.",
    "CLAIMED": "Taken by a run.",
    "IN_PROGRESS": "Being worked on, or unverified and waiting for a person.",
    "DONE": "Passed and committed, or accepted by a person.",
    "FAILED": "Out of attempts or limits, or rejected by a person.",
    "SKIPPED": "Left out.",
}

VERIFICATION = {
    "none": "Not judged yet.",
    "pass": "Red before, green after, nothing lost; or a person's word.",
    "fail": "The last judgement did not pass.",
    "unverified": "Everything but a proof: a person decides.",
}

ORIGIN = {
    "given": "The item's or the project's own test was red.",
    "agent": "A test that the agent added was red.",
    "person": "A person accepted it.",
    "suite": "The whole suite; only with `verification.accept: suite`.",
}

VERDICTS = {
    "pass": "A whole run in which nothing failed.",
    "fail": "A test failed, or the exit code says so.",
    "timeout": "Killed at its time limit.",
    "partial": "Cut short, unreadable or incomplete.",
    "skipped": "Everything that counts was skipped.",
    "nothing_collected": "No test was found.",
    "could_not_run": "The command, its environment or the isolation is missing.",
    "tampered": "A sealed file changed, or something else wrote the report.",
}

OUTCOMES = {
    "pass": "It passed.",
    "fail": "It failed.",
    "error": "Its set-up or tear-down failed, or its file could not be read.",
    "skip": "Skipped, or expected to fail.",
}

TABLES = {
    "runs": "One row a run.",
    "items": "The items of each run and what became of them.",
    "slices": "What the agent set out to do, with its scope.",
    "gates": "The targets of each slice.",
    "evidence": "What RAGE observed itself.",
    "approaches": "Approaches that were tried, and which of them are retired.",
    "failures": "Why an attempt failed.",
    "checks": "Every run of a command that a judgement rests on.",
    "blockers": "What stands in the way.",
    "corrections": "What a person told the run to do differently.",
    "checkpoints": "Points to go back to.",
    "workers": "Work that was handed to another agent.",
    "claims": "Who holds which item.",
    "outbox": "External effects: the intent before, the receipt after.",
    "events": "The log that all this follows from.",
    "ledger": "What was added to which model call; chained for each session.",
    "observations": "Tool calls as a host told them; decides nothing.",
}

VIEWS = {
    "v_runs": "Runs, newest first.",
    "v_items": "Items in order of work.",
    "v_timeline": "What happened and why.",
    "v_checks": "The checks and their verdicts.",
    "v_open_blockers": "Blockers that are not resolved.",
    "v_ledger": "Bytes and tokens by run, session, kind and phase.",
}

FILES = {
    "rage.db": "The state; `-wal` and `-shm` beside it belong to SQLite.",
    "verdicts.db": "Verdicts by tree, command and environment. May be deleted: checks run again.",
    "artifacts": "`checks/` holds the output of each check as text.",
    "opened": "What each run saw at its start: git-ignored files and the environment, as hashes.",
    "trees": "Private git index and object store; the user's own are not touched.",
    "views": "Mount points of checks that run now.",
    "swap": "The journal of a check that swaps files in place.",
    "events.jsonl": "One JSON line for each thing that sinks are told.",
    "wish.json": "A `start` or `resume` from a shell that a host has not taken up yet.",
    "rage.log": "Faults, and sinks that failed.",
    "driver.json": "The process that drives a run, for `rage kill`; gone while none does.",
    "heads": "The head of each log, noted after every commit: what tells a log that was cut off.",
    "deliver.lock": "Held while a commit is made. Other `.lock` files guard the file they name.",
}

ELSEWHERE = (
    ("branch `rage/<id>-<slug>`", "The run's own, made where the current branch is protected."),
    ("ref `refs/rage/<run>/base`", "Keeps the tree that a run began with."),
    ("ref `refs/rage/<run>/<item>`", "The changes of an item that failed."),
    ("ref `refs/rage-found/…`", "A commit that a check made, kept reachable."),
    ("trailer `Rage-Run`", "The run that made the commit."),
    ("trailer `Rage-Item`", "The item it is for."),
    ("trailer `Rage-Evidence`", "Ids of the evidence rows it rests on, or `none`."),
    ("trailer `Rage-Status`", "`verified`, `unverified`, `reverted` or `snapshot`."),
    ("trailer `Rage-Reverts`", "The commit that this one takes back."),
    ("file `$XDG_STATE_HOME/rage/active`", "There while a run of this user is active or a wish "
     "waits; without the variable below `~/.local/state`."),
    ("variable `RAGE_MODEL`", "Stands for `--model`."),
)  # fmt: skip
