"""The intents on disk, for readers other than the kernel: a separate read-only connection.

Used in a thread, one call at a time; the engine's loop never waits for it. Every read is a snapshot of one
moment (the last checkpoint, or the one before while it is being written). Later changes are in the store's
memory, and `engine.library` overlays them. Filters run inside SQLite where possible, over a bounded number of
rows at a time, so that a long search blocks nothing and resumes where it stopped.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import merge
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from zlib import crc32

import msgspec
from msgspec import Struct

from duetime.errors import Damaged, NotReady
from duetime.limits import ARCHIVE_ROWS_MAX
from duetime.os_errors import store_told
from duetime.protocol.checkpoint import Checkpoint, Marks
from duetime.protocol.filter import Filter
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DEAD_LETTERED,
    DISPATCHING,
    DUE,
    EXPIRED,
    PURGED_MS,
    SCHEDULED,
    Intent,
    Status,
)
from duetime.store.sqlite import schema
from duetime.store.store import forgotten

# Values in one statement; SQLite allows 32,766 variables.
_MANY = 5_000

Order = Literal["newest", "due"]
Key = tuple[int, int]
"""A place in an order: by falling seq, or by rising time and seq. Keys are rising in both orders."""
FIRST: Key = (-(1 << 62), 0)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Intent).decode
_decode_checkpoint = msgspec.msgpack.Decoder(Checkpoint).decode

_RARE = (BLOCKED, DEAD_LETTERED, EXPIRED, CANCELED)
_IS_RARE = "status IN (3, 5, 6, 7)"  # spelled as in the index, or SQLite does not use the index
# The queue as shown to users: all entities of a type are one queue.
_QUEUE = "CASE WHEN lane GLOB 'entity:*/*' THEN substr(lane, 1, instr(lane, '/') - 1) ELSE lane END"


class Scan(Struct):
    """Intents in order, and how far the search got: None if there are no more."""

    found: list[tuple[Key, Intent]]
    end: Key | None


class Standing(Struct):
    """Rows at a moment: counts by (tier, status), and the rows whose status only their history tells."""

    counts: dict[tuple[int, int], int]
    open_counts: dict[int, int]
    """By tier, the number of intents that `open` holds."""
    open: Iterator[Intent]


def key_of(intent: Intent, order: Order) -> Key:
    """An intent's place in an order. By time: when it wakes next, or otherwise when it was to be executed."""
    if order == "newest":
        return (-intent.seq, 0)
    return (intent.wake_at_ms if intent.status is SCHEDULED else intent.execute_at_ms, intent.seq)


def queue_of(lane: str) -> str:
    """The queue of a lane as shown to users: all entities of a type are one queue."""
    return lane.partition("/")[0] if lane.startswith("entity:") else lane


