"""The stores, held to the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from duetime.store.memory import MemoryStore
from duetime.store.sqlite.store import SqliteStore
from duetime.testing.contracts.store import OpenStore, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        handles = [MemoryStore(durable=True)]

        def open_next() -> MemoryStore:
            handles.append(handles[-1].reopen())
            return handles[-1]

        return open_next


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: SqliteStore(tmp_path / "store.db")
