"""When to look at an intent again. Owns the cohorts; the only writer of `Intent.armed`.

A *cohort* is all intents of a tier whose wake falls in the same small slot of time: they share one entry
and one wake-up. A slot is a small part of the tier's window and never ends before the wake, so nothing is
early and little is late. Only intents that wake up to the store's edge are armed; the others are on disk and
come with the next window. The *place* of a cohort is one number: the end of its slot, then its tier.

One record wakes a bounded number of intents. Ended cohorts beyond that bound wait for the next record: the
next few of each tier in `runs`, the others where they are.

An entry in a cohort may be stale (the intent was cancelled, or moved to another slot): it is valid only
while `intent.armed` names the place. So disarming costs nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush

from duetime.kernel.runs import Part, Runs, part_of
from duetime.limits import TIER_NAMES, TIER_SLOT_MS
from duetime.protocol.intent import Intent
from duetime.store.store import SEQ_MAX, KernelStore

ALL = 1 << 62
# A place that no cohort has.
_NEVER = 1 << 62
# A cohort is kept in parts of this size: each is sorted by itself, in a few milliseconds.
_PART = 4_096


class Timers:
    """Cohorts by their place."""

    def __init__(self, store: KernelStore) -> None:
        self._store = store
        self._places: list[list[int]] = [[] for _ in TIER_NAMES]
        """A heap of places for each tier."""
        self._first = _NEVER
        """The lowest place of all tiers."""
        self._cohorts: dict[int, list[Intent]] = {}
        self._parts: dict[int, list[Part]] = {}
        """Full parts of large cohorts; the newest part is in `_cohorts`."""
        self._runs = Runs()
        self._shared: dict[int, int] = {}
        # The first wake known to be after the edge; 0: ask the store.
        self._far_ms: int | None = 0

    def arm(self, intent: Intent, wake_at_ms: int) -> None:
        """Look at the intent at this time. 0 means never."""
        intent.wake_at_ms = wake_at_ms
        if not wake_at_ms:
            intent.armed = 0
            return
        edge_ms, edge_seq = self._store.edge
        if wake_at_ms > edge_ms or (wake_at_ms == edge_ms and intent.seq > edge_seq):
            intent.armed = 0
            self._store.defer(intent)
            far_ms = self._far_ms
            if far_ms is None or (far_ms and wake_at_ms < far_ms):
                self._far_ms = wake_at_ms
            return
        tier = intent.terms.tier
        size = TIER_SLOT_MS[tier]
        place = -(-wake_at_ms // size) * size << 3 | tier
        # An intent that moves inside a large or an ended cohort has another place in its order.
        if intent.armed != place or place in self._parts or self._runs:
            # One integer object for the whole cohort: an intent does not pay for one of its own.
            intent.armed = place = self._shared.setdefault(place, place)
            cohort = self._cohorts.get(place)
            if cohort is None:
                self._cohorts[place] = [intent]
                self._open(place)
            else:
                cohort.append(intent)
                if len(cohort) == _PART:
                    self._parts.setdefault(place, []).append(part_of(cohort))
                    self._cohorts[place] = []

    def extend(self, until_ms: int, limit: int) -> bool:
        """Arm intents that wake up to `until_ms`, about `limit` of them; True if there may be more."""
        found = self._store.window(until_ms, limit)
        for intent in found:
            self.arm(intent, intent.wake_at_ms)
        self._far_ms = 0
        return self._store.edge < (until_ms, SEQ_MAX)  # the number found says nothing: rows may be stale

    def reaches(self, at_ms: int) -> bool:
        """Whether all intents that wake up to this moment are in memory."""
        return self._store.edge >= (at_ms, SEQ_MAX)

    def expire(self, at_ms: int, most: int = ALL) -> list[Intent]:
        """Disarm and return intents whose slot has ended, at most `most`. The order in the list has no
        meaning: lanes have their own. If there are too many, which ones are returned follows from the intents
        alone (see `runs`)."""
        while not self.reaches(at_ms):
            self.extend(at_ms, 1 << 30)
        last = at_ms << 3 | 7
        runs = self._runs
        if last < runs.latest:
            self._put_back(last)
        if self._first > last and not runs:
            return []
        ended: list[tuple[int, list[Part], list[Intent]]] = []
        count = 0
        for places in () if runs else self._places:
            while places and places[0] <= last and count <= most:
                place = heappop(places)
                parts, rest = self._close(place)
                ended.append((place, parts, rest))
                count += len(parts) * _PART + len(rest)
        woken: list[Intent] = []
        if count > most or runs:
            for place, parts, rest in ended:
                runs.add(place, parts, rest)
            woken = runs.take(most, lambda tier: self._supply(tier, last))
        else:
            for place, parts, rest in ended:
                for intents in [part[2] for part in parts] + [rest]:
                    for intent in intents:
                        if intent.armed == place:
                            intent.armed = 0
                            woken.append(intent)
        self._first = min((places[0] for places in self._places if places), default=_NEVER)
        return woken

    def _supply(self, tier: int, last: int) -> None:
        """Make runs of the ended cohorts of a tier that may be next. A later slot has later wakes."""
        places, runs = self._places[tier], self._runs
        while places and places[0] <= min(last, runs.first(tier)):
            place = heappop(places)
            runs.add(place, *self._close(place))

    def _open(self, place: int) -> None:
        heappush(self._places[place & 7], place)
        if place < self._first:
            self._first = place

    def _close(self, place: int) -> tuple[list[Part], list[Intent]]:
        """Remove the cohort at this place; return its parts and the rest of it."""
        del self._shared[place]
        return self._parts.pop(place, []), self._cohorts.pop(place)

    def _put_back(self, last: int) -> None:
        """The clock was set back: some slots have not ended any more."""
        for place, part in self._runs.put_back(last):
            if place not in self._cohorts:
                self._cohorts[place] = []
                self._shared.setdefault(place, place)
                self._open(place)
            self._parts.setdefault(place, []).append(part)

    def next_ms(self) -> int | None:
        """The end of the first slot in memory; one that has already ended, while such intents are left."""
        if self._runs:
            return self._runs.latest >> 3
        return self._first >> 3 if self._first < _NEVER else None

    def far_ms(self) -> int | None:
        """The first wake after the edge: the next window must be loaded before it."""
        if self._far_ms == 0:
            self._far_ms = self._store.next_wake()
        return self._far_ms

    @property
    def cohorts(self) -> int:
        return sum(map(len, self._places))

    def armed(self, place: int) -> list[Intent]:
        """All intents armed for a place, including stale ones. For checks, not for the hot path."""
        found = list(self._cohorts.get(place, ()))
        for part in self._parts.get(place, ()):
            found += part[2]
        return found + [intent for run in self._runs if run.place == place for intent in run.left()]
