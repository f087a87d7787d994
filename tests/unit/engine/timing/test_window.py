"""What wakes is brought into memory a slice at a time, and so is what is due after a restart."""

from __future__ import annotations

from itertools import count

from duetime.engine.options import EngineOptions
from duetime.engine.timing import window
from duetime.limits import HORIZON_ROWS_MAX, LARGE_PAYLOAD_BYTES
from duetime.protocol.command import Beat, Demand
from duetime.protocol.intent import DISPATCHING, DUE, SCHEDULED, Item
from duetime.protocol.terms import Stream
from duetime.testing.time import ManualClock
from tests.unit.insight.rig import SETTINGS, World, run, turns_of, world

HOUR = 3_600_000
COUNT = 5_000


def counts(w: World) -> list[int]:
    found = w.engine.reads.overview().counts
    return [found[status.name] for status in (SCHEDULED, DUE, DISPATCHING)]


def test_intents_due_during_the_downtime_are_fetched_in_slices(tmp_path):
    async def main():
        clock = ManualClock()
        async with world(tmp_path, clock) as w:
            await w.many("cold", COUNT, 2 * HOUR)
        clock.set_ms(clock.now_ms() + 3 * HOUR)
        w = World(tmp_path, clock, EngineOptions(settings=SETTINGS))
        turns, _ = await turns_of(w.engine.start())
        try:
            assert turns >= COUNT // HORIZON_ROWS_MAX
            await w.pass_ms(0)
            await w.pass_ms(0)
            assert counts(w)[0] == 0
        finally:
            await w.engine.close(0)

    run(main())


def test_intents_due_when_the_engine_stopped_are_queued_in_slices(tmp_path):
    async def main():
        clock = ManualClock()
        async with world(tmp_path, clock) as w:
            await w.many("due", COUNT)
            assert sum(counts(w)[1:]) == COUNT
        w = World(tmp_path, clock, EngineOptions(settings=SETTINGS))
        turns, _ = await turns_of(w.engine.start())
        try:
            assert turns >= COUNT // 1_000
            assert sum(counts(w)) == COUNT
        finally:
            await w.engine.close(0)

    run(main())


def test_intents_due_after_a_clock_jump_are_fetched_in_slices(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("cold", COUNT, 24 * HOUR)
            await w.engine.checkpoint()
            w.clock.set_ms(w.clock.now_ms() + 25 * HOUR)
            assert (await turns_of(w.engine.advance()))[0] >= COUNT // HORIZON_ROWS_MAX
            await w.pass_ms(0)
            await w.pass_ms(0)
            assert counts(w)[0] == 0

    run(main())


def test_a_long_fetch_counts_against_no_lease(tmp_path, monkeypatch):
    """Signs of life wait in the inbox meanwhile: a live worker is not taken for a silent one."""
    minutes = count(0, 60 * 1_000_000_000)
    monkeypatch.setattr(window, "monotonic_ns", lambda: next(minutes))

    async def main():
        async with world(tmp_path) as w:
            w.engine._pulse._beats_at_all = True  # as with a clock that nobody sets by hand
            await w.many("cold", 10, 24 * HOUR)
            await w.engine.checkpoint()
            await w.engine.ask(Demand("worker", "stream:s", 1))
            await w.many("held", 1, target=Stream("s"))
            w.clock.set_ms(w.clock.now_ms() + 25 * HOUR)
            await w.engine.ask(Beat("worker"))
            held = w.engine.reads.held("worker")
            assert [(intent.id, intent.delivery) for intent in held.values()] == [("held0", 1)]

    run(main())


def test_large_payloads_come_into_memory_late_where_there_are_many(tmp_path, monkeypatch):
    """Some seconds ahead instead of minutes; and none is late for that."""
    monkeypatch.setattr(window, "LARGE_PAYLOADS_BYTES_MAX", 2 * 10 * LARGE_PAYLOAD_BYTES)
    monkeypatch.setattr(window, "HORIZON_ROWS_MAX", 5)
    every_ms, many = 1_000, 100
    payload = b"x" * LARGE_PAYLOAD_BYTES

    async def main():
        async with world(tmp_path, horizon_ms=60_000) as w:
            start_ms = w.clock.now_ms() + HOUR
            items = [Item(f"i{n}", 0, start_ms + n * every_ms, payload) for n in range(many)]
            await w.submit(*items)
            await w.engine.checkpoint()
            assert w.store.large_bytes() == 0
            w.clock.set_ms(start_ms - every_ms)
            most = 0
            for number in range(many):
                await w.pass_ms(every_ms)
                await w.engine.checkpoint()
                w.engine._window.extend()
                most = max(most, w.store.large_bytes())
                assert [each.id for each in w.channel.out] == [f"i{number}"]
                await w.end()
            assert 10 <= most // LARGE_PAYLOAD_BYTES <= 20

    run(main())
