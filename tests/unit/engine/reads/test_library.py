"""The library: pages over disk and memory alike, bounded and stable; slots; how everything stood."""

from __future__ import annotations

import pytest

from duetime.engine.reads import library as library_module
from duetime.engine.reads.library import Filter, Library, ViewPage, status_at
from duetime.errors import BadQuery
from duetime.protocol.command import Cancel, FireNow, Patch, Revive
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DEAD_LETTERED,
    DISPATCHING,
    DUE,
    SCHEDULED,
    Entry,
    Item,
    Status,
)
from duetime.protocol.outcome import Failed, Rejected
from duetime.protocol.terms import AckLevel, Callback, Entity, Stream, Task, Tier, lane_of
from duetime.store import archive
from duetime.store.memory import MemoryStore
from tests.unit.insight.rig import NOW, World, run, world

HOUR = 3_600_000


async def everything(library: Library, filter: Filter | None = None, order: str = "newest", limit: int = 7):
    """All pages, one after the other; the ids."""
    found: list[str] = []
    cursor, pages = None, 0
    while True:
        page: ViewPage = await library.page(filter, order, cursor, limit)
        found += [view.id for view in page.items]
        pages += 1
        assert len(page.items) <= limit
        assert pages < 500, "it does not end"
        cursor = page.next_cursor
        if cursor is None:
            return found


async def fill(w: World) -> None:
    """Some of everything; the first half on disk only or changed since, the second in memory only."""
    await w.many("old", 20, 2 * HOUR, tier=Tier.FAST, tags={"customer": "7"})
    await w.many("bad", 5)
    await w.end(Rejected("x", "never"))
    await w.many("ran", 10)
    await w.end()
    await w.engine.checkpoint()
    await w.engine.ask(Cancel("old3"))
    await w.engine.ask(Patch("old4", execute_at_ms=NOW + 9 * HOUR))
    await w.engine.ask(FireNow("old5"))
    await w.many("new", 10, HOUR, target=Entity("cart", "c1", "add"))
    await w.many("call", 3, target=Callback("http://x"))


def test_newest_first_whatever_is_where(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await fill(w)
            expected = [intent.id for intent in w.store.page(None, None, 1 << 62, 1_000)]
            assert len(expected) == 48
            for limit in (1, 7, 48, 500):
                assert await everything(w.library, None, "newest", limit) == expected

    run(main())


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Filter((CANCELED,)), ["old3"]),
        (Filter((DEAD_LETTERED,)), [f"bad{n}" for n in reversed(range(5))]),
        (Filter((DISPATCHING,)), ["call2", "call1", "call0", "old5"]),
        (Filter((ACKED,)), [f"ran{n}" for n in reversed(range(10))]),
        (Filter((CANCELED, DISPATCHING)), ["call2", "call1", "call0", "old5", "old3"]),
        (Filter((DUE, BLOCKED)), []),
        (Filter(tier=Tier.FAST, tags={"customer": "7"}), [f"old{n}" for n in reversed(range(20))]),
        (Filter(tags={"customer": "8"}), []),
        (Filter(tags={"7": "customer"}), []),
        (Filter(entity="cart"), [f"new{n}" for n in reversed(range(10))]),
        (Filter(entity="cart/c1"), [f"new{n}" for n in reversed(range(10))]),
        (Filter(entity="car"), []),
        (Filter(entity="cart/c"), []),
        (Filter(lane=lane_of(Callback("http://x"))), ["call2", "call1", "call0"]),
        (Filter((DEAD_LETTERED, ACKED), queue="default", task="work", tier=Tier.STANDARD), None),
        (Filter(task="wor"), []),
        (Filter(queue="other"), []),
        (Filter(from_ms=NOW + 9 * HOUR), ["old4"]),
        (Filter(from_ms=NOW + HOUR, to_ms=NOW + 2 * HOUR), [f"new{n}" for n in reversed(range(10))]),
        (Filter(to_ms=NOW), []),
    ],
    ids=repr,
)
def test_filters(tmp_path, filter, expected):
    async def main():
        async with world(tmp_path) as w:
            await fill(w)
            if expected is None:
                wanted = [f"ran{n}" for n in reversed(range(10))] + [f"bad{n}" for n in reversed(range(5))]
            else:
                wanted = expected
            assert await everything(w.library, filter) == wanted
            await w.engine.checkpoint()
            assert await everything(w.library, filter) == wanted

    run(main())


