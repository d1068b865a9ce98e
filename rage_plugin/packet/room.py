"""The packet room: what the model sees while a run is active, and nothing else of RAGE's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from rage_plugin.core.config import PacketConfig
from rage_plugin.core.errors import RageError
from rage_plugin.core.model import ItemSpec, RunState

from . import brief, packet


class PacketRoom:
    """Implements `core.ports.Packets`.

    `seed` goes into the fence's nonce beside run and item; `known` are values that are redacted
    wherever they stand. Raises `RageError` for a cap that a packet or brief cannot keep.
    """

    def __init__(self, config: PacketConfig, seed: str = "", known: Sequence[str] = ()) -> None:
        for name, cap, least in (
            ("packet.tokens", config.tokens, packet.LEAST_CAP),
            ("packet.brief_tokens", config.brief_tokens, brief.LEAST_CAP),
        ):
            if cap < least:
                raise RageError(
                    f"{name} is {cap}, and {least} is the least that says enough",
                    next=f"set {name} to {least} or more in rage.yaml",
                )
        self._config = config
        self._seed = seed
        self._known = tuple(known)

    def packet(self, state: RunState, instruction: str) -> str:
        """At most `packet.tokens` tokens, whatever the state."""
        return packet.compose(state, instruction, self._config.tokens, self._known)

    def brief(self, state: RunState, spec: ItemSpec, pointers: Sequence[str]) -> str:
        """At most `packet.brief_tokens` tokens; untrusted text cleaned and fenced."""
        return brief.compose(
            state,
            spec,
            pointers,
            cap=self._config.brief_tokens,
            nonce=self._nonce(state.run.id, spec.id),
            known=self._known,
        )

    def _nonce(self, run: str, item: str) -> str:
        """Unknown to whoever wrote the item, since run ids are drawn afterwards."""
        text = "\0".join((self._seed, run, item))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
