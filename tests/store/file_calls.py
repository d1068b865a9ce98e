"""Sees what SQLite does to its files: every creation, write, truncation, sync and deletion.

`sqlite3_vfs_find` hands out the table by which SQLite reaches the system. While `watched` holds,
two words of that table (open, delete) and three of each file that is opened (write, truncate, sync)
point here; an observer is told before and after, and the real function does the work.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import pytest

_WORD = ctypes.sizeof(ctypes.c_void_p)
_VFS_OPEN, _VFS_DELETE = 16 + 3 * _WORD, 16 + 4 * _WORD  # after three ints and three pointers
_METHODS = 19  # words of sqlite3_io_methods, version 3
_WRITE, _TRUNCATE, _SYNC = 3, 4, 5

_int, _long, _void = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
_Open = ctypes.CFUNCTYPE(_int, _void, _void, _void, _int, _void)
_Delete = ctypes.CFUNCTYPE(_int, _void, _void, _int)
_Write = ctypes.CFUNCTYPE(_int, _void, _void, _int, _long)
_Truncate = ctypes.CFUNCTYPE(_int, _void, _long)
_Sync = ctypes.CFUNCTYPE(_int, _void, _int)
_FOREVER: list[object] = []  # SQLite calls through a file's table until the file is closed


@dataclass(frozen=True, slots=True)
class Call:
    """One call that changes a file, or makes its changes durable."""

    kind: Literal["create", "write", "truncate", "sync", "delete"]
    path: str
    offset: int = 0
    """Of a write; the new size of a truncation."""
    data: bytes = b""
    folder: bool = False
    """Of a deletion: the folder is synced with it."""


class Observer(Protocol):
    """Told of each call; what it raises is printed and goes no further."""

    def before(self, call: Call) -> None: ...

    def after(self, call: Call) -> None: ...


@contextmanager
def watched(observer: Observer, *, sync: bool = True) -> Iterator[None]:
    """Watch the files that this process opens from now on; without `sync` none is really synced.

    A process that is killed loses nothing for that, since what it wrote is with the kernel.
    """
    library = ctypes.CDLL(_sqlite3.__file__)
    if not hasattr(library, "sqlite3_vfs_find"):
        pytest.skip("this Python hides the functions of its SQLite")
    library.sqlite3_vfs_find.restype = _void
    vfs = library.sqlite3_vfs_find(None)
    slots = [_void.from_address(vfs + at) for at in (_VFS_OPEN, _VFS_DELETE)]
    kept = [slot.value for slot in slots]
    hooks = _folder_hooks(observer, _Open(kept[0]), _Delete(kept[1]), sync)
    try:
        for slot, hook in zip(slots, hooks, strict=True):
            slot.value = ctypes.cast(hook, _void).value
        yield
    finally:
        for slot, before in zip(slots, kept, strict=True):
            slot.value = before


def _folder_hooks(
    observer: Observer, real_open: Callable[..., int], real_delete: Callable[..., int], sync: bool
) -> tuple[object, object]:
    @_Open
    def opened(vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        # The pointer is handed on as it is: SQLite keeps more behind the end of the name.
        path = os.fsdecode(ctypes.string_at(name)) if name else ""
        create = Call("create", path) if path and not Path(path).exists() else None
        if create:
            observer.before(create)
        code = real_open(vfs, name, file, flags, out)
        if code == 0 and path:
            if create:
                observer.after(create)
            _watch(file, path, observer, sync)
        return code

    @_Delete
    def deleted(vfs: int, name: int, folder: int) -> int:
        path = os.fsdecode(ctypes.string_at(name))
        call = Call("delete", path, folder=bool(folder)) if Path(path).exists() else None
        if call:
            observer.before(call)
        code = real_delete(vfs, name, folder if sync else 0)
        if call:
            observer.after(call)
        return code

    _FOREVER.extend((opened, deleted))
    return opened, deleted


def _watch(file: int, path: str, observer: Observer, sync: bool) -> None:
    """Give one open file a table of its own."""
    methods = _void.from_address(file)
    assert methods.value
    table = (_void * _METHODS).from_buffer_copy(ctypes.string_at(methods.value, _METHODS * _WORD))
    real_write, real_truncate = _Write(table[_WRITE]), _Truncate(table[_TRUNCATE])
    real_sync = _Sync(table[_SYNC])

    def through(call: Call, real: Callable[[], int]) -> int:
        observer.before(call)
        code = real()
        observer.after(call)
        return code

    @_Write
    def write(opened: int, data: int, size: int, offset: int) -> int:
        call = Call("write", path, offset, ctypes.string_at(data, size))
        return through(call, lambda: real_write(opened, data, size, offset))

    @_Truncate
    def truncate(opened: int, size: int) -> int:
        return through(Call("truncate", path, size), lambda: real_truncate(opened, size))

    @_Sync
    def synced(opened: int, flags: int) -> int:
        return through(Call("sync", path), lambda: real_sync(opened, flags) if sync else 0)

    for word, hook in ((_WRITE, write), (_TRUNCATE, truncate), (_SYNC, synced)):
        table[word] = ctypes.cast(hook, _void).value
    _FOREVER.extend((table, write, truncate, synced, real_write, real_truncate, real_sync))
    methods.value = ctypes.addressof(table)
