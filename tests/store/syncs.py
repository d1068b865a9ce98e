"""Counts the syncs of one SQLite connection by putting a counter into its own file methods.

`sqlite3_file_control` hands out the open database and log files; the first word of each points to
its table of methods. A copy of that table with another `xSync` counts, and calls the real one.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3

import pytest

_FILE_POINTER, _JOURNAL_POINTER = 7, 28  # SQLITE_FCNTL_*; the journal of a WAL database is its log
_METHODS = 19  # words of sqlite3_io_methods, version 3
_SYNC = 5  # its word for xSync
_FOREVER: list[object] = []  # SQLite calls through the tables until the connection is closed
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class SyncCounter:
    """Counts syncs of the database file and of the log from now on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        library = ctypes.CDLL(_sqlite3.__file__)
        if not hasattr(library, "sqlite3_file_control"):
            pytest.skip("this Python hides the functions of its SQLite")
        handle = ctypes.c_void_p.from_address(id(connection) + object.__basicsize__)
        self.database = 0
        self.log = 0
        for name, what in (("database", _FILE_POINTER), ("log", _JOURNAL_POINTER)):
            file = ctypes.c_void_p()
            code = library.sqlite3_file_control(handle, b"main", what, ctypes.byref(file))
            assert code == 0
            assert file.value, name
            self._watch(file.value, name)

    def _watch(self, file: int, name: str) -> None:
        methods = ctypes.c_void_p.from_address(file)
        assert methods.value
        table = (ctypes.c_void_p * _METHODS).from_buffer_copy(
            ctypes.string_at(methods.value, _METHODS * ctypes.sizeof(ctypes.c_void_p))
        )
        real = _Sync(table[_SYNC])

        @_Sync
        def count(opened: int, flags: int) -> int:
            setattr(self, name, getattr(self, name) + 1)
            return int(real(opened, flags))

        table[_SYNC] = ctypes.cast(count, ctypes.c_void_p).value
        _FOREVER.extend((table, count, real))
        methods.value = ctypes.addressof(table)
