"""When to look at an intent again. Owns the cohorts; the only writer of `Intent.armed`.

A *cohort* is all intents whose wake falls in the same small slot of time: they share one entry, one
wake-up and one `Advance`. A slot is a small part of the tier's window and ends never before the wake,
so nothing is early and little is late. Only what wakes up to the store's edge is armed; the rest is
on disk and comes with the next window.

An entry in a cohort may be stale (the intent was cancelled, or moved to another slot): it counts only
while `intent.armed` names the slot. So disarming costs nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush

from duetime.limits import TIER_SLOT_MS
from duetime.protocol.intent import Intent
from duetime.store.store import SEQ_MAX, Store


class Timers:
    """Cohorts by the end of their slot."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots: list[int] = []
        self._cohorts: dict[int, list[Intent]] = {}
        self._shared: dict[int, int] = {}
        # The first wake known to lie behind the edge; 0: ask the store.
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
        size = TIER_SLOT_MS[intent.terms.tier]
        slot = -(-wake_at_ms // size) * size
        if intent.armed != slot:
            # One object for the whole cohort: an intent does not pay for a number of its own.
            intent.armed = slot = self._shared.setdefault(slot, slot)
            cohort = self._cohorts.get(slot)
            if cohort is None:
                self._cohorts[slot] = [intent]
                heappush(self._slots, slot)
            else:
                cohort.append(intent)

    def extend(self, until_ms: int, limit: int) -> bool:
        """Arm what wakes up to `until_ms`, about `limit` intents; True if there may be more."""
        found = self._store.window(until_ms, limit)
        for intent in found:
            self.arm(intent, intent.wake_at_ms)
        self._far_ms = 0
        return self._store.edge < (until_ms, SEQ_MAX)  # what was found says nothing: rows may be stale

    def expire(self, at_ms: int) -> list[Intent]:
        """Every intent whose slot has ended, disarmed. Their order means nothing: lanes have their own."""
        while self._store.edge < (at_ms, SEQ_MAX):
            self.extend(at_ms, 1 << 30)
        slots, cohorts = self._slots, self._cohorts
        woken: list[Intent] = []
        while slots and slots[0] <= at_ms:
            slot = heappop(slots)
            del self._shared[slot]
            for intent in cohorts.pop(slot):
                if intent.armed == slot:
                    intent.armed = 0
                    woken.append(intent)
        return woken

    def next_ms(self) -> int | None:
        """The end of the first slot in memory."""
        return self._slots[0] if self._slots else None

    def far_ms(self) -> int | None:
        """The first wake behind the edge: the next window must be there before it."""
        if self._far_ms == 0:
            self._far_ms = self._store.next_wake()
        return self._far_ms

    @property
    def cohorts(self) -> int:
        return len(self._slots)
