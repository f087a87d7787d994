"""The simulator's stores: opened again after each crash, with what the last checkpoint wrote."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Protocol

from duetime.store.memory import MemoryStore
from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import Store

# In memory if the system has such a folder: the simulator loses power, not the host.
_FAST = Path("/dev/shm")


class DurableStore(Protocol):
    """A store that can be opened again."""

    def open(self) -> Store: ...

    def close(self) -> None: ...


class DurableMemoryStore:
    """The reference store."""

    def __init__(self) -> None:
        self._store = MemoryStore(durable=True)

    def open(self) -> Store:
        self._store = self._store.reopen()
        return self._store

    def close(self) -> None:
        pass


class DurableSqliteStore:
    """The embedded store, in a folder of its own."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="duetime-", dir=_FAST if _FAST.is_dir() else None))
        self._store: SqliteStore | None = None

    def open(self) -> Store:
        if self._store is not None:
            self._store.close()
        self._store = SqliteStore(self._folder / "state.db")
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
        shutil.rmtree(self._folder, ignore_errors=True)
