"""Weighted fair shares of a track by key, such as a tenant: a key that floods the track does not delay the
others. Owns the order between keys.

Start-time fair queueing, in whole numbers. Each key has a virtual time (`had`): a start adds one `TURN`
divided by its weight. The key with the lowest virtual time goes first; among equals, and inside one key, the
older intent. The *level* is the virtual time of the newest start: a key that returns after a pause starts
from the level, so no key saves up turns by being away. A new key begins at the *entry*, which is the level
or, when very many new keys arrive, a little higher with each start: an endless series of new keys starves no
one.

So before the first intent of a key goes, each other key starts at most (its weight // that key's weight) + 1
times, however many of its intents wait. `docs/guarantees.md` says why.

Intents without a key share one common key. A track whose intents have no keys pays nothing for all this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush, heapreplace

from duetime.protocol.intent import Intent

Ready = tuple[int, int, Intent]
"""A ready intent with its rank: (rank, seq, intent)."""

TURN = 1_000_000
"""The cost of a start for a key of weight 1. With this value, for all weights, TURN // a // (TURN // b) is b
// a."""
_STEP = TURN // 64
COMMON = ""
"""The key of intents that have none."""


class Share:
    """One key: its virtual time (`had`), and the number of its due intents."""

    __slots__ = ("due", "had")

    def __init__(self, had: int) -> None:
        self.had = had
        self.due = 0


class KeyShares:
    """The keys of one track."""

    __slots__ = ("_sweep_at", "entry", "keys", "level")

    def __init__(self) -> None:
        self.level = 0
        self.entry = 0
        self.keys: dict[str, Share] = {COMMON: Share(0)}
        """A key with nothing due that is not above the level is equal to a missing one."""
        self._sweep_at = 1_000

    def come(self, intent: Intent) -> None:
        """One more intent of a key is due."""
        key = intent.terms.fairness_key
        assert key is not None
        share = self.keys.get(key)
        if share is None:
            self._sweep()
            share = self.keys[key] = Share(0)
        if not share.due:
            begin = min(self.entry, self.level + TURN // intent.terms.fairness_weight)
            share.had = max(share.had, begin)
        share.due += 1

    def leave(self, intent: Intent) -> None:
        """One intent less is due, and it did not start."""
        key = intent.terms.fairness_key
        assert key is not None
        self.keys[key].due -= 1

    def start(self, intent: Intent) -> None:
        """An intent starts: charge its key."""
        terms = intent.terms
        key = terms.fairness_key
        if key is None:
            share, weight = self.keys[COMMON], 1
        else:
            share, weight = self.keys[key], terms.fairness_weight
            share.due -= 1
        level = self.level = max(share.had, self.level)
        self.entry = min(max(self.entry + _STEP, level), level + TURN)
        share.had = level + TURN // weight

    def had(self, key: str) -> int:
        share = self.keys.get(key)
        return share.had if share is not None else self.level

    def due(self, key: str) -> int:
        """The number of due intents of a key, whatever they wait for."""
        share = self.keys.get(key)
        return share.due if share is not None else 0

    def first(self, keyed: Ready | None, plain: Ready | None) -> Ready | None:
        """Which goes first: the first intent with a key, or the first without."""
        if keyed is None or plain is None:
            return keyed or plain
        had, common = self.had(keyed[2].terms.fairness_key or COMMON), self.had(COMMON)
        return keyed if (had, *keyed[:2]) < (common, *plain[:2]) else plain

    def kept(self) -> dict[str, int]:
        """The virtual times of the keys that matter, relative to the level."""
        return {
            key: share.had - self.level
            for key, share in sorted(self.keys.items())
            if share.due or share.had > self.level or key == COMMON
        }

    def _sweep(self) -> None:
        """Forget keys that no longer matter, once there are many more than at the last sweep."""
        if len(self.keys) >= self._sweep_at:
            level = self.level
            self.keys = {
                key: share
                for key, share in self.keys.items()
                if share.due or share.had > level or key == COMMON
            }
            self._sweep_at = max(1_000, 2 * len(self.keys))


class KeyHeap:
    """The entries of one key, a heap by rank."""

    __slots__ = ("entries", "listed")

    def __init__(self) -> None:
        self.entries: list[Ready] = []
        self.listed: tuple[int, int, int, str] | None = None
        """Its one valid place in the order: never later than where it belongs."""


class FairEntries:
    """Entries with a key, in fair order. Entries may be stale; `counts` tells whether one is valid.

    The virtual time of a key only grows, so a place in the order is at worst too early; it is corrected when
    it is reached.
    """

    __slots__ = ("_counts", "_order", "_rows", "count", "shares")

    def __init__(self, shares: KeyShares, counts: Callable[[Ready], bool]) -> None:
        self.shares = shares
        self._counts = counts
        self._rows: dict[str, KeyHeap] = {}
        self._order: list[tuple[int, int, int, str]] = []
        self.count = 0

    def __iter__(self) -> Iterator[Ready]:
        for row in self._rows.values():
            yield from row.entries

    def push(self, entry: Ready) -> None:
        key = entry[2].terms.fairness_key
        assert key is not None
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = KeyHeap()
        heappush(row.entries, entry)
        self.count += 1
        if row.entries[0] is entry:
            row.listed = (self.shares.had(key), entry[0], entry[1], key)
            heappush(self._order, row.listed)

    def head(self) -> Ready | None:
        """The entry that goes first."""
        order, rows = self._order, self._rows
        while order:
            place = order[0]
            key = place[3]
            row = rows.get(key)
            if row is None or row.listed != place:
                heappop(order)
                continue
            entries = row.entries
            while entries and not self._counts(entries[0]):
                heappop(entries)
                self.count -= 1
            if not entries:
                heappop(order)
                del rows[key]
                continue
            first = entries[0]
            found = (self.shares.had(key), first[0], first[1], key)
            if found == place:
                return first
            row.listed = found
            heapreplace(order, found)
        return None

    def pop(self) -> None:
        """Remove the entry that `head` returned."""
        key = self._order[0][3]
        row = self._rows[key]
        heappop(row.entries)
        self.count -= 1
        if row.entries:
            first = row.entries[0]
            row.listed = (self.shares.had(key), first[0], first[1], key)
            heapreplace(self._order, row.listed)
        else:
            heappop(self._order)
            del self._rows[key]
