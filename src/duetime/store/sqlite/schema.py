"""The SQLite file: its tables, its version, and the migration from each version to the next."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from duetime import private_files
from duetime.errors import TooNew
from duetime.os_errors import store_told

COLUMNS = (
    "seq", "id", "status", "tier", "lane", "wake_at_ms", "execute_at_ms", "created_at_ms",
    "finished_at_ms", "ended", "key", "claim", "hot", "crc", "body",
)  # fmt: skip

# From version n to n + 1. Never changed once released; only appended.
MIGRATIONS = (
    """
    CREATE TABLE intents (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        status INTEGER NOT NULL,
        tier INTEGER NOT NULL,
        lane TEXT NOT NULL,
        wake_at_ms INTEGER NOT NULL,
        execute_at_ms INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL,
        finished_at_ms INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        key TEXT,
        hot INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    );
    -- Status, tier and lane ride along so that what will fire can be counted from the index alone.
    CREATE INDEX intents_wake ON intents (wake_at_ms, seq, status, tier, lane) WHERE wake_at_ms > 0;
    CREATE INDEX intents_hot ON intents (seq) WHERE hot = 1;
    CREATE INDEX intents_rare ON intents (status, seq) WHERE status IN (3, 5, 6, 7);
    CREATE INDEX intents_key ON intents (key, seq) WHERE key IS NOT NULL;
    CREATE INDEX intents_ended ON intents (ended) WHERE ended > 0 AND status <> 5 AND key IS NULL;
    CREATE INDEX intents_kept ON intents (finished_at_ms) WHERE ended > 0 AND (status = 5 OR key IS NOT NULL);
    CREATE TABLE checkpoint (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        body BLOB NOT NULL,
        crc INTEGER NOT NULL
    );
    """,
    """
    ALTER TABLE intents ADD COLUMN claim TEXT;
    CREATE INDEX intents_claim ON intents (claim, seq) WHERE claim IS NOT NULL;
    -- A claim for a time is kept like a key.
    DROP INDEX intents_ended;
    DROP INDEX intents_kept;
    CREATE INDEX intents_ended ON intents (ended)
        WHERE ended > 0 AND status <> 5 AND key IS NULL AND claim IS NULL;
    CREATE INDEX intents_kept ON intents (finished_at_ms)
        WHERE ended > 0 AND (status = 5 OR key IS NOT NULL OR claim IS NOT NULL);
    """,
    """
    -- Which folder the store belongs to; the log says it, too.
    CREATE TABLE folder (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL);
    -- Dead letters and keys are kept for different times, so each has an index in the order it is deleted by.
    DROP INDEX intents_kept;
    CREATE INDEX intents_dead ON intents (finished_at_ms) WHERE ended > 0 AND status = 5;
    CREATE INDEX intents_keyed ON intents (ended)
        WHERE ended > 0 AND status <> 5 AND (key IS NOT NULL OR claim IS NOT NULL);
    """,
)


def connect(path: Path) -> sqlite3.Connection:
    """A connection that may be used from another thread (one at a time)."""
    connection: sqlite3.Connection | None = None
    try:
        # SQLite would create it readable for others; its -wal and -shm get the permissions of this file.
        with contextlib.suppress(OSError):  # SQLite reports the error itself
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, private_files.FILE_MODE))
        with store_told(path):
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            # A commit must be on stable storage when it returns, because the log is trimmed after it.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -16384")
    except BaseException:
        if connection is not None:
            connection.close()
        raise
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the file; 0 for a new one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the file to this version."""
    with store_told(path):
        version = version_of(connection)
        if version > len(MIGRATIONS):
            raise TooNew(f"{path}: schema version {version} is newer than {len(MIGRATIONS)}.")
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
