"""State in SQLite: one database a workspace, one write path, an append-only chained event log.

Start reading at `write_path.py`; `db.py` opens, `schema.py` makes the tables, `runs.py` is what the
rest of the program sees, `audit.py` proves that tables and log say the same.
"""

from .audit import StoredEvent
from .ledger import Ledger, LedgerSum
from .runs import RunStore, open_store

__all__ = ["Ledger", "LedgerSum", "RunStore", "StoredEvent", "open_store"]