def test_by_due_time(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await fill(w)
            await w.submit(Item("waits", 0, NOW + 3 * HOUR, after=("new0",)))
            new = [f"new{n}" for n in range(10)]
            old = [f"old{n}" for n in range(20) if n not in (3, 4, 5)]
            expected = ["old5", "call0", "call1", "call2", *new, *old, "waits", "old4"]
            assert await everything(w.library, None, "due", 6) == expected
            await w.engine.checkpoint()
            assert await everything(w.library, None, "due", 6) == expected
            assert await everything(w.library, Filter((SCHEDULED,)), "due", 4) == [*new, *old, "old4"]
            assert await everything(w.library, Filter((BLOCKED,)), "due") == ["waits"]
            with pytest.raises(BadQuery, match="newest"):
                await w.library.page(Filter((ACKED,)), "due")

    run(main())


def test_a_page_continues_where_it_ended_while_intents_change(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 30, HOUR)
            first = await w.library.page(limit=10)
            await w.many("b", 5, HOUR)
            await w.engine.ask(Cancel("a10"))
            await w.engine.checkpoint()
            second = await w.library.page(cursor=first.next_cursor, limit=10)
            assert [v.id for v in second.items] == [f"a{n}" for n in range(19, 9, -1)]
            assert second.items[-1].status is CANCELED

    run(main())


def test_an_intent_found_twice_is_shown_once_and_hides_no_other(tmp_path, monkeypatch):
    """As while a checkpoint is written: what changes meanwhile is of it, and changed."""

    async def main():
        async with world(tmp_path) as w:
            await fill(w)
            wanted = await everything(w.library)
            changed = w.store.changed
            monkeypatch.setattr(w.store, "changed", lambda: [*changed(), *changed()])
            assert await everything(w.library) == wanted
            assert await everything(w.library, None, "due", 3) == await everything(w.library, None, "due", 50)
            twice = await w.library.as_of(w.clock.now_ms())
            assert twice.counts == w.engine.reads.overview().counts

    run(main())


@pytest.mark.parametrize("cursor", ["x", "!!", "WzEsMl0", "bm90IGpzb24", "WyJkIiwxLDJd", "é"])
def test_a_bad_cursor_is_the_callers_mistake(tmp_path, cursor):
    async def main():
        async with world(tmp_path) as w:
            with pytest.raises(BadQuery) as caught:
                await w.library.page(cursor=cursor)
            assert caught.value.code == 40002

    run(main())


@pytest.mark.parametrize(("order", "limit"), [("oldest", 10), ("newest", 0), ("newest", 501)])
def test_other_bad_questions(tmp_path, order, limit):
    async def main():
        async with world(tmp_path) as w:
            with pytest.raises(BadQuery):
                await w.library.page(order=order, limit=limit)
            with pytest.raises(BadQuery):
                await w.library.slots(5, 5, 1)

    run(main())


def test_a_page_behind_many_others_is_filled(tmp_path, monkeypatch):
    """One look goes through a quarter of the rows where tags are asked for; a request looks often enough."""
    monkeypatch.setattr(archive, "ARCHIVE_ROWS_MAX", 40)

    async def main():
        async with world(tmp_path) as w:
            await w.many("wanted", 5, HOUR, tags={"rare": "yes"})
            await w.many("other", 300, HOUR)
            await w.engine.checkpoint()
            page = await w.library.page(Filter(tags={"rare": "yes"}), limit=3)
            assert len(page.items) == 3 and not page.partial and page.next_cursor is not None
            page = await w.library.page(Filter(tags={"rare": "yes"}), cursor=page.next_cursor, limit=3)
            assert len(page.items) == 2 and not page.partial and page.next_cursor is None

    run(main())


def test_a_page_is_bounded_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(library_module, "PAGE_BYTES_MAX", 50_000)

    async def main():
        async with world(tmp_path) as w:
            for number in range(7):
                payload = b'"' + b"x" * 20_000 + b'"'
                await w.submit(Item(f"large{number}", 0, w.clock.now_ms() + HOUR, payload))
            for written in (False, True):
                if written:
                    await w.engine.checkpoint()
                page = await w.library.page(limit=5)
                assert [len(page.items), page.partial] == [2, True]
                assert len(await everything(w.library, Filter(), "newest")) == 7
            monkeypatch.setattr(library_module, "PAGE_BYTES_MAX", 10)
            page = await w.library.page(limit=5)
            assert len(page.items) == 1, "one at least, however large"

    run(main())


def test_a_page_is_not_empty_while_there_is_more(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "ARCHIVE_ROWS_MAX", 40)
    monkeypatch.setattr(library_module, "PAGE_LOOKS_MAX", 2)

    async def main():
        async with world(tmp_path) as w:
            await w.many("needle", 2, HOUR, tags={"rare": "yes"})
            await w.many("a", 1_000, HOUR)
            await w.engine.checkpoint()
            page = await w.library.page(Filter(tags={"rare": "yes"}), limit=1)
            assert [view.id for view in page.items] == ["needle1"]
            page = await w.library.page(Filter(tags={"rare": "yes"}), cursor=page.next_cursor)
            assert [view.id for view in page.items] == ["needle0"] and page.next_cursor is None

    run(main())


def test_a_needle_in_a_haystack_takes_several_requests_and_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "ARCHIVE_ROWS_MAX", 40)
    monkeypatch.setattr(library_module, "PAGE_EMPTY_LOOKS_MAX", 40)

    async def main():
        async with world(tmp_path) as w:
            await w.many("needle", 1, HOUR, tags={"rare": "yes"})
            await w.many("a", 1_000, HOUR)
            await w.engine.checkpoint()
            page = await w.library.page(Filter(tags={"rare": "yes"}))
            assert (page.items, page.partial) == ([], True)
            assert page.next_cursor is not None
            for order in ("newest", "due"):
                assert await everything(w.library, Filter(tags={"rare": "yes"}), order) == ["needle0"]
                assert await everything(w.library, Filter(tier=Tier.ULTRA), order) == []

    run(main())


