"""Reads of all intents, outside the loop's thread: filtered pages, forecasts, and the state at a past moment.

The archive reads rows in a thread. What the store has not written yet is overlaid: that thread uses the
store's objects only to find candidates; what is shown is taken from them on the loop, between two
records. While there is no engine yet (it recovers), only the last checkpoint is served.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from duetime.engine.engine import Engine
from duetime.errors import BadQuery
from duetime.kernel.history import entries_of
from duetime.kernel.state import LIVE
from duetime.limits import (
    OPEN_COUNTED_MAX,
    PAGE_BYTES_MAX,
    PAGE_EMPTY_LOOKS_MAX,
    PAGE_LOOKS_MAX,
    PAGE_MAX,
    SEARCH_MAX,
    TIER_NAMES,
)
from duetime.protocol.checkpoint import Marks
from duetime.protocol.filter import Filter
from duetime.protocol.intent import ACKED, DUE, PURGED_MS, SCHEDULED, Entry, Intent, Status
from duetime.protocol.view import View, view_of
from duetime.store.archive import FIRST, Archive, Key, Order, key_of, queue_of
from duetime.store.store import forgotten

__all__ = ["AsOf", "Filter", "Library", "Order", "Slot", "ViewPage", "status_at"]


_LAST: Key = (1 << 62, 0)

T = TypeVar("T")


class ViewPage(Struct):
    """Some intents in order, and the cursor of the next page; None at the end."""

    items: list[View]
    next_cursor: str | None
    partial: bool = False
    """Not full, perhaps empty, but there may be more: the search reached its limit per request."""


class Slot(Struct, frozen=True, rename="camel"):
    """The number of intents of a tier and queue that wake in a slot of time."""

    at_ms: int
    tier: str
    queue: str
    count: int


class AsOf(Struct, rename="camel"):
    """The number of intents by status at a moment, of those whose rows still exist."""

    at_ms: int
    counts: dict[str, int]
    tiers: dict[str, dict[str, int]]
    exact: bool


class Library:
    """The intents on disk, and, once an engine runs, the newer ones in memory."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._engine: Engine | None = None
        self._thread = ThreadPoolExecutor(1, "duetime-library")

    def follow(self, engine: Engine) -> None:
        """The engine is ready: from now on its memory counts, too."""
        self._engine = engine

    def close(self) -> None:
        self._thread.submit(self._archive.close).result()
        self._thread.shutdown()

    # Intents.

    async def get(self, id: str) -> View | None:
        """One intent, as it is; or as it was at the last checkpoint while the engine recovers."""
        if self._engine is not None:
            return self._engine.reads.get(id)
        intent = await self._run(lambda: self._get(id))
        return None if intent is None else view_of(intent)

    def _get(self, id: str) -> Intent | None:
        with self._archive.moment():
            return self._archive.get(id)

    async def page(
        self, filter: Filter | None = None, order: str = "newest", cursor: str | None = None, limit: int = 50
    ) -> ViewPage:
        """Matching intents, newest first or by due time (live ones only, unless statuses are named)."""
        filter = filter if filter is not None else Filter()
        how = _order(order)
        if how == "due" and ACKED in filter.statuses:
            raise BadQuery("Acknowledged intents can only be listed newest first.", hint="Use order=newest.")
        if how == "due" and not filter.statuses:
            filter = replace(filter, statuses=LIVE)
        if not 1 <= limit <= PAGE_MAX:
            raise BadQuery(f"limit must be from 1 to {PAGE_MAX}, not {limit}.")
        place = _place(cursor, how) if cursor else FIRST
        items: list[View] = []
        size = 0
        for looks in range(1, PAGE_EMPTY_LOOKS_MAX + 1):
            found, end = await self._look(filter, how, place, limit - len(items))
            items += self._shown(found, filter, how)
            if end is None:
                return ViewPage(items, None)
            place = end
            size += sum(_size(intent) for _, intent in found)
            if len(items) >= limit or size >= PAGE_BYTES_MAX // 2 or (items and looks >= PAGE_LOOKS_MAX):
                break
        return ViewPage(items, _cursor(place, how), partial=len(items) < limit)

    def cursor_before(self, seq: int) -> str:
        """The cursor of the intents that were accepted before this one, newest first."""
        return _cursor((-seq, 0), "newest")

    async def newest(self, filter: Filter, before_seq: int, limit: int) -> list[View]:
        """The newest matching intents, however far apart they are. For a caller in this process, which may
        take as long as the search needs; the loop only makes the views, a few at a time."""
        items: list[View] = []
        place: Key | None = (-before_seq, 0)
        while place is not None and len(items) < limit:
            found, place = await self._look(filter, "newest", place, min(limit - len(items), SEARCH_MAX))
            for start in range(0, len(found), PAGE_MAX):
                items += self._shown(found[start : start + PAGE_MAX], filter, "newest")
                await asyncio.sleep(0)  # tidy: let others have their turn
        return items

    async def _look(
        self, filter: Filter, order: Order, after: Key, limit: int
    ) -> tuple[list[tuple[Key, Intent]], Key | None]:
        """One search after a place, and how far it got; None: to the end."""
        changed, marks = self._changed(), self._marks()
        work = _Search(self._archive, filter, order, after, limit, changed, marks)
        return await self._run(work.run), work.end

    def _shown(self, found: list[tuple[Key, Intent]], filter: Filter, order: Order) -> list[View]:
        """Views of the intents found, as they are at this moment."""
        marks = self._marks()
        now_ms = 0 if self._engine is None else self._engine.now_ms()
        peek = None if self._engine is None else self._engine.store.peek
        shown = []
        for key, intent in found:
            if marks is not None and peek is not None:
                live = peek(intent.id)
                if live is not None:
                    if not filter.matches(live) or key_of(live, order) != key:
                        continue
                    intent = live
                if forgotten(intent, marks):
                    continue
            shown.append(view_of(intent, now_ms))
        return shown

    # Counts.

    async def slots(self, from_ms: int, to_ms: int, slot_ms: int) -> list[Slot]:
        """The number scheduled to fire, by slot, tier and queue; in time order. Empty slots are left out."""
        if to_ms <= from_ms or slot_ms < 1:
            raise BadQuery("A timeline must end after its start, with slots of at least 1 ms.")
        changed = self._changed()
        counts = await self._run(lambda: self._slots(from_ms, to_ms, slot_ms, changed))
        return [
            Slot(from_ms + slot * slot_ms, TIER_NAMES[tier], queue, count)
            for (slot, tier, queue), count in sorted(counts.items())
            if count > 0
        ]

    def _slots(
        self, from_ms: int, to_ms: int, slot_ms: int, changed: list[Intent]
    ) -> dict[tuple[int, int, str], int]:
        newer = {intent.seq: intent for intent in changed}
        with self._archive.moment() as there:
            counts = self._archive.slots(from_ms, to_ms, slot_ms) if there else {}
            for wake_at_ms, tier, queue in self._archive.waking(self._on_disk(newer)):
                if from_ms <= wake_at_ms < to_ms:
                    counts[(wake_at_ms - from_ms) // slot_ms, tier, queue] -= 1
        for intent in newer.values():
            wake_at_ms = intent.wake_at_ms
            if intent.status is SCHEDULED and from_ms <= wake_at_ms < to_ms:
                terms = intent.terms
                key = ((wake_at_ms - from_ms) // slot_ms, int(terms.tier), queue_of(terms.lane))
                counts[key] = counts.get(key, 0) + 1
        return counts

    async def as_of(self, at_ms: int) -> AsOf:
        """The number of intents by status at a moment."""
        changed = self._changed()
        counts, exact = await self._run(lambda: self._as_of(at_ms, changed))
        return AsOf(
            at_ms,
            {status.name: sum(counts.get((tier, status), 0) for tier in range(5)) for status in Status},
            {
                name: {status.name: counts.get((tier, status), 0) for status in Status}
                for tier, name in enumerate(TIER_NAMES)
            },
            exact,
        )

    def _as_of(self, at_ms: int, changed: list[Intent]) -> tuple[dict[tuple[int, int], int], bool]:
        newer = {intent.seq: intent for intent in changed}
        counts: dict[tuple[int, int], int] = {}
        rest: dict[int, int] = {}
        with self._archive.moment() as there:
            if there:
                standing = self._archive.standing(at_ms)
                counts, rest = standing.counts, standing.open_counts
                for tier, was in self._archive.stood(at_ms, self._on_disk(newer)):
                    counts[tier, was] -= 1
                for intent in islice(standing.open, OPEN_COUNTED_MAX):
                    rest[intent.terms.tier] -= 1
                    if intent.seq not in newer:
                        _count(counts, intent, at_ms)
        for tier, count in rest.items():
            counts[tier, DUE] = counts.get((tier, DUE), 0) + count
        for intent in newer.values():
            _count(counts, intent, at_ms)
        return counts, not any(rest.values())

    def _on_disk(self, newer: dict[int, Intent]) -> list[int]:
        """The seqs among them that may have a row."""
        newest = self._archive.newest_seq()
        return [seq for seq in newer if seq <= newest]

    # The sources.

    def _marks(self) -> Marks | None:
        return None if self._engine is None else self._engine.reads.marks()

    def _changed(self) -> list[Intent]:
        """Intents that may be newer than their rows."""
        return [] if self._engine is None else self._engine.store.changed()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class _Search:
    """One search for a page, in the library's thread."""

    def __init__(
        self,
        archive: Archive,
        filter: Filter,
        order: Order,
        after: Key,
        limit: int,
        changed: list[Intent],
        marks: Marks | None,
    ) -> None:
        self._archive = archive
        self._filter = filter
        self._order = order
        self._after = after
        self._limit = limit
        self._changed = changed
        self._marks = marks
        self.end: Key | None = None
        """How far the search got; None: to the end."""

    def run(self) -> list[tuple[Key, Intent]]:
        more = self._limit + 1  # one more tells whether there is a next page
        with self._archive.moment() as there:
            marks = self._marks if self._marks is not None else self._archive.marks()
            scan = self._archive.page(self._filter, self._order, self._after, more, marks) if there else None
        found: dict[str, tuple[Key, Intent]] = {}
        end = None
        if scan is not None:
            found = {intent.id: (key, intent) for key, intent in scan.found}
            end = scan.end
        for key, intent in self._candidates(more, end):
            found[intent.id] = (key, intent)
        ordered = sorted(found.values(), key=_first)
        fits = min(self._limit, _light(ordered))
        if len(ordered) > fits:
            ordered = ordered[:fits]
            end = ordered[-1][0]
        self.end = end
        return ordered

    def _candidates(self, limit: int, end: Key | None) -> list[tuple[Key, Intent]]:
        """The first candidates in memory. Checked again on the loop before they are shown."""
        matches, order, after = self._filter.matches, self._order, self._after
        last = end if end is not None else _LAST
        best: list[tuple[int, int, Intent]] = []  # a heap with the last of them on top
        inside: set[int] = set()  # an intent that changes while it is being written is listed twice
        for intent in reversed(self._changed):  # the newest come first, so that most are skipped at once
            key = key_of(intent, order)
            if after < key <= last and intent.seq not in inside and matches(intent):
                inside.add(intent.seq)
                heappush(best, (-key[0], -key[1], intent))
                if len(best) > limit:
                    inside.remove(heappop(best)[2].seq)
                if len(best) == limit:
                    last = (-best[0][0], -best[0][1])
        return [((-first, -second), intent) for first, second, intent in best]


def _light(found: list[tuple[Key, Intent]]) -> int:
    """How many of these fit one page by their size; at least one, however large it is."""
    size = 0
    for count, (_, intent) in enumerate(found):
        size += _size(intent)
        if size > PAGE_BYTES_MAX and count:
            return count
    return len(found)


def _size(intent: Intent) -> int:
    rare = intent.rare
    result = rare.result if rare is not None else None
    return len(intent.payload) + (len(result) if result is not None else 0)


def _first(found: tuple[Key, Intent]) -> Key:
    return found[0]


def status_at(entries: list[Entry], at_ms: int) -> Status | None:
    """The status that an intent with this history had at a moment; None before it was created."""
    if not entries or at_ms < entries[0].at_ms:
        return None
    return next(entry.status for entry in reversed(entries) if entry.at_ms <= at_ms)


def _count(counts: dict[tuple[int, int], int], intent: Intent, at_ms: int) -> None:
    if intent.finished_at_ms == PURGED_MS:
        return
    over = intent.ended > 0 and intent.finished_at_ms <= at_ms
    if intent.rare is None and not over and intent.created_at_ms <= at_ms < intent.execute_at_ms:
        was: Status | None = SCHEDULED  # by far the most frequent: nothing has happened to it yet
    else:
        was = status_at(entries_of(intent), at_ms)
    if was is not None:
        key = (int(intent.terms.tier), int(was))
        counts[key] = counts.get(key, 0) + 1


# Cursors.

# A place is two integers that the store can hold.
_PLACE_MAX: Final = 1 << 63


def _order(name: str) -> Order:
    if name == "newest":
        return "newest"
    if name == "due":
        return "due"
    raise BadQuery(f"order must be newest or due, not {name!r}.")


def _cursor(place: Key, order: Order) -> str:
    text = msgspec.json.encode([order[0], *place])
    return urlsafe_b64encode(text).decode().rstrip("=")


def _place(cursor: str, order: Order) -> Key:
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        kind, first, second = msgspec.json.decode(text, type=tuple[str, int, int])
    except (ValueError, msgspec.MsgspecError):
        kind, first, second = "", 0, 0
    if kind != order[0] or not (abs(first) < _PLACE_MAX and abs(second) < _PLACE_MAX):
        raise BadQuery(
            "The cursor is invalid for this order.",
            hint="Send nextCursor of the previous page unchanged, or omit it to start again.",
        )
    return (first, second)