class Archive:
    """Rows, read only. Without a path there are none: everything is in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def moment(self) -> Iterator[bool]:
        """All reads inside see the same snapshot. False: there is nothing on disk."""
        connection = self._open()
        if connection is None:
            yield False
            return
        assert self.path is not None
        with store_told(self.path):
            connection.execute("BEGIN")
            try:
                yield True
            finally:
                connection.execute("COMMIT")

    def checkpoint(self) -> Checkpoint | None:
        """The kernel's checkpoint in this snapshot."""
        row = next(self._read("SELECT body, crc FROM checkpoint"), None)
        if row is None:
            return None
        body, crc = row
        if type(body) is not bytes or crc32(body) != crc:
            raise Damaged(f"{self.path}: the checkpoint's row does not match its checksum.")
        return _decode_checkpoint(body)

    def newest_seq(self) -> int:
        """The highest seq on disk."""
        newest: int | None = next(self._read("SELECT max(seq) FROM intents"), (None,))[0]
        return newest or 0

    def marks(self) -> Marks:
        """Which finished intents were forgotten in this snapshot."""
        checkpoint = self.checkpoint()
        return checkpoint.marks if checkpoint is not None else Marks()

    def get(self, id: str) -> Intent | None:
        row = next(self._read("SELECT seq, crc, body FROM intents WHERE id = ?", (id,)), None)
        intent = None if row is None else self._intent(row)
        return None if intent is None or forgotten(intent, self.marks()) else intent

    def finished(self, rows: int) -> Iterator[Intent]:
        """The acknowledged intents among the newest rows, newest first."""
        newest = "SELECT seq, status, crc, body FROM intents ORDER BY seq DESC LIMIT ?"
        for row in self._read(f"SELECT seq, crc, body FROM ({newest}) WHERE status = {int(ACKED)}", (rows,)):
            yield self._intent(row)

    # Pages.

    def page(self, filter: Filter, order: Order, after: Key, limit: int, marks: Marks) -> Scan:
        """Up to `limit` intents after a place. Fewer, with the place reached, if the search hit its bound."""
        where, values = _conditions(filter)
        scans = [
            self._scan(source, where, values, order, after, limit)
            for source in _sources(filter.statuses, order)
        ]  # fmt: skip
        ends = [end for _, end in scans if end is not None]
        end = min(ends) if ends else None
        keys = [key for key in merge(*(found for found, _ in scans)) if end is None or key[:2] <= end]
        if len(keys) > limit:
            keys = keys[:limit]
            end = keys[-1][:2]
        bodies = self._rows([key[2] for key in keys])
        found = [
            (key[:2], intent)
            for key in keys
            if (intent := bodies[key[2]]) is not None
            and filter.matches(intent)
            and not forgotten(intent, marks)
        ]
        return Scan(found, end)

    def _scan(
        self, source: _Source, where: str, values: Sequence[object], order: Order, after: Key, limit: int
    ) -> tuple[list[tuple[int, int, int]], Key | None]:
        """The matching keys and seqs, and the place reached if the search did not get to the end."""
        if order == "newest":
            behind, key, by = "seq < ?", "-seq, 0", "seq DESC"
            place: list[object] = [min(-after[0], 1 << 62)]
        else:
            column = "wake_at_ms" if source.waking else "execute_at_ms"
            behind, key, by = f"({column}, seq) > (?, ?)", f"{column}, seq", f"{column}, seq"
            place = [*after]
        # The place first: of two bounds on one column, SQLite starts its walk at the one it reads first.
        rows = f"FROM intents WHERE {behind} AND {source.where} ORDER BY {by} LIMIT ?"
        body = ", body" if "body" in where else ""
        columns = f"seq, status, tier, lane, execute_at_ms, wake_at_ms{body}"
        budget = ARCHIVE_ROWS_MAX if not body else ARCHIVE_ROWS_MAX // 4
        query = f"SELECT {key}, seq FROM (SELECT {columns} {rows}) WHERE {source.status}{where} LIMIT ?"
        found = list(self._read(query, [*place, budget, *values, limit]))
        if len(found) >= limit:
            return found, (found[-1][0], found[-1][1])
        last = next(self._read(f"SELECT {key} {rows} OFFSET {budget - 1}", [*place, 1]), None)
        return found, last

    def _rows(self, seqs: list[int]) -> dict[int, Intent | None]:
        found: dict[int, Intent | None] = dict.fromkeys(seqs)
        for part in _parts(seqs):
            marks = ",".join("?" * len(part))
            for row in self._read(f"SELECT seq, crc, body FROM intents WHERE seq IN ({marks})", part):
                found[row[0]] = self._intent(row)
        return found

    # Counts.

    def slots(self, from_ms: int, to_ms: int, slot_ms: int) -> dict[tuple[int, int, str], int]:
        """The number of intents that wake in each slot, by (slot, tier, queue)."""
        query = (
            f"SELECT (wake_at_ms - :from) / :slot * 8 + tier, {_QUEUE} AS queue, count(*) FROM intents"
            " WHERE wake_at_ms >= :from AND wake_at_ms < :to AND status = 0 AND wake_at_ms > 0"
            " GROUP BY 1, 2"  # slot and tier in one number: SQLite sorts, and numbers sort quickly
        )
        rows = self._read(query, {"from": from_ms, "to": to_ms, "slot": slot_ms})
        return {(both >> 3, both & 7, queue): count for both, queue, count in rows}

    def waking(self, seqs: Sequence[int]) -> Iterator[tuple[int, int, str]]:
        """The wake time, tier and queue of those of these intents that are scheduled on disk."""
        for part in _parts(seqs):
            marks = ",".join("?" * len(part))
            yield from self._read(
                f"SELECT wake_at_ms, tier, {_QUEUE} FROM intents WHERE seq IN ({marks}) AND status = 0", part
            )

    def standing(self, at_ms: int) -> Standing:
        """The number of rows of each tier and status at a moment. Rows that were live and past their time,
        and rows with a longer history, are returned as intents: only their history tells their status."""
        counts: dict[tuple[int, int], int] = {}
        open_counts: dict[int, int] = {}
        query = f"SELECT tier, {_STATUS_AT}, count(*) FROM intents WHERE {_THERE} GROUP BY 1, 2"
        for tier, was, count in self._read(query, {"at": at_ms}):
            if was >= 0:
                counts[tier, was] = count
            else:
                open_counts[tier] = count
        query = f"SELECT seq, crc, body FROM intents WHERE {_THERE} AND {_STATUS_AT} < 0"
        return Standing(counts, open_counts, (self._intent(row) for row in self._read(query, {"at": at_ms})))

    def stood(self, at_ms: int, seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
        """(tier, status) of those of these rows that `standing` counts by their columns."""
        for part in _parts(seqs):
            listed = ",".join(map(str, part))
            query = (
                f"SELECT tier, {_STATUS_AT} AS was FROM intents"
                f" WHERE seq IN ({listed}) AND {_THERE} AND was >= 0"
            )
            yield from self._read(query, {"at": at_ms})

    # From rows to intents.

    def _open(self) -> sqlite3.Connection | None:
        if self._connection is None and self.path is not None and self.path.exists():
            place = f"file:{quote(str(self.path))}?mode=ro"
            with store_told(self.path):
                connection = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)
                try:
                    connection.execute("PRAGMA cache_size = -8192")
                    connection.execute("PRAGMA mmap_size = 1073741824")
                    if schema.version_of(connection) != len(schema.MIGRATIONS):
                        raise NotReady("The store is being migrated to this version.")
                except BaseException:
                    connection.close()
                    raise
            self._connection = connection
        return self._connection

    def _read(self, query: str, values: Any = ()) -> Iterator[Any]:
        connection = self._open()
        if connection is None:
            return
        yield from connection.execute(query, values)

    def _intent(self, row: tuple[int, int, bytes]) -> Intent:
        seq, crc, body = row
        intent = _decode(body) if type(body) is bytes and crc32(body) == crc else None
        if intent is None or intent.seq != seq:
            raise Damaged(f"{self.path}: the row {seq} of the table intents does not match its checksum.")
        return intent


