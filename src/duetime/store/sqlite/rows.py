"""Intents as rows of the SQLite file: how they are written and read."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import cast
from zlib import crc32

import msgspec

from duetime.bounded_cache import BoundedCache
from duetime.errors import Damaged
from duetime.limits import TERMS_KEPT
from duetime.os_errors import store_told
from duetime.protocol.intent import Intent
from duetime.protocol.terms import Terms
from duetime.store.sqlite import schema
from duetime.store.store import HOT, Job, claim_of

# Rows per statement. Each time a thread that talks to SQLite wants the interpreter's lock back from a busy
# loop, it may wait some milliseconds, so statements are large. 15 columns x 2,000 is below SQLite's limit
# of 32,766 variables.
AT_ONCE = 2_000

Columns = tuple[int, str, int, int, str, int, int, int, int, int, str | None, str | None, int]
Row = tuple[int, str, int, int, str, int, int, int, int, int, str | None, str | None, int, int, bytes]
Value = int | str | bytes | None
WIDTH = len(schema.COLUMNS)
_ONE = f"({','.join('?' * WIDTH)})"
_UPSERT = f"INSERT OR REPLACE INTO intents ({', '.join(schema.COLUMNS)}) VALUES "
_UPSERT_FULL = _UPSERT + ",".join([_ONE] * AT_ONCE)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Intent).decode


def columns(intent: Intent) -> Columns:
    """The columns of a row besides its body: for look-ups, and to detect damage in either. `hot` is 1 for an
    intent that the kernel must hold, -1 for any other with a history that the columns do not show, otherwise
    0."""
    terms, rare = intent.terms, intent.rare
    status = intent.status
    return (
        intent.seq, intent.id, int(status), int(terms.tier), terms.lane, intent.wake_at_ms,
        intent.execute_at_ms, intent.created_at_ms, intent.finished_at_ms, intent.ended,
        rare.key if rare is not None else None, claim_of(intent) if rare is not None else None,
        1 if status in HOT or intent.holds else 0 if rare is None or not (rare.history or rare.after) else -1,
    )  # fmt: skip


def add(rows: list[Value], intent: Intent) -> int:
    """Append one row; returns its size. Values are in one flat list, as SQLite takes them: no object is made
    per row."""
    body = _encode(intent)
    rows += columns(intent)
    rows += (crc32(body), body)
    return len(body)


def ids(rows: list[Value]) -> list[str]:
    return cast("list[str]", rows[1::WIDTH])


def in_room(path: Path, job: Job) -> Job:
    """The job, with SQLite's errors translated to ours: one that only lacks disk space can be tried again."""

    def run() -> None:
        with store_told(path):
            job()

    return run


def begin(writer: sqlite3.Connection) -> None:
    writer.execute("BEGIN IMMEDIATE")


def write(writer: sqlite3.Connection, rows: list[Value]) -> None:
    for start in range(0, len(rows), AT_ONCE * WIDTH):
        part = rows[start : start + AT_ONCE * WIDTH]
        count = len(part) // WIDTH
        writer.execute(_UPSERT_FULL if count == AT_ONCE else _UPSERT + ",".join([_ONE] * count), part)


def commit(writer: sqlite3.Connection, body: bytes) -> None:
    writer.execute("INSERT OR REPLACE INTO checkpoint (one, body, crc) VALUES (1, ?, ?)", (body, crc32(body)))
    writer.execute("COMMIT")


class Decoder:
    """Turns rows into intents. Damage is raised with its place, never returned."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._terms = BoundedCache[bytes, Terms](TERMS_KEPT)

    def intent(self, row: Row) -> Intent:
        body = row[14]
        intent = _decode(body) if type(body) is bytes and crc32(body) == row[13] else None
        if intent is None or columns(intent) != row[:13]:
            raise Damaged(f"{self._path}: the row {row[0]} of the table intents does not match its checksum.")
        intent.armed = intent.cycle = 0
        if intent.wake_at_ms == intent.execute_at_ms:
            intent.wake_at_ms = intent.execute_at_ms  # one object for both
        # Many intents share their terms: one object serves all of them.
        key = _encode(intent.terms)
        known = self._terms.get(key)
        if known is None:
            self._terms.keep(key, intent.terms)
        else:
            intent.terms = known
        return intent