def test_a_forgotten_intent_is_not_shown(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 5)
            await w.end()
            await w.many("b", 5, 60 * 24 * HOUR)
            await w.engine.checkpoint()
            await w.pass_ms(8 * 24 * HOUR)
            assert await everything(w.library) == [f"b{n}" for n in reversed(range(5))]
            assert await everything(w.library, Filter((ACKED,))) == []

    run(main())


def test_while_the_engine_recovers_the_last_checkpoint_is_served(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 5, HOUR)
            await w.engine.checkpoint()
            await w.many("b", 5, HOUR)
            alone = Library(w.store.archive())
            try:
                assert await everything(alone) == [f"a{n}" for n in reversed(range(5))]
                found = await alone.get("a3")
                assert found is not None
                assert found.status is SCHEDULED
                assert await alone.get("b3") is None
                assert (await w.library.get("b3")) == w.engine.reads.get("b3")
                assert len(await alone.slots(NOW, NOW + 2 * HOUR, HOUR)) == 1
                assert (await alone.as_of(NOW)).counts["SCHEDULED"] == 5
            finally:
                alone.close()

    run(main())


def test_a_store_in_memory_has_nothing_on_disk():
    async def main():
        library = Library(MemoryStore().archive())
        assert await library.page() == ViewPage([], None)
        assert await library.get("x") is None
        assert await library.slots(0, 10, 1) == []
        library.close()

    run(main())


def test_slots_count_what_will_fire(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 10, HOUR)
            await w.many("b", 5, HOUR + 1_000, tier=Tier.ULTRA, target=Stream("news"))
            await w.engine.checkpoint()
            expected = await w.library.slots(NOW, NOW + 4 * HOUR, HOUR)
            assert [(s.at_ms, s.tier, s.queue, s.count) for s in expected] == [
                (NOW + HOUR, "ULTRA", "stream:news", 5),
                (NOW + HOUR, "STANDARD", "task:default", 10),
            ]
            await w.engine.ask(Cancel("a0"))
            await w.engine.ask(Patch("a1", execute_at_ms=NOW + 2 * HOUR))
            await w.engine.ask(FireNow("a2"))
            for number in range(3):
                await w.many(f"c{number}", 2, 3 * HOUR, target=Entity("cart", str(number), "add"))
            changed = await w.library.slots(NOW, NOW + 4 * HOUR, HOUR)
            assert [(s.at_ms - NOW, s.queue, s.count) for s in changed] == [
                (HOUR, "stream:news", 5),
                (HOUR, "task:default", 7),
                (2 * HOUR, "task:default", 1),
                (3 * HOUR, "entity:cart", 6),
            ]
            await w.engine.checkpoint()
            assert await w.library.slots(NOW, NOW + 4 * HOUR, HOUR) == changed

    run(main())


