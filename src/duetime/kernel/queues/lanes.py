"""Ready intents in their order, and which of them may go next. Owns `Lane` and `Track`.

A *lane* is a queue of ready intents that share order and limits. Inside a pushed lane, each tier has a
*track*, so that a tier out of permits does not block another; a pulled lane needs no permits and
has one track for all tiers. The order in a track is by rank: the moment an intent became due, less its
priority as seconds of head start, plus a multiple of its predicted run time if that is on its record;
among equals by acceptance. So a long intent lets shorter ones pass that come within that multiple, and none
that come later: waiting always wins in the end. Where intents have fairness keys, the keys take turns (see
`fairness`). A serial lane (an entity) has one track, ordered by acceptance alone, and lets nothing pass while
an intent that it handed out before has not ended.

Entries may be stale (cancelled, patched); an entry is valid only while its intent is due at that rank.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from duetime.kernel.queues.fairness import FairEntries, KeyShares, Ready
from duetime.limits import EXPECTED_FACTOR
from duetime.protocol.intent import DUE, Intent
from duetime.protocol.terms import PACKED_LANE, Limit

# Ranks in a serial lane: the holder comes first, then all others by acceptance.
_RANK_HOLDER = -1
_RANK_SERIAL = 0
# A track has only a heap up to this size; with more entries it also has a queue.
_FEW = 8
# Shared by all tracks and lanes that have none, and never changed: an empty list takes 56 bytes.
_NOTHING: list[Ready] = []
_NOBODY: list[str] = []


class Track:
    """The ready intents of one tier in one lane (of all tiers, in a pulled or serial lane).

    A single intent is kept without any container, a few are kept in a heap. Where more wait, most arrive in
    the order in which they go: those are in a queue, and only the others in the heap. A queue per track would
    be too large, because there may be a million tracks with one intent each. Intents with a fairness key are
    in rows of their own, and those without one form one more such row.
    """

    __slots__ = ("_heap", "_keyed", "_one", "_queue", "_rows", "lane", "listed", "out", "shares", "tier")

    def __init__(self, lane: Lane, tier: int) -> None:
        self.lane = lane
        self.tier = tier
        """0 where one track serves all tiers."""
        self._queue: deque[Ready] | None = None
        self._heap = _NOTHING
        self._one: Intent | None = None
        """The only intent, while heap and queue are empty."""
        self.listed: tuple[int, int] | Listing | None = None
        """The place of this track in its tier's heap, or its entry in the heap of its entity type."""
        self.out = 0
        """The number of its pushed deliveries in flight."""
        self.shares: KeyShares | None = None
        """Set from the first intent with a fairness key until the lane is empty."""
        self._rows: FairEntries | None = None
        self._keyed = False
        """Whether `head` returned an entry of the rows."""

    def __lt__(self, other: Track) -> bool:
        """In a heap, a dropped lane's track may meet its successor's at the same place: either may go first,
        because only one of them is listed there."""
        return False

    @property
    def ready(self) -> list[Ready]:
        """Every entry, including stale ones, in no order. For inspection, not for the hot path."""
        one = self._one
        return [
            *([(rank_of(one, self.lane.serial), one.seq, one)] if one is not None else ()),
            *(self._queue or ()),
            *self._heap,
            *(self._rows or ()),
        ]

    def __len__(self) -> int:
        keyed = self._rows.count if self._rows is not None else 0
        return (self._one is not None) + len(self._queue or ()) + len(self._heap) + keyed

    def share(self) -> KeyShares:
        """The shares of this track; its keys take turns from now on."""
        if self.shares is None:
            self.shares = KeyShares()
            self._rows = FairEntries(self.shares, self.counts)
        return self.shares

    def unshare(self) -> None:
        """No intent waits here: all keys start equal again."""
        self.shares = self._rows = None
        self._keyed = False

    def push(self, intent: Intent) -> None:
        serial = self.lane.serial
        if self._rows is not None and intent.terms.fairness_key is not None:
            self._rows.push((rank_of(intent, serial), intent.seq, intent))
            return
        queue, heap = self._queue, self._heap
        if queue is None and not heap:
            one = self._one
            if one is None or one is intent:
                self._one = intent
                return
            self._one = None
            self._heap = heap = [(rank_of(one, serial), one.seq, one)]
        entry = (rank_of(intent, serial), intent.seq, intent)
        if queue is None:
            if len(heap) < _FEW:
                heappush(heap, entry)
            else:
                self._queue = deque((entry,))
        elif queue[-1] < entry:
            queue.append(entry)
        else:
            heappush(heap, entry)

    def pop(self) -> None:
        """Remove the entry that `head` returned."""
        if self._keyed:
            assert self._rows is not None
            self._rows.pop()
            return
        if self._one is not None:
            self._one = None
            return
        queue, heap = self._queue, self._heap
        if queue is not None and (not heap or queue[0] < heap[0]):
            queue.popleft()
            if not queue:
                self._queue = None
        else:
            heappop(heap)

    def clear(self) -> None:
        self._queue = self._one = None
        self._heap = _NOTHING
        self.unshare()

    def head(self) -> Ready | None:
        """The entry this track could hand out now, given the state of its lane."""
        lane = self.lane
        serial = lane.serial
        if lane.paused or (serial and lane.running):
            return None
        self._keyed = False
        first: Ready | None = None
        heap, one = self._heap, self._one
        if one is not None:
            if one.status is DUE and one.terms.lane == lane.name:
                first = (rank_of(one, serial), one.seq, one)
                if lane.holder is not None and lane.holder is not one:
                    first = None
            else:
                self._one = None  # stale
        while (queue := self._queue) is not None or heap:
            entry = queue[0] if queue is not None and (not heap or queue[0] < heap[0]) else heap[0]
            intent = entry[2]
            if (
                intent.status is DUE
                and entry[0] == rank_of(intent, serial)
                and intent.terms.lane == lane.name  # a dead letter may be revived into another lane
            ):
                first = entry if lane.holder is None or lane.holder is intent else None
                break
            self.pop()  # stale
        if self._rows is None:
            return first
        keyed = self._rows.head()
        first = self._rows.shares.first(keyed, first)
        self._keyed = first is not None and first is keyed
        return first

    def counts(self, entry: Ready) -> bool:
        """Whether an entry is valid, not stale."""
        intent, lane = entry[2], self.lane
        return (
            intent.status is DUE
            and entry[0] == rank_of(intent, lane.serial)
            and intent.terms.lane == lane.name
        )


