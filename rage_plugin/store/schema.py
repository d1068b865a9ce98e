"""The tables, indices and views, as migrations; imported only when a database is not current.

A migration that was released is never edited: the enumerations are written out here (a test holds
them equal to `core/model.py`), and a change is a new migration and a higher `db.SCHEMA_VERSION`.
Foreign keys are deferred, so the order of rows inside one tick does not matter. An empty `item`
means the whole run; those tables have no foreign key on it.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlite_utils import Database, Migrations

MIGRATIONS = Migrations("rage")

_RUN = "run TEXT NOT NULL REFERENCES runs(id) DEFERRABLE INITIALLY DEFERRED"
_ITEM = "FOREIGN KEY (run, item) REFERENCES items(run, id) DEFERRABLE INITIALLY DEFERRED"
_EVIDENCE = "REFERENCES evidence(id) DEFERRABLE INITIALLY DEFERRED"
_VERDICTS = """'pass', 'fail', 'timeout', 'partial', 'skipped', 'nothing_collected',
    'could_not_run', 'tampered'"""

TABLES = (
    """CREATE TABLE runs (
  id TEXT PRIMARY KEY NOT NULL,
  target TEXT NOT NULL,
  title TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'paused', 'stopped', 'done', 'failed')),
  phase TEXT NOT NULL CHECK (phase IN ('review', 'analyze', 'generate', 'execute', 'done')),
  host TEXT NOT NULL,
  session TEXT NOT NULL,
  workspace TEXT NOT NULL,
  started_at REAL NOT NULL,
  current_item TEXT,
  pause_reason TEXT,
  pause_detail TEXT NOT NULL DEFAULT '',
  branch TEXT NOT NULL DEFAULT '',
  base_commit TEXT NOT NULL DEFAULT '',
  base_tree TEXT NOT NULL DEFAULT '',
  plan_version INTEGER NOT NULL DEFAULT 1,
  iteration INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  active_seconds REAL NOT NULL DEFAULT 0,
  resumed_at REAL NOT NULL DEFAULT 0,
  noop_turns INTEGER NOT NULL DEFAULT 0,
  provider_errors INTEGER NOT NULL DEFAULT 0,
  items_limit INTEGER,
  limits TEXT NOT NULL DEFAULT '{}',
  untracked TEXT NOT NULL DEFAULT '[]',
  holder TEXT NOT NULL DEFAULT '',
  fence INTEGER NOT NULL DEFAULT 1,
  version INTEGER NOT NULL DEFAULT 0,
  FOREIGN KEY (id, current_item) REFERENCES items(run, id) DEFERRABLE INITIALLY DEFERRED
)""",
    f"""CREATE TABLE items (
  {_RUN},
  id TEXT NOT NULL,
  position INTEGER NOT NULL,
  title TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'PENDING' CHECK (
    state IN ('PENDING', 'CLAIMED', 'IN_PROGRESS', 'DONE', 'FAILED', 'SKIPPED')),
  verification TEXT NOT NULL DEFAULT 'none' CHECK (
    verification IN ('none', 'pass', 'fail', 'unverified')),
  source TEXT NOT NULL DEFAULT '',
  criteria TEXT NOT NULL DEFAULT '[]',
  criteria_hash TEXT NOT NULL DEFAULT '',
  gates TEXT NOT NULL DEFAULT '[]',
  depends_on TEXT NOT NULL DEFAULT '[]',
  unseal TEXT NOT NULL DEFAULT '[]',
  parent TEXT,
  base_commit TEXT NOT NULL DEFAULT '',
  base_tree TEXT NOT NULL DEFAULT '',
  tree TEXT NOT NULL DEFAULT '',
  "commit" TEXT NOT NULL DEFAULT '',
  origin TEXT NOT NULL DEFAULT '',
  iteration INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  reasked INTEGER NOT NULL DEFAULT 0,
  replanned INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  next TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run, id)
)""",
    f"""CREATE TABLE slices (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL,
  objective TEXT NOT NULL,
  scope TEXT NOT NULL,
  origin TEXT NOT NULL,
  plan_version INTEGER NOT NULL,
  superseded INTEGER NOT NULL DEFAULT 0 CHECK (superseded IN (0, 1)),
  {_ITEM}
)""",
    f"""CREATE TABLE gates (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL,
  slice TEXT NOT NULL REFERENCES slices(id) DEFERRABLE INITIALLY DEFERRED,
  target TEXT NOT NULL,
  origin TEXT NOT NULL,
  verdict TEXT NOT NULL DEFAULT '' CHECK (
    verdict IN ('', 'unverified', {_VERDICTS})),
  evidence TEXT {_EVIDENCE},
  {_ITEM}
)""",
    f"""CREATE TABLE evidence (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL,
  kind TEXT NOT NULL,
  tree TEXT NOT NULL,
  data TEXT NOT NULL,
  at REAL NOT NULL
)""",
    f"""CREATE TABLE approaches (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL,
  key TEXT NOT NULL,
  objective TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'open',
  retired_at REAL,
  retired_by TEXT {_EVIDENCE},
  readmitted_by TEXT {_EVIDENCE},
  {_ITEM}
)""",
    f"""CREATE TABLE failures (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL,
  signature TEXT NOT NULL,
  message TEXT NOT NULL,
  count INTEGER NOT NULL DEFAULT 1,
  tree TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  {_ITEM}
)""",
    f"""CREATE TABLE checks (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL,
  cell TEXT NOT NULL,
  command TEXT NOT NULL,
  tree TEXT NOT NULL,
  command_hash TEXT NOT NULL,
  environment_hash TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ({_VERDICTS})),
  passed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  seconds REAL NOT NULL,
  cached INTEGER NOT NULL CHECK (cached IN (0, 1)),
  isolation TEXT NOT NULL,
  artifact TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL DEFAULT 0,
  {_ITEM}
)""",
    f"""CREATE TABLE blockers (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  resolved_at REAL,
  resolved_by TEXT NOT NULL DEFAULT ''
)""",
    f"""CREATE TABLE corrections (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL DEFAULT '',
  plan_version INTEGER NOT NULL,
  text TEXT NOT NULL,
  at REAL NOT NULL,
  superseded_by TEXT REFERENCES corrections(id) DEFERRABLE INITIALLY DEFERRED
)""",
    f"""CREATE TABLE checkpoints (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL DEFAULT '',
  kind TEXT NOT NULL,
  tree TEXT NOT NULL DEFAULT '',
  "commit" TEXT NOT NULL DEFAULT '',
  ref TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL
)""",
    f"""CREATE TABLE workers (
  id TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL DEFAULT '',
  slice TEXT REFERENCES slices(id) DEFERRABLE INITIALLY DEFERRED,
  agent TEXT NOT NULL,
  model TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL,
  depth INTEGER NOT NULL DEFAULT 1,
  plan_version INTEGER NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0,
  result TEXT NOT NULL DEFAULT '{{}}',
  started_at REAL NOT NULL,
  ended_at REAL
)""",
    f"""CREATE TABLE claims (
  {_RUN},
  item TEXT NOT NULL,
  host TEXT NOT NULL,
  session TEXT NOT NULL,
  fence INTEGER NOT NULL,
  at REAL NOT NULL,
  expires_at REAL,
  released_at REAL,
  PRIMARY KEY (run, item),
  {_ITEM}
)""",
    f"""CREATE TABLE outbox (
  key TEXT PRIMARY KEY NOT NULL,
  {_RUN},
  item TEXT NOT NULL DEFAULT '',
  kind TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent', 'done')),
  receipt TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL
)""",
    f"""CREATE TABLE events (
  {_RUN},
  seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  prev TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (run, seq)
)""",
    """CREATE TABLE ledger (
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  run TEXT,
  kind TEXT NOT NULL CHECK (kind IN ('packet', 'brief', 'call', 'inactive')),
  calls INTEGER NOT NULL,
  bytes INTEGER NOT NULL CHECK (kind NOT IN ('call', 'inactive') OR bytes = 0),
  tokens INTEGER NOT NULL,
  estimated INTEGER NOT NULL CHECK (estimated IN (0, 1)),
  phase TEXT NOT NULL,
  purpose TEXT NOT NULL,
  iteration INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  at REAL NOT NULL,
  prev TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (session, seq)
)""",
    """CREATE TABLE observations (
  id INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  item TEXT NOT NULL,
  kind TEXT NOT NULL,
  data TEXT NOT NULL,
  at REAL NOT NULL
)""",
)

INDICES = (
    # One active run a workspace (law 10); `write_path` names the holder when this refuses.
    "CREATE UNIQUE INDEX runs_one_active ON runs(workspace) WHERE status IN ('active', 'paused')",
    "CREATE INDEX runs_by_workspace ON runs(workspace, started_at)",
    "CREATE INDEX slices_by_item ON slices(run, item)",
    "CREATE INDEX gates_by_slice ON gates(slice)",
    "CREATE INDEX gates_by_item ON gates(run, item)",
    "CREATE INDEX evidence_by_item ON evidence(run, item, kind)",
    "CREATE INDEX approaches_by_item ON approaches(run, item)",
    "CREATE INDEX failures_by_item ON failures(run, item, at)",
    "CREATE INDEX checks_by_item ON checks(run, item)",
    "CREATE INDEX blockers_by_run ON blockers(run)",
    "CREATE INDEX corrections_by_run ON corrections(run, at)",
    "CREATE INDEX checkpoints_by_run ON checkpoints(run)",
    "CREATE INDEX workers_by_run ON workers(run)",
    "CREATE INDEX outbox_by_run ON outbox(run)",
    "CREATE INDEX ledger_by_run ON ledger(run)",
    # A new parent row looks for children that wait for it: without these every tick would scan.
    "CREATE INDEX gates_by_evidence ON gates(evidence)",
    "CREATE INDEX approaches_by_retired ON approaches(retired_by)",
    "CREATE INDEX approaches_by_readmitted ON approaches(readmitted_by)",
    "CREATE INDEX corrections_by_superseded ON corrections(superseded_by)",
    "CREATE INDEX workers_by_slice ON workers(slice)",
    "CREATE INDEX observations_by_run ON observations(run, item, kind)",
)

VIEWS = {
    "v_runs": """SELECT r.id AS run, r.target, r.title, r.status, r.phase, r.pause_reason AS reason,
  r.current_item AS item, (SELECT count(*) FROM items i WHERE i.run = r.id) AS items,
  (SELECT count(*) FROM items i WHERE i.run = r.id AND i.state = 'DONE') AS done,
  r.iteration, r.tokens, datetime(r.started_at, 'unixepoch') AS started_utc, r.branch
