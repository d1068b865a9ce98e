"""Counting tokens as the models do, offline: a leaf that rooms and the ledger share.

tiktoken fetches its first encoding from the network. litellm ships the two files that matter, so
they are read from its folder, which is found without importing litellm (seconds, 200 MB). Where no
usable file exists, an estimate stands in and says that it is one.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

O200K = "o200k_base"
CL100K = "cl100k_base"

# tiktoken deletes and downloads a cached file whose hash is not the expected one, so both its name
# and its content are checked here before tiktoken is allowed to look (tiktoken_ext/openai_public).
_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_SHA256 = {
    O200K: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    CL100K: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_ENVIRONMENT = threading.Lock()


class Counter(NamedTuple):
    """How to count tokens, and whether that is the model's own count or an estimate."""

    count: Callable[[str], int]
    exact: bool


def estimate(text: str) -> int:
    """Tokens on the high side: one for two UTF-8 bytes (prose and code have three to five)."""
    return (len(text.encode("utf-8", "replace")) + 1) // 2


def fits(text: str, cap: int) -> bool:
    """Whether the text has at most `cap` tokens; short text is not encoded to find out."""
    # A token is at least one byte of UTF-8, and a character at most four.
    return len(text) * 4 <= cap or counter().count(text) <= cap


@lru_cache(maxsize=4)
def counter(encoding: str = O200K) -> Counter:
    """The counter of an encoding, loaded once (about 0.4 s); an estimate where it cannot be had."""
    folder = _folder(encoding)
    if folder is not None:
        with suppress(ImportError, AttributeError, OSError, ValueError):
            return Counter(_load(encoding, folder), exact=True)
    return Counter(estimate, exact=False)


def _folder(encoding: str) -> Path | None:
    """The first folder that holds the encoding's file, whole and unchanged."""
    if encoding not in _SHA256:
        return None
    name = hashlib.sha1(_URL.format(encoding).encode(), usedforsecurity=False).hexdigest()
    for folder in _folders():
        with suppress(OSError):
            content = (folder / name).read_bytes()
            if hashlib.sha256(content).hexdigest() == _SHA256[encoding]:
                return folder
    return None


def _folders() -> list[Path]:
    """Where to look: the user's own cache first, then what litellm ships."""
    found = []
    if chosen := os.environ.get("TIKTOKEN_CACHE_DIR"):
        found.append(Path(chosen))
    with suppress(ImportError, ValueError):
        spec = find_spec("litellm")
        for place in (spec.submodule_search_locations if spec else None) or ():
            found.append(Path(place) / "litellm_core_utils" / "tokenizers")
    return found


def _load(encoding: str, folder: Path) -> Callable[[str], int]:
    """tiktoken's count; the process's environment is as before afterwards."""
    import tiktoken  # noqa: PLC0415

    definitions = import_module("tiktoken_ext.openai_public")
    known = getattr(definitions, encoding).__code__.co_consts
    if _URL.format(encoding) not in known or _SHA256[encoding] not in known:
        raise ValueError("this tiktoken reads another file, and would fetch it")
    with _ENVIRONMENT:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            loaded = tiktoken.get_encoding(encoding)
        finally:
            if before is None:
                os.environ.pop("TIKTOKEN_CACHE_DIR", None)
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
    # Text that spells a special token ("<|endoftext|>") is text, not an error.
    return lambda text: len(loaded.encode(text, disallowed_special=()))