Listing = tuple[int, int, Track]
"""A track with its first intent's rank and seq."""


class Lane:
    """The limits of a lane, and its deliveries in flight."""

    __slots__ = (
        "holder", "limit", "name", "packed", "paused", "pauses", "pending", "polite", "pushed", "running",
        "serial", "tracks", "turns",
    )  # fmt: skip

    def __init__(self, name: str, *, serial: bool, pushed: bool) -> None:
        self.name = name
        self.serial = serial
        self.pushed = pushed
        self.limit: Limit | None = None
        """Caps its starts per period and its concurrent runs."""
        self.packed = name.endswith(PACKED_LANE) and name.startswith("callback:")
        """Whether its deliveries share permits."""
        self.polite = name.startswith("callback:")
        """Whether it leaves permits to others: one host that does not answer must not hold them all."""
        self.paused = False
        self.pauses: list[tuple[int, int]] | None = None
        """The newest pauses as (from, until); until 0: still paused."""
        self.pending = 0
        """Live intents; in a serial lane only those due, in flight or holding it (see `State.waiting`)."""
        self.running = 0
        self.holder: Intent | None = None
        self.tracks: tuple[Track, ...] = ()
        """One for all tiers, or one for each tier that had intents in this lane."""
        self.turns = _NOBODY
        """Consumers with credits, in the order of their turns. Only `ask` adds to it."""

    def ask(self, consumer: str) -> None:
        """A consumer has credits now: it takes the last turn."""
        self.turns = [*self.turns, consumer]

    def track(self, tier: int) -> Track:
        key = tier if self.pushed and not self.serial else 0
        tracks = self.tracks
        if tracks and tracks[0].tier == key:  # most lanes have one track
            return tracks[0]
        for track in tracks:
            if track.tier == key:
                return track
        track = Track(self, key)
        self.tracks += (track,)
        return track

    def idle(self) -> bool:
        """Whether the lane can be forgotten until it is named again."""
        return not self.pending and not self.paused and not self.turns


def rank_of(intent: Intent, serial: bool) -> int:
    """An intent's rank in its track: lower goes first."""
    if serial:
        return _RANK_HOLDER if intent.holds else _RANK_SERIAL
    priority, expected_ms = intent.terms.priority, intent.expected_ms
    if not priority and not expected_ms:
        return intent.due_at_ms  # most have neither, and share the integer object
    return intent.due_at_ms - 1000 * priority + EXPECTED_FACTOR * expected_ms
