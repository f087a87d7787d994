"""The file's version, and the way from one to the next."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from duetime.errors import TooNew
from duetime.store.sqlite import schema
from duetime.store.sqlite.store import SqliteStore
from duetime.testing.contracts.store_tools import got, make, put, save


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return number


def test_a_new_file_is_of_this_version(tmp_path):
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    assert version(path) == len(schema.MIGRATIONS)


def test_a_newer_file_is_refused_and_not_touched(tmp_path):
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(TooNew, match=str(path)):
        SqliteStore(path)
    assert version(path) == len(schema.MIGRATIONS) + 1


def test_an_older_file_is_brought_here_with_all_it_has(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    put(store, make(1, 90_000, payload=b"kept"))
    save(store)
    store.close()
    monkeypatch.setattr(
        schema,
        "MIGRATIONS",
        (*schema.MIGRATIONS, "CREATE TABLE extra (n INTEGER); INSERT INTO extra VALUES (7);"),
    )
    again = SqliteStore(path)
    assert got(again, "i1").payload == b"kept"
    again.close()
    assert version(path) == len(schema.MIGRATIONS)
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM extra").fetchone() == (1,), "each step is taken once"
    connection.close()


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    put(store, make(1, 90_000))
    save(store)
    store.close()
    good = schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", (*good, "CREATE TABLE extra (n INTEGER); NONSENSE;"))
    with pytest.raises(Exception, match=str(path)):
        SqliteStore(path)
    monkeypatch.setattr(schema, "MIGRATIONS", good)
    assert version(path) == len(good)
    again = SqliteStore(path)
    assert got(again, "i1").id == "i1"
    again.close()
    connection = sqlite3.connect(path)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert "extra" not in tables


def test_a_commit_is_on_the_medium_when_it_returns(tmp_path):
    connection = schema.connect(tmp_path / "store.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
    connection.close()