def test_past_counts_equal_the_counts_seen_then(tmp_path):
    """At several moments, the counts seen then are those read later, from disk and from memory."""

    async def main():
        async with world(tmp_path, permits=(200, 150, 50, 50, 2)) as w:
            seen: dict[int, dict[str, int]] = {}

            async def look() -> None:
                seen[w.clock.now_ms()] = w.engine.reads.overview().counts
                await w.pass_ms(1_000)

            await look()
            await w.many("a", 10, 5_000)
            await look()
            await w.many("b", 6, tier=Tier.ECONOMY)
            await look()
            await w.end(Failed("x", "again"))
            await look()
            await w.end(Rejected("x", "never"))
            await look()
            await w.submit(Item("late", 0, w.clock.now_ms(), after=("a1",)))
            await look()
            await w.engine.checkpoint()
            dead = await everything(w.library, Filter((DEAD_LETTERED,)))
            await w.engine.ask(Revive(dead[0]))
            await look()
            await w.end()
            await look()
            await w.engine.ask(Cancel("late"))
            await w.many("never", 3, HOUR)
            await w.engine.ask(Cancel("never1"))
            await look()
            for _ in range(2):
                for at_ms, counts in seen.items():
                    assert (await w.library.as_of(at_ms)).counts == counts, f"{at_ms - NOW} ms in"
                await w.engine.checkpoint()
            assert (await w.library.as_of(w.clock.now_ms())).exact

    run(main())


def test_a_backlog_too_long_to_look_at_is_taken_as_due(tmp_path, monkeypatch):
    monkeypatch.setattr("duetime.engine.reads.library.OPEN_COUNTED_MAX", 3)

    async def main():
        async with world(tmp_path, permits=(200, 150, 50, 50, 2)) as w:
            await w.many("a", 10, tier=Tier.ECONOMY, ack=AckLevel.ASYNC)
            await w.engine.checkpoint()
            await w.pass_ms(10)
            stood = await w.library.as_of(w.clock.now_ms())
            assert not stood.exact
            assert sum(stood.counts.values()) == 10
            assert stood.tiers["ECONOMY"]["DUE"] >= 7

    run(main())


def test_the_status_at_a_moment():
    entries = [Entry(10, SCHEDULED), Entry(20, DUE), Entry(30, DISPATCHING, 1), Entry(40, ACKED, 1)]
    found = [status_at(entries, at_ms) for at_ms in (9, 10, 29, 30, 99)]
    assert found == [None, Status.SCHEDULED, Status.DUE, Status.DISPATCHING, Status.ACKED]
    assert status_at([], 5) is None


def test_a_task_is_found_by_its_name(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 3, HOUR, target=Task("send", "mail"))
            await w.many("b", 3, HOUR, target=Task("mail", "send"))
            await w.engine.checkpoint()
            assert await everything(w.library, Filter(task="send")) == ["a2", "a1", "a0"]
            assert await everything(w.library, Filter(queue="send")) == ["b2", "b1", "b0"]

    run(main())


def test_a_page_by_due_time_costs_the_same_at_the_end_as_at_the_beginning(tmp_path, sqlite_connections):
    """Each page walked over all that were due before it."""

    async def main():
        async with world(tmp_path) as w:
            for start in range(0, 10_000, 1_000):
                at = [NOW + HOUR + 10 * (start + n) for n in range(1_000)]
                await w.submit(*(Item(f"i{start + n}", 0, at[n], b"{}") for n in range(1_000)))
            await w.engine.checkpoint()
            work, looks, cursor = [], 0, None
            await w.library.page(None, "due", None, 1)
            connection = sqlite_connections[-1]  # the archive's, opened by the look above

            def look() -> int:
                nonlocal looks
                looks += 1
                return 0

            connection.set_progress_handler(look, 100)
            while True:
                looks = 0
                page = await w.library.page(Filter((SCHEDULED,)), "due", cursor, 500)
                work.append(looks)
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert len(work) >= 20
            assert max(work) <= 2 * work[0], work

    run(main())
