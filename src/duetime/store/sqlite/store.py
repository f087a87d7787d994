"""The embedded store: intents due soon in memory, all intents on disk, in one SQLite file.

In memory (`_hot`) is every intent that the kernel may hold (see `is_hot`) and every one changed since the
last checkpoint; the rest is on disk only and costs nothing until it is read. A checkpoint writes
each changed intent once, however often it changed, and the position, in one transaction.

While a checkpoint is being written the kernel continues. If an intent is about to change before its row
was made, its row is made at once (`touch`), so the transaction is a snapshot of one moment. Rows are made in
the caller's thread, a slice at a time; SQLite works in another thread with statements of many rows, which
leaves the interpreter free in the meantime.

Rows carry a checksum over everything in them. Damage is raised with its place, never returned.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from duetime.errors import Damaged, Mixed
from duetime.limits import ABSENT_KEYS_KEPT, CHECKPOINT_WRITE_BYTES, LARGE_PAYLOAD_BYTES
from duetime.os_errors import UNREADABLE, of_store, store_told
from duetime.protocol.checkpoint import Checkpoint, Marks
from duetime.protocol.intent import Intent, Status
from duetime.store.archive import Archive
from duetime.store.claims import Claims
from duetime.store.sqlite import rows, schema
from duetime.store.sqlite.purge import purge
from duetime.store.sqlite.rows import Value
from duetime.store.store import SEQ_MAX, Edge, Job, claim_of, forgotten, is_hot, pause, settled

# Rows made before control returns to the loop: about a millisecond of work.
_SLICE = 250
# Ids made by Duetime begin with their time in hexadecimal digits, and are below this one until 2039.
_NEXT_AGE = "2"

_encode = msgspec.msgpack.Encoder().encode
_decode_checkpoint = msgspec.msgpack.Decoder(Checkpoint).decode

_SELECT = f"SELECT {', '.join(schema.COLUMNS)} FROM intents"


class SqliteStore:
    """Hot intents in memory, all intents in a file."""

    def __init__(self, path: Path, *, at_load: bool = False) -> None:
        """With `at_load` the file is not touched before `load`, when the caller holds the folder's lock."""
        self.edge: Edge = (0, 0)
        self.cycle = 1
        self._path = path
        self._reader: sqlite3.Connection
        self._writer: sqlite3.Connection
        self._open = False
        if not at_load:
            self._connect()
        self._hot: dict[str, Intent] = {}
        self._absent = ""
        """An id that was just looked up and is not on disk: creating it causes more than one look-up."""
        self._keys: dict[str, str] = {}
        self._absent_keys: set[str] = set()
        """Keys that were just looked up and are not on disk, for the same reason."""
        self._claims = Claims()
        self._large = _LargePayloads()
        self._changed: dict[str, Intent] = {}
        self._frozen: dict[str, Intent] = {}
        """The intents that the current checkpoint is writing, until they are on disk."""
        self._unrowed_cycle = -1
        """While a checkpoint is made: intents last touched in this cycle belong to it and have no row yet."""
        self._rows: list[Value] = []
        self._marks = Marks()
        self._warm = rows.Decoder(path).intent
        self._deferred: dict[str, Intent] = {}
        """Changed intents that wake after the edge and may not be on disk yet."""

    def _connect(self) -> None:
        self._reader = schema.connect(self._path)
        try:
            self._writer = schema.connect(self._path)
        except BaseException:
            self._reader.close()
            raise
        self._open = True
        try:
            schema.migrate(self._writer, self._path)
            self._newest = self._newest_on_disk()
        except BaseException:
            self.close()
            raise

    def join(self, folder: str) -> None:
        """Bind the store to this folder; raises `Mixed` if it belongs to another."""
        found = next(self._read("SELECT id FROM folder"), None)
        if found is None:
            with store_told(self._path):
                self._writer.execute("INSERT INTO folder (one, id) VALUES (1, ?)", (folder,))
        elif found[0] != folder:
            raise Mixed(
                f"{self._path} is of the folder {found[0]}, and the log is of {folder}:"
                " they do not belong together."
            )

    # Calls of the kernel.

    def load(self) -> Checkpoint | None:
        if not self._open:
            self._connect()
        row = next(self._read("SELECT body, crc FROM checkpoint"), None)
        if row is None:
            return None
        body, crc = row
        if type(body) is not bytes or crc32(body) != crc:
            raise Damaged(f"{self._path}: the checkpoint's row does not match its checksum.")
        checkpoint = _decode_checkpoint(body)
        self._marks = checkpoint.marks
        return checkpoint

    def get(self, id: str) -> Intent | None:
        intent = self._hot.get(id)
        if intent is None:
            if id == self._absent or self._newest < id < _NEXT_AGE:
                return None
            row = next(self._read(f"{_SELECT} WHERE id = ?", (id,)), None)
            if row is None:
                self._absent = id
                return None
            intent = self._warm(row)
        return None if intent.ended and forgotten(intent, self._marks) else intent

    def by_key(self, key: str) -> Intent | None:
        id = self._keys.get(key)
        newest = self.get(id) if id is not None else None
        if newest is not None and newest.rare is not None and newest.rare.key == key:
            return newest
        if id is None and key in self._absent_keys:
            return None
        there = False
        newest = None  # forgotten, and its id may belong to another intent now
        for row in self._read(f"{_SELECT} WHERE key = ? ORDER BY seq DESC", (key,)):
            there = True
            found = self.get(row[1])
            if found is not None and found.seq == row[0]:
                newest = found
                break
        if id is not None:  # the newest one is forgotten, and an older one may not be on disk yet
            for intent in self._hot.values():
                if intent.rare is not None and intent.rare.key == key and not forgotten(intent, self._marks):
                    newest = intent if newest is None or intent.seq > newest.seq else newest
        elif not there:
            if len(self._absent_keys) >= ABSENT_KEYS_KEPT:
                self._absent_keys.clear()
            self._absent_keys.add(key)
        return newest

    def by_claim(self, name: str) -> Intent | None:
        newest = self._claims.newest(name, self._marks)
        for row in self._read(f"{_SELECT} WHERE claim = ? ORDER BY seq DESC", (name,)):
            if newest is not None and newest.seq >= row[0]:
                break
            found = self.get(row[1])
            if found is not None and found.seq == row[0] and claim_of(found) == name:
                newest = found
                break
        return newest

    def add(self, intent: Intent) -> None:
        id = intent.id
        intent.cycle = self.cycle
        self._hot[id] = self._changed[id] = intent
        if len(intent.payload) >= LARGE_PAYLOAD_BYTES:
            self._large.note(intent)
        if intent.rare is not None:
            if intent.rare.key is not None:
                self._keys[intent.rare.key] = id
            self._claims.note(intent)

    def touch(self, intent: Intent) -> None:
        id = intent.id
        if intent.cycle == self._unrowed_cycle:
            rows.add(self._rows, intent)
        intent.cycle = self.cycle
        self._changed[id] = intent
        self._hot[id] = intent
        if len(intent.payload) >= LARGE_PAYLOAD_BYTES:
            self._large.note(intent)
        if intent.rare is not None:
            self._claims.note(intent)

    def defer(self, intent: Intent) -> None:
        self._deferred[intent.id] = intent

    def held(self) -> Iterator[Intent]:
        for row in self._read(f"{_SELECT} WHERE hot = 1 ORDER BY seq"):
            yield self._keep(self._warm(row))

    def window(self, until_ms: int, limit: int) -> list[Intent]:
        # As two queries: with (wake_at_ms, seq) > (?, ?), SQLite walks all rows of the edge's own
        # millisecond. The edge comes before 0: of two bounds on one column, SQLite starts at the one it reads
        # first.
        query = f"{_SELECT} WHERE wake_at_ms = ? AND seq > ? AND wake_at_ms > 0 ORDER BY seq LIMIT ?"
        edge_ms = self.edge[0]
        read = list(self._read(query, (*self.edge, limit))) if edge_ms <= until_ms else []
        query = f"{_SELECT} WHERE wake_at_ms > ? AND wake_at_ms <= ? AND wake_at_ms > 0"
        query = f"{query} ORDER BY wake_at_ms, seq LIMIT ?"
        read += self._read(query, (edge_ms, until_ms, limit - len(read)))
        end: Edge = (read[-1][5], read[-1][0]) if len(read) == limit else (until_ms, SEQ_MAX)
        found = {row[1]: self._hot.get(row[1]) or self._warm(row) for row in read}
        found.update(self._deferred)  # entries newer than the disk replace the rows found
        within = [self._keep(intent) for intent in found.values() if self._wakes_by(intent, end)]
        for intent in within:
            self._deferred.pop(intent.id, None)
        within.sort(key=lambda intent: (intent.wake_at_ms, intent.seq))
        self.edge = max(self.edge, end)
        return within

    def _wakes_by(self, intent: Intent, end: Edge) -> bool:
        wake_at_ms = intent.wake_at_ms
        return wake_at_ms > 0 and self.edge < (wake_at_ms, intent.seq) <= end

    def next_wake(self) -> int | None:
        query = "SELECT wake_at_ms FROM intents WHERE wake_at_ms = ? AND seq > ? AND wake_at_ms > 0 LIMIT 1"
        found = next(self._read(query, self.edge), None)
        if found is None:
            query = "SELECT min(wake_at_ms) FROM intents WHERE wake_at_ms > ? AND wake_at_ms > 0"
            found = next(self._read(query, self.edge[:1]))
        wake: int | None = found[0]
        never = (1 << 62, 0)
        for intent in self._deferred.values():
            if self._wakes_by(intent, never) and (wake is None or intent.wake_at_ms < wake):
                wake = intent.wake_at_ms
        return wake

    def forget(self, marks: Marks) -> None:
        self._marks = marks

    def page(
        self, statuses: tuple[Status, ...] | None, lane: str | None, before_seq: int, limit: int
    ) -> list[Intent]:
        found = {
            intent.seq: intent
            for intent in self._hot.values()
            if intent.seq < before_seq and _matches(intent, statuses, lane)
        }
        where, values = ["seq < ?"], [before_seq]  # type: tuple[list[str], list[int | str]]
        if statuses is not None:
            where.append(f"status IN ({', '.join(str(int(status)) for status in statuses)})")
        if lane is not None:
            where.append("lane = ?")
            values.append(lane)
        query = f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY seq DESC"
        wanted = limit
        for row in self._read(query, values):
            if wanted == 0:
                break
            if row[1] in self._hot:
                continue
            intent = self._warm(row)
            if _matches(intent, statuses, lane) and not forgotten(intent, self._marks):
                found[intent.seq] = intent
                wanted -= 1
        newest = sorted(found.values(), key=lambda intent: -intent.seq)
        return [intent for intent in newest if not forgotten(intent, self._marks)][:limit]

    # The checkpoint.

    def checkpoint(self, checkpoint: Checkpoint) -> Iterator[Job]:
        assert self._unrowed_cycle < 0 and not self._rows, "one checkpoint at a time"
        frozen, self._changed = self._changed, {}
        self._frozen = frozen
        self._unrowed_cycle = self.cycle
        self._absent_keys.clear()
        self._absent = ""  # from here on, an intent created since may be on disk only
        self.cycle += 1
        body = _encode(checkpoint)
        done = False
        try:
            yield rows.in_room(self._path, lambda: rows.begin(self._writer))
            size = 0
            for count, intent in enumerate(frozen.values(), 1):
                if intent.cycle == self._unrowed_cycle:
                    intent.cycle = 0
                    size += rows.add(self._rows, intent)
                if len(self._rows) >= rows.AT_ONCE * rows.WIDTH or size >= CHECKPOINT_WRITE_BYTES:
                    size = 0
                    yield self._write()
                elif count % _SLICE == 0:
                    yield pause
            yield self._write()
            yield rows.in_room(self._path, lambda: rows.commit(self._writer, body))
            yield settled
            done = True
        finally:
            self._unrowed_cycle = -1
            self._frozen = {}
            if not done:
                self._abandon(frozen)
        yield from self._cool(frozen)
        yield rows.in_room(self._path, lambda: purge(self._writer, checkpoint.marks, len(frozen)))
        yield settled

    def _write(self) -> Job:
        """A job that writes the rows made so far."""
        made, self._rows = self._rows, []
        newest = self._newest
        self._newest = max((id for id in rows.ids(made) if newest < id < _NEXT_AGE), default=newest)
        return rows.in_room(self._path, lambda: rows.write(self._writer, made))

    def unwritten(self) -> int:
        return len(self._changed)

    def deferred(self) -> int:
        return len(self._deferred)

    def changed(self) -> list[Intent]:
        return [*self._frozen.values(), *self._changed.values()]

    def peek(self, id: str) -> Intent | None:
        return self._hot.get(id)

    def hot(self) -> int:
        return len(self._hot)

    def large_bytes(self) -> int:
        return self._large.bytes

    def archive(self) -> Archive:
        return Archive(self._path)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._reader.close()
            self._writer.close()

    def _abandon(self, frozen: dict[str, Intent]) -> None:
        """The checkpoint was not finished: its intents are still newer than the disk."""
        self._rows = []
        for intent in frozen.values():
            intent.cycle = self.cycle
        self._changed = {**frozen, **self._changed}
        if self._writer.in_transaction:
            self._writer.rollback()

    def _cool(self, written: dict[str, Intent]) -> Iterator[Job]:
        """Evict intents that are on disk now and need not be in memory, a slice at a time."""
        hot, changed, deferred, large = self._hot, self._changed, self._deferred, self._large
        for count, (id, intent) in enumerate(written.items(), 1):
            if id not in changed and not is_hot(intent, self.edge):
                hot.pop(id, None)
                if large.bytes:
                    large.drop(id)
                deferred.pop(id, None)
                rare = intent.rare
                if rare is not None:
                    if rare.key is not None and self._keys.get(rare.key) == id:
                        del self._keys[rare.key]
                    self._claims.drop(intent)
            if count % (8 * _SLICE) == 0:
                yield pause

    # From disk into memory.

    def _newest_on_disk(self) -> str:
        """The highest id of this age on disk. Most new ids are above it, so they need no look-up."""
        return next(self._read("SELECT max(id) FROM intents WHERE id < ?", (_NEXT_AGE,)))[0] or ""

    def _read(self, query: str, values: Sequence[int | str] = ()) -> Iterator[Any]:
        """Rows, one by one. An error inside SQLite's file counts as damage, too."""
        try:
            yield from self._reader.execute(query, values)
        except sqlite3.ProgrammingError:
            raise  # an error of ours, not of the file
        except UNREADABLE as error:
            raise of_store(error, self._path) from error

    def _keep(self, intent: Intent) -> Intent:
        """Keep in memory an intent that the kernel will hold."""
        # Not into `_keys`: a newer intent with this key may be on disk only. `by_key` finds the newest on
        # disk.
        self._hot[intent.id] = intent
        if len(intent.payload) >= LARGE_PAYLOAD_BYTES:
            self._large.note(intent)
        return intent


def _matches(intent: Intent, statuses: tuple[Status, ...] | None, lane: str | None) -> bool:
    return (statuses is None or intent.status in statuses) and (lane is None or intent.terms.lane == lane)


class _LargePayloads:
    """The size of the large payloads in memory. Subtracts what was added for an intent, because a payload may
    be patched in between."""

    __slots__ = ("_sizes", "bytes")

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def note(self, intent: Intent) -> None:
        """This intent is in memory."""
        size = len(intent.payload)
        self.bytes += size - self._sizes.get(intent.id, 0)
        self._sizes[intent.id] = size

    def drop(self, id: str) -> None:
        """This intent is no longer in memory."""
        self.bytes -= self._sizes.pop(id, 0)
