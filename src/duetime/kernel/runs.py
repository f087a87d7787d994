"""Ended cohorts that were too many for one record. Owns the order in which they are taken.

By tier, and inside a tier by (wake, seq): an order that does not depend on how the cohorts were filled, which
changes with a restart. A *run* is a part of a cohort; it is sorted when its first intent is next, so
that the work of sorting a large cohort is spread as well.

As in a cohort, an entry is valid only while the intent is armed for this place and wakes at that moment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from operator import attrgetter

from duetime.limits import TIER_NAMES
from duetime.protocol.intent import Intent

Part = tuple[int, int, list[Intent]]
"""Intents of one place, with a lower bound (wake, seq) of all of them."""

_wake = attrgetter("wake_at_ms")
_seq = attrgetter("seq")


def part_of(intents: list[Intent]) -> Part:
    return min(map(_wake, intents)), min(map(_seq, intents)), intents


class SortedRun:
    """The intents of one part: first unsorted, then as sorted entries, taken up to `next`."""

    __slots__ = ("entries", "intents", "next", "place")

    def __init__(self, place: int, intents: list[Intent]) -> None:
        self.place = place
        self.intents = intents
        self.entries: list[tuple[int, int, Intent]] | None = None
        self.next = 0

    def sort(self) -> list[tuple[int, int, Intent]]:
        place = self.place
        found = [(each.wake_at_ms, each.seq, each) for each in self.intents if each.armed == place]
        found.sort()
        self.entries, self.intents = found, []
        return found

    def left(self) -> list[Intent]:
        """All intents that may still be valid, in no order."""
        return self.intents if self.entries is None else [entry[2] for entry in self.entries[self.next :]]


class Runs:
    """All runs, a heap for each tier."""

    def __init__(self) -> None:
        self._tiers: list[list[tuple[int, int, int, SortedRun]]] = [[] for _ in TIER_NAMES]
        self._number = count()
        self.latest = 0
        """An upper bound of the places of all runs."""

    def __bool__(self) -> bool:
        return any(self._tiers)

    def __iter__(self) -> Iterator[SortedRun]:
        return (run for heap in self._tiers for _, _, _, run in heap)

    def add(self, place: int, parts: list[Part], rest: list[Intent]) -> None:
        """Add an ended cohort, in parts."""
        heap = self._tiers[place & 7]
        for wake_at_ms, seq, intents in [*parts, part_of(rest)] if rest else parts:
            heappush(heap, (wake_at_ms, seq, next(self._number), SortedRun(place, intents)))
        self.latest = max(self.latest, place)

    def first(self, tier: int) -> int:
        """The place of the tier's next run; a place after all others if there is none."""
        heap = self._tiers[tier]
        return heap[0][3].place if heap else 1 << 62

    def take(self, most: int, supply: Callable[[int], None]) -> list[Intent]:
        """The first intents of all tiers, disarmed: an equal number of each tier, then by tier, so that a
        flooded tier delays no other. `supply` adds cohorts of a tier that may be next and are not here
        yet."""
        woken: list[Intent] = []
        share = most // len(self._tiers)
        for tier in range(len(self._tiers)):
            self._take(tier, share, woken, supply)
        for tier in range(len(self._tiers)):
            self._take(tier, most - len(woken), woken, supply)
        return woken

    def put_back(self, last: int) -> Iterable[tuple[int, Part]]:
        """The runs after this place, as parts: their slots have not ended any more."""
        self.latest = last
        for heap in self._tiers:
            for wake_at_ms, seq, _, run in heap:
                if run.place > last:
                    yield run.place, (wake_at_ms, seq, run.left())
            heap[:] = [entry for entry in heap if entry[3].place <= last]
            heapify(heap)

    def _take(self, tier: int, most: int, woken: list[Intent], supply: Callable[[int], None]) -> None:
        heap, end = self._tiers[tier], len(woken) + most
        while len(woken) < end:
            supply(tier)
            if not heap:
                return
            _, _, number, run = heap[0]
            entries = run.entries
            if entries is None:
                entries = run.sort()
            else:
                _wake_up(run, entries, heap, end, woken)
            if run.next < len(entries):
                wake_at_ms, seq, _ = entries[run.next]
                heapreplace(heap, (wake_at_ms, seq, number, run))
            else:
                heappop(heap)


def _wake_up(
    run: SortedRun,
    entries: list[tuple[int, int, Intent]],
    heap: list[tuple[int, int, int, SortedRun]],
    end: int,
    woken: list[Intent],
) -> None:
    """Take the next intents of a run, up to `end` in all."""
    place, first = run.place, run.next
    run.next = min(first + end - len(woken), len(entries))
    if len(heap) > 1:  # another run's first may come before the last of these
        second = min(heap[1:3])
        run.next = bisect_left(entries, (second[0], second[1] + 1), first, run.next)
    for wake_at_ms, _, intent in entries[first : run.next]:
        if intent.armed == place and intent.wake_at_ms == wake_at_ms:
            intent.armed = 0
            woken.append(intent)