_THERE = f"created_at_ms <= :at AND finished_at_ms <> {PURGED_MS}"
# The status of a row at :at as far as its columns tell; -1 where they do not.
_STATUS_AT = (
    "CASE WHEN ended > 0 AND finished_at_ms <= :at THEN status"
    " WHEN hot = 0 AND execute_at_ms > :at THEN 0 ELSE -1 END"
)


class _Source(Struct, frozen=True):
    """Rows that SQLite returns in order without sorting, or that are few."""

    where: str
    """A condition that follows an index."""
    status: str
    """A further condition on the status."""
    waking: bool = False


def _sources(statuses: tuple[Status, ...], order: Order) -> list[_Source]:
    """The sources to read intents with these statuses from. No statuses and newest first: all intents."""
    numbers = ", ".join(str(int(status)) for status in statuses)
    wanted = f"status IN ({numbers})" if statuses else "1"
    if order == "newest" and (not statuses or SCHEDULED in statuses or ACKED in statuses):
        return [_Source("1", wanted)]
    found = [_Source(f"{_IS_RARE} AND status = {int(each)}", "1") for each in statuses if each in _RARE]
    if DUE in statuses or DISPATCHING in statuses:
        found.append(_Source("hot = 1", f"{wanted} AND status IN (1, 2)"))
    if SCHEDULED in statuses:
        found.append(_Source("wake_at_ms > 0", "status = 0", waking=True))
    if ACKED in statuses:
        found.append(_Source(f"status = {int(ACKED)}", "1"))
    return found


def _conditions(filter: Filter) -> tuple[str, list[object]]:
    """The filter as SQL. Tags and names are searched in the encoded body as bytes and checked again later."""
    where, values = "", []  # type: str, list[object]
    for condition, value in (
        ("tier = ?", filter.tier),
        ("lane = ?", filter.lane),
        ("execute_at_ms >= ?", filter.from_ms),
        ("execute_at_ms < ?", filter.to_ms),
    ):
        if value is not None:
            where += f" AND {condition}"
            values.append(value)
    if filter.queue is not None:
        where += " AND lane = ?"
        values.append(f"task:{filter.queue}")
    if filter.entity is not None:
        where += " AND (lane = ? OR substr(lane, 1, ?) = ?)"
        prefix = f"entity:{filter.entity}/"
        values += [f"entity:{filter.entity}", len(prefix), prefix]
    needles = [_encode(name) + _encode(value) for name, value in filter.tags.items()]
    if filter.task is not None:
        needles.append(_encode("task") + _encode(filter.task))
    for needle in needles:
        where += " AND instr(body, ?) > 0"
        values.append(needle)
    return where, values


def _parts(seqs: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(seqs), _MANY):
        yield seqs[start : start + _MANY]
