"""The reference store: everything in a dict, simple enough to be obviously right. Also used by
`App(":memory:")`.

Like a disk it keeps, apart from the live objects, what the last complete checkpoint wrote; `reopen`
returns a new store with exactly that, as after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from duetime.protocol.checkpoint import Checkpoint, Marks
from duetime.protocol.intent import FINAL, Intent, Status
from duetime.store.archive import Archive
from duetime.store.claims import Claims
from duetime.store.store import HOT, SEQ_MAX, Edge, Job, forgotten, settled

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Intent).decode


class MemoryStore:
    """Everything in memory. `durable=False` skips checkpoints, for a store that is never reopened."""

    def __init__(self, *, durable: bool = False) -> None:
        self.edge: Edge = (0, 0)
        self.cycle = 1
        self._intents: dict[str, Intent] = {}
        self._keys: dict[str, str] = {}
        self._claims = Claims()
        self._marks = Marks()
        self._changed: dict[str, None] = {}
        self._durable = durable
        self._disk: dict[str, bytes] = {}
        self._saved: Checkpoint | None = None

    def reopen(self) -> MemoryStore:
        """A new store with what the last complete checkpoint wrote."""
        store = MemoryStore(durable=self._durable)
        store._disk, store._saved = dict(self._disk), self._saved
        for body in store._disk.values():
            intent = _decode(body)
            intent.armed = intent.cycle = 0
            store._put(intent)
        return store

    def load(self) -> Checkpoint | None:
        if self._saved is not None:
            self._marks = self._saved.marks
        return self._saved

    def get(self, id: str) -> Intent | None:
        intent = self._intents.get(id)
        if intent is None or (intent.ended and forgotten(intent, self._marks)):
            return None
        return intent

    def by_key(self, key: str) -> Intent | None:
        id = self._keys.get(key)
        return None if id is None else self.get(id)

    def by_claim(self, name: str) -> Intent | None:
        return self._claims.newest(name, self._marks)

    def add(self, intent: Intent) -> None:
        self._put(intent)
        self.touch(intent)

    def touch(self, intent: Intent) -> None:
        intent.cycle = self.cycle
        self._changed[intent.id] = None
        if intent.rare is not None:
            self._claims.note(intent)

    def defer(self, intent: Intent) -> None:
        """Nothing to do: `window` looks at everything."""

    def held(self) -> Iterator[Intent]:
        held = [i for i in self._intents.values() if i.status in HOT or i.holds]
        return iter(sorted(held, key=lambda i: i.seq))

    def window(self, until_ms: int, limit: int) -> list[Intent]:
        found = self._behind_edge(until_ms)[:limit]
        last = found[-1] if len(found) == limit else None
        self.edge = (last.wake_at_ms, last.seq) if last else max(self.edge, (until_ms, SEQ_MAX))
        return found

    def next_wake(self) -> int | None:
        wakes = (i.wake_at_ms for i in self._intents.values() if self._is_behind_edge(i))
        return min(wakes, default=None)

    def forget(self, marks: Marks) -> None:
        self._marks = marks
        gone = [i for i in self._intents.values() if forgotten(i, marks)]
        for intent in gone:
            del self._intents[intent.id]
            self._claims.drop(intent)
            self._changed[intent.id] = None
            key = intent.rare.key if intent.rare else None
            if key is not None and self._keys.get(key) == intent.id:
                del self._keys[key]
                for other in self._intents.values():  # an older one may be kept longer
                    if other.rare is not None and other.rare.key == key:
                        self._put(other)

    def page(
        self, statuses: tuple[Status, ...] | None, lane: str | None, before_seq: int, limit: int
    ) -> list[Intent]:
        found = [
            i
            for i in self._intents.values()
            if i.seq < before_seq
            and (statuses is None or i.status in statuses)
            and (lane is None or i.terms.lane == lane)
        ]
        found.sort(key=lambda i: -i.seq)
        return found[:limit]

    def checkpoint(self, checkpoint: Checkpoint) -> Iterator[Job]:
        self.cycle += 1
        if not self._durable:
            self._changed.clear()
            return
        changed, self._changed = self._changed, {}
        rows = {id: _encode(self._intents[id]) if id in self._intents else None for id in changed}

        def commit() -> None:
            for id, body in rows.items():
                if body is None:
                    self._disk.pop(id, None)
                else:
                    self._disk[id] = body
            self._saved = checkpoint

        try:
            yield commit
            yield settled
        finally:
            if self._saved is not checkpoint:  # abandoned: the next one must write these again
                self._changed = {**changed, **self._changed}

    def unwritten(self) -> int:
        return len(self._changed)

    def deferred(self) -> int:
        return 0

    def changed(self) -> list[Intent]:
        return list(self._intents.values())

    def peek(self, id: str) -> Intent | None:
        return self._intents.get(id)

    def hot(self) -> int:
        return len(self._intents)

    def large_bytes(self) -> int:
        """Large payloads are never evicted: memory is the only place they have."""
        return 0

    def archive(self) -> Archive:
        return Archive(None)

    def close(self) -> None:
        """Nothing to close."""

    def _put(self, intent: Intent) -> None:
        self._intents[intent.id] = intent
        self._claims.note(intent)
        key = intent.rare.key if intent.rare else None
        if key is not None:
            other = self._keys.get(key)
            if other is None or other not in self._intents or self._intents[other].seq <= intent.seq:
                self._keys[key] = intent.id

    def _is_behind_edge(self, intent: Intent) -> bool:
        return (
            intent.wake_at_ms > 0
            and intent.status not in FINAL
            and (intent.wake_at_ms, intent.seq) > self.edge
        )

    def _behind_edge(self, until_ms: int) -> list[Intent]:
        found = [i for i in self._intents.values() if self._is_behind_edge(i) and i.wake_at_ms <= until_ms]
        return sorted(found, key=lambda i: (i.wake_at_ms, i.seq))