FROM runs r ORDER BY r.started_at DESC""",
    "v_items": """SELECT run, position, id AS item, title, state, verification, origin,
  substr("commit", 1, 12) AS "commit", attempts, iteration, tokens, reason, next
FROM items ORDER BY run, position""",
    "v_timeline": """SELECT run, seq, datetime(at, 'unixepoch') AS utc, kind,
  json_extract(body, '$.why') AS why, json_extract(body, '$.evidence') AS evidence
FROM events ORDER BY run, seq""",
    "v_checks": """SELECT run, item, cell, command, verdict, passed, failed, skipped,
  round(seconds, 2) AS seconds, cached, isolation, substr(tree, 1, 12) AS tree
FROM checks ORDER BY run, item, rowid""",
    "v_open_blockers": """SELECT run, item, reason, detail, datetime(at, 'unixepoch') AS since_utc
FROM blockers WHERE resolved_at IS NULL ORDER BY at""",
    "v_ledger": """SELECT coalesce(run, '') AS run, session, kind, phase, sum(calls) AS calls,
  sum(bytes) AS bytes, sum(tokens) AS tokens, max(tokens) AS peak_tokens,
  sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens
FROM ledger GROUP BY 1, 2, 3, 4""",
}


@MIGRATIONS(name="0001_rooms")
def _rooms(db: Any) -> None:
    for statement in TABLES + INDICES:
        db.execute(statement)
    for name, select in VIEWS.items():
        db.create_view(name, select)


RECOVERY = (
    "ALTER TABLE runs ADD COLUMN alerted INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN refused_call TEXT NOT NULL DEFAULT ''",
    *(
        f"ALTER TABLE items ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0"
        for name in ("expected_tokens", "expected_files", "expected_lines", "files", "lines")
    ),
    "ALTER TABLE failures ADD COLUMN approach TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE failures ADD COLUMN evidence TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE approaches ADD COLUMN plan_version INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE corrections ADD COLUMN evidence TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE observations ADD COLUMN digest TEXT NOT NULL DEFAULT ''",
    # In the order of writing and not of the clock, which may jump.
    "CREATE INDEX blockers_by_item ON blockers(run, item)",
    "DROP INDEX failures_by_item",
    "CREATE INDEX failures_by_item ON failures(run, item)",
    "DROP INDEX corrections_by_run",
    "CREATE INDEX corrections_holding ON corrections(run, superseded_by)",
)


@MIGRATIONS(name="0002_recovery")
def _recovery(db: Any) -> None:
    for statement in RECOVERY:
        db.execute(statement)
    # Append-only for anybody who comes by SQL; who removes the triggers is found by the audit.
    for table in ("events", "ledger"):
        for verb in ("UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is pending, inside the caller's transaction (nested `atomic` is a savepoint)."""
    MIGRATIONS.apply(Database(connection, execute_plugins=False))
