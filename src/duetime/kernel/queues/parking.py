"""The intents of one track that wait for one limiter, in the order in which they will go. Owns `Parking`.

The order is the track's own: between keys by fairness (see `fairness`), then by rank. So a key that
floods cannot hold the limiter's queue against the others. Entries may be stale.
"""

from __future__ import annotations

from heapq import heappop, heappush

from duetime.kernel.queues.fairness import FairEntries, Ready
from duetime.kernel.queues.lanes import Track, rank_of
from duetime.protocol.intent import DUE, Intent


class Parking:
    """A heap of intents without a key, and rows of those with one."""

    __slots__ = ("_heap", "_name", "_rows", "track")

    def __init__(self, track: Track, name: str) -> None:
        self.track = track
        self._name = name
        """The name of the limiter."""
        self._heap: list[Ready] = []
        self._rows: FairEntries | None = None

    @property
    def entries(self) -> list[Ready]:
        """Every entry, including stale ones, in no order. For inspection, not for the hot path."""
        return [*self._heap, *(self._rows or ())]

    def push(self, intent: Intent) -> None:
        entry = (rank_of(intent, serial=False), intent.seq, intent)
        if intent.terms.fairness_key is None:
            heappush(self._heap, entry)
            return
        shares = self.track.shares
        assert shares is not None, "a due intent with a key has a share"
        if self._rows is None or self._rows.shares is not shares:  # entries of forgotten shares are all stale
            self._rows = FairEntries(shares, self.counts)
        self._rows.push(entry)

    def first(self) -> Ready | None:
        """The entry that returns first."""
        heap = self._heap
        while heap and not self.counts(heap[0]):
            heappop(heap)
        plain = heap[0] if heap else None
        rows = self._rows
        return plain if rows is None else rows.shares.first(rows.head(), plain)

    def pop(self, first: Ready) -> None:
        """Remove the entry that `first` returned."""
        if first[2].terms.fairness_key is None:
            heappop(self._heap)
        else:
            assert self._rows is not None
            self._rows.pop()

    def counts(self, entry: Ready) -> bool:
        """Whether an entry is valid, not stale."""
        intent = entry[2]
        return (
            intent.waits == self._name
            and intent.status is DUE
            and entry[0] == rank_of(intent, serial=False)
            and intent.terms.lane == self.track.lane.name
        )
