"""A million intents: pages at once, counts within seconds, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from time import perf_counter  # tidy: how long it took, not what time it is
from typing import Any, TypeVar

import pytest

from duetime.engine.reads.library import Filter, Library
from duetime.protocol.intent import ACKED, CANCELED, DEAD_LETTERED, SCHEDULED, Intent
from duetime.protocol.terms import Task, Terms, Tier
from duetime.store.sqlite.store import SqliteStore
from duetime.testing.contracts.store_tools import make, save
from duetime.testing.time import EPOCH_MS

T = TypeVar("T")
COUNT = 1_000_000
PART = 100_000
END = EPOCH_MS + 10 * COUNT

pytestmark = pytest.mark.slow


def intents(chance: random.Random, first: int) -> list[Intent]:
    """Half of them done some time after they were made, half still to come."""
    terms = [Terms(Task("work"), f"task:q{n % 4}", Tier(n % 5), tags={"customer": str(n)}) for n in range(20)]
    made = []
    for seq in range(first, first + PART):
        created_ms = EPOCH_MS + 10 * seq
        at_ms = created_ms + chance.randrange(3_600_000)
        fields: dict[str, Any] = {
            "terms": terms[seq % 20],
            "created_at_ms": created_ms,
            "updated_at_ms": created_ms,
        }
        if seq % 2:
            made.append(
                make(
                    seq, status=DEAD_LETTERED if seq % 20 == 1 else ACKED, delivery=1, attempt=1,
                    due_at_ms=at_ms, dispatched_at_ms=at_ms + 5, first_dispatch_at_ms=at_ms + 5,
                    finished_at_ms=at_ms + 50, ended=seq, late_ms=5, **fields,
                )
            )  # fmt: skip
            made[-1].execute_at_ms = at_ms
        else:
            made.append(make(seq, END + chance.randrange(86_400_000), **fields))
    return made


async def timed(work: Awaitable[T], limit_s: float) -> T:
    """The work within its time, while the loop is never held up for long."""
    worst_s = 0.0
    done = asyncio.ensure_future(work)
    began_s = last_s = perf_counter()
    while not done.done():
        await asyncio.sleep(0.002)  # tidy: the loop's own pulse
        now_s = perf_counter()
        worst_s, last_s = max(worst_s, now_s - last_s), now_s
    assert perf_counter() - began_s < limit_s
    assert worst_s < 0.1, "the loop was held up"
    return done.result()


def test_a_million(tmp_path):
    store, chance = SqliteStore(tmp_path / "store.db"), random.Random(1)
    for part in range(COUNT // PART):
        for intent in intents(chance, part * PART + 1):
            store.add(intent)
        save(store, part + 1)

    async def main():
        library = Library(store.archive())
        for filter, order in (
            (Filter(), "newest"),
            (Filter(), "due"),
            (Filter((DEAD_LETTERED,)), "newest"),
            (Filter((ACKED,), tags={"customer": "7"}), "newest"),
            (Filter((SCHEDULED,), tier=Tier.FAST), "due"),
        ):
            assert len((await timed(library.page(filter, order), 0.5)).items) == 50
        assert not (await timed(library.page(Filter((CANCELED,))), 0.5)).items
        assert not (await timed(library.page(Filter(tags={"customer": "x"})), 2)).items
        slots = await timed(library.slots(END, END + 86_400_000, 1_800_000), 5)
        assert sum(slot.count for slot in slots) == COUNT // 2
        stood = await timed(library.as_of(END), 10)
        assert stood.exact
        assert sum(stood.counts.values()) == COUNT
        library.close()

    asyncio.run(main())
    store.close()
