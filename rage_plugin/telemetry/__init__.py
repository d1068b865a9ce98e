"""Bytes and tokens of model calls: `booking.py` writes them down, `account.py` adds them up.

Separate from the store, which keeps the rows and their chain and knows no hook and no table.
"""

from .account import account, as_json, lines
from .booking import Accounting

__all__ = ["Accounting", "account", "as_json", "lines"]
