"""What the model sees while a run is active: the packet of each call and the brief of each item.

The words are in `templates/`; what a value must go through first is in `sanitize` and `redact`.
"""

from .redact import known_values, redact
from .room import PacketRoom
from .sanitize import clean_block, clean_line, fence

__all__ = ["PacketRoom", "clean_block", "clean_line", "fence", "known_values", "redact"]
