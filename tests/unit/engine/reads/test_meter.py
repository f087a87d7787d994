"""The meter: buckets, quantiles, the last minutes, and what an engine tells it."""

from __future__ import annotations

import pytest

from duetime.engine.predictions.sketch import Sketch
from duetime.engine.reads.histogram import Histogram, Sliding
from duetime.engine.reads.meter import LATE_MS, Meter
from duetime.errors import Busy, InThePast
from duetime.limits import METER_RECENT_MS, METER_SLICE_MS, METER_SLICES_KEPT
from duetime.protocol.command import Cancel, Demand, Pause, Resize, Revive, Settle
from duetime.protocol.intent import ACKED, CANCELED, DEAD_LETTERED, DISPATCHING, SCHEDULED, Item, Status
from duetime.protocol.outcome import Done, Failed, Rejected, Settlement, Snoozed
from duetime.protocol.terms import AckLevel, Callback, Entity, Limit, Stream, Task, Tier
from tests.unit.insight.rig import NOW, World, run, world


def test_a_value_at_a_bound_belongs_below_it():
    histogram = Histogram((1, 2, 5))
    histogram.add_many([1, 2, 3, 5, 6])
    histogram.add(0)
    assert histogram.counts == [2, 1, 2, 1]
    assert histogram.count == 6
    assert histogram.sum == 17
    assert histogram.mean == pytest.approx(17 / 6)


def test_quantiles_come_from_the_buckets():
    histogram = Histogram((10, 20, 50))
    assert histogram.quantile(0.5) is None
    histogram.add_many([5] * 50 + [15] * 40 + [40] * 9)
    assert histogram.quantile(0.5) == pytest.approx(10 * 49.5 / 50)
    assert 10 < (histogram.quantile(0.9) or 0) <= 20
    histogram.add(1_000)
    assert histogram.quantile(1.0) == 1_000


def test_no_quantile_is_above_the_largest_value_seen():
    histogram = Histogram(LATE_MS)
    histogram.add_many([3, 3, 3])
    assert histogram.quantile(0.99) == 3, "and not the bound of its bucket"
    merged = Histogram(LATE_MS)
    merged.merge(histogram)
    merged.add(51)
    assert merged.quantile(1.0) == 51
    sketch = Sketch()
    sketch.add(100)
    assert sketch.quantile(0.99) == 100
    other = Sketch()
    other.merge(sketch)
    assert other.quantile(0.5) == 100


def test_the_last_minutes_are_seen_alone_and_nothing_is_lost():
    sliding = Sliding(LATE_MS)
    for number in range(3 * METER_SLICES_KEPT):
        sliding.at(NOW + number * METER_SLICE_MS).add(number)
    now_ms = NOW + (3 * METER_SLICES_KEPT - 1) * METER_SLICE_MS
    assert sliding.recent(now_ms).count == METER_SLICES_KEPT
    assert sliding.recent(now_ms + METER_SLICES_KEPT * METER_SLICE_MS).count == 0
    assert sliding.total().count == 3 * METER_SLICES_KEPT
    assert sliding.total().sum == sum(range(3 * METER_SLICES_KEPT))


def test_a_clock_set_back_loses_nothing():
    sliding = Sliding(LATE_MS)
    sliding.at(NOW).add(1)
    sliding.at(NOW - 1_000_000).add(2)
    assert sliding.recent(NOW - 1_000_000).count == 1
    assert sliding.total().count == 2


def test_refusals_are_counted_by_code():
    meter = Meter()
    meter.rejected(Busy("no"))
    meter.rejected(InThePast("no"), 3)
    assert meter.rejections == {Busy.code: 1, InThePast.code: 3}


def test_lateness_is_of_the_first_hand_over_only(tmp_path):
    async def main():
        async with world(tmp_path, permits=(200, 150, 50, 50, 2)) as w:
            await w.many("a", 4, tier=Tier.ECONOMY)
            await w.pass_ms(30)
            assert w.meter.late_ms[Tier.ECONOMY].total().count == 0  # whether they began nobody has said
            assert await w.end(Failed("x", "not now")) == 2
            assert w.meter.late_ms[Tier.ECONOMY].total().counts[0] == 2  # two went at once
            await w.end()
            assert w.meter.late_ms[Tier.ECONOMY].total().sum == 2 * 30  # the other two waited
            await w.pass_ms(2_000)
            await w.end()
            total = w.meter.late_ms[Tier.ECONOMY].total()
            assert (total.count, total.sum) == (4, 60)
            assert w.meter.wait_ms(Tier.ECONOMY).count == 6  # retries wait, too

    run(main())


def test_the_call_counts_and_what_is_held_back_is_seen_meanwhile(tmp_path):
    """A breaker holds a call back for more than five seconds; then it waits three in a queue."""

    async def main():
        async with world(tmp_path) as w:
            tier, late = Tier.STANDARD, w.meter.late_ms[Tier.STANDARD]
            await w.many("a", 1)
            w.channel.settle([Settlement("a0", 1, Snoozed(5_000), waited_ms=-1)])
            await w.pass_ms(0)
            await w.pass_ms(4_000)
            assert late.total().count == 0 and w.meter.held_back() == [(tier, NOW)]
            assert w.meter.lateness(tier, w.clock.now_ms()).quantile(0.99) == 4_000
            await w.pass_ms(1_500)
            await w.pass_ms(3_000)
            w.channel.settle([Settlement("a0", 2, Done(), waited_ms=3_000)])
            assert (late.total().count, late.total().sum) == (1, 8_500)
            assert w.meter.held_back() == []
            await w.engine.advance()
            view = w.engine.reads.get("a0")
            assert view is not None and view.late_ms == 8_500, "the kernel and the meter say the same"

    run(main())


def test_the_lateness_of_what_runs_for_long_is_seen_when_it_begins(tmp_path):
    """A worker runs four functions for an hour. Two of them began three seconds late, one began again."""

    async def main():
        async with world(tmp_path) as w:
            tier, late = Tier.STANDARD, w.meter.late_ms[Tier.STANDARD]
            await w.many("a", 4)
            w.channel.settle([Settlement("a3", 1, Failed("x", "no", delay_ms=10))])
            await w.pass_ms(0)
            await w.pass_ms(10)
            w.meter.begun = lambda: [("a0", 0), ("a1", 3_000), ("a2", 3_000), ("a3", 3_000), ("gone", 9_000)]
            await w.pass_ms(5_000)
            seen = w.meter.lateness(tier, w.clock.now_ms())
            assert (seen.count, seen.max) == (4, 3_000), "the first call of a3 has ended"
            assert late.total().count == 1
            await w.pass_ms(METER_RECENT_MS)
            assert w.meter.lateness(tier, w.clock.now_ms()).count == 0, "it is no news"
            w.channel.settle([Settlement(f"a{n}", 1, Done(), waited_ms=3_000 if n else 0) for n in range(3)])
            assert w.meter.lateness(tier, w.clock.now_ms()).count == 0, "nor when they end"
            assert (late.total().count, late.total().sum) == (4, 6_000), "but all are counted"

    assert Meter().lateness(Tier.STANDARD, NOW).count == 0
    run(main())


def test_an_ended_intent_is_no_longer_held_back(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 1)
            w.channel.settle([Settlement("a0", 1, Snoozed(5_000), waited_ms=-1)])
            await w.engine.advance()
            await w.engine.ask(Cancel("a0"))
            assert w.meter.held_back() == []

    run(main())


def test_a_called_intent_is_no_longer_held_back(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 1)
            w.channel.settle([Settlement("a0", 1, Snoozed(1_000), waited_ms=-1)])
            await w.pass_ms(0)
            await w.pass_ms(1_000)
            assert len(w.meter.held_back()) == 1
            w.channel.settle([Settlement("a0", 2, Failed("x", "no"))])
            await w.pass_ms(0)
            assert w.meter.held_back() == [], "it waits for its retry"

    run(main())


def due(w: World) -> int:
    return w.engine.reads.overview().counts["DUE"]


def test_waiting_for_a_limit_is_counted_apart(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 2, limits=(Limit("k", concurrency=1),))
            await w.many("p", 3, target=Task("work", "q"), in_ms=1_000)
            await w.engine.ask(Pause("task:q"))
            assert w.meter.waiting() == 0 and due(w) == 1
            await w.pass_ms(2_000)
            assert w.meter.waiting() == 0 and due(w) == 4
            await w.end()
            await w.end()
            late = w.meter.late_ms[Tier.STANDARD].total()
            assert (late.count, late.sum) == (2, 0)
            limited = w.meter.limited_ms[Tier.STANDARD]
            assert (limited.count, limited.sum) == (1, 2_000)

    run(main())


def test_messages_waiting_for_an_entity_or_a_paused_type_need_no_more_workers(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 5, target=Entity("cart", "e1", "add"))
            await w.many("b", 1, target=Entity("cart", "e2", "add"))
            assert due(w) == 6 and w.meter.waiting() == 2
            await w.engine.ask(Pause("entities:cart"))
            assert w.meter.waiting() == 0

    run(main())


def test_a_snooze_is_not_a_second_first_time_but_a_revival_is(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 1)
            await w.end(Snoozed(100))
            await w.pass_ms(200)
            late = w.meter.late_ms[Tier.STANDARD]
            assert late.total().count == 1
            await w.end(Rejected("x", "never"))
            await w.engine.ask(Revive("a0"))
            await w.end()
            assert late.total().count == 2
            tally = w.engine.reads.tally()
            assert tally.moves(Tier.STANDARD, DEAD_LETTERED, SCHEDULED) == 1
            assert tally.moves_to(DEAD_LETTERED) == 1

    run(main())


def test_deliveries_by_tier_channel_and_outcome(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 3, target=Callback("http://x", batch=True), tier=Tier.FAST)
            await w.pass_ms(40)
            await w.end()
            await w.many("b", 2)
            await w.end(Failed("x", "no"))
            assert w.meter.deliveries == {
                (Tier.FAST, "callback", "done"): 3,
                (Tier.STANDARD, "task", "failed"): 2,
            }
            assert w.meter.batched == [0, 3, 0, 0, 0]
            assert w.meter.failed(Tier.STANDARD) == 2
            assert w.meter.delivery_ms[Tier.FAST].total().sum == 3 * 40
            assert w.meter.execution_s["callback"].count == 3

    run(main())


def test_a_stale_outcome_is_no_delivery(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 1)
            w.channel.end_twice()
            await w.end()
            w.channel.settle([Settlement("nobody", 1, Done())])
            await w.end()
            assert w.engine.reads.overview().stale_outcomes == 2
            # The second came before the first was written, so only the kernel could tell.
            assert sum(w.meter.deliveries.values()) == 2

    run(main())


def test_an_outcome_from_another_consumer_is_not_counted(tmp_path):
    """The kernel refuses the outcome, so the numbers must not show it."""

    async def main():
        async with world(tmp_path) as w:
            await w.engine.ask(Demand("mine", "stream:news", 1))
            await w.many("a", 1, target=Stream("news"))
            foreign = [Settlement("a0", 1, Failed("x", "no"), consumer="another")]
            w.meter.settled(foreign)
            assert await w.engine.ask(Settle(tuple(foreign))) == [False]
            assert (w.meter.deliveries, len(w.meter._starts)) == ({}, 1)
            mine = [Settlement("a0", 1, Done(), consumer="mine")]
            w.meter.settled(mine)
            assert await w.engine.ask(Settle(tuple(mine))) == [True]
            assert list(w.meter.deliveries.values()) == [1]
            assert w.meter.execution_s["stream"].count == 1

    run(main())


def test_an_aborted_delivery_is_forgotten(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 1)
            assert len(w.meter._starts) == 1
            await w.engine.ask(Cancel("a0"))
            assert not w.meter._starts

    run(main())


def test_log_store_and_batches_are_measured(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 10)
            assert w.meter.batch.count == w.meter.append_s.count == w.meter.turns
            assert w.meter.batch.sum >= 10
            assert w.meter.sync_s.total().count >= 1
            assert w.meter.last_sync_ms == NOW
            await w.engine.checkpoint()
            assert w.meter.checkpoint_s.count == 1
            assert w.meter.recovery_s > 0

    run(main())


def test_dead_letters_of_the_last_minutes(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            for minute in range(3):
                await w.many(f"{minute}-", 5 * (minute + 1))
                await w.end(Rejected("x", "never"))
                await w.pass_ms(60_000)
            now_ms = w.clock.now_ms()
            assert w.meter.dead_letters() == 30
            assert w.meter.dead_since(now_ms - 3_600_000) == 30
            assert w.meter.dead_since(now_ms - 90_000) == 15
            assert w.meter.dead_since(now_ms - 1_000) == 0

    run(main())


def test_a_duplicate_is_counted(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.submit(Item("a", 0, NOW + 1_000, key="k"))
            await w.submit(Item("b", 0, NOW + 1_000, key="k"))
            assert w.meter.duplicates == 1

    run(main())


def test_the_tally_says_how_many_of_a_tier_have_a_status_also_after_a_restart(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 5, 1_000, tier=Tier.ULTRA)
            await w.many("b", 3, tier=Tier.FAST)
            await w.engine.ask(Cancel("a0"))
            await w.submit(Item("c", 0, NOW, after=("a1",)))
            expected = _standings(w)
        async with world(tmp_path, w.clock) as again:
            found = _standings(again)
            # What was out is lost by the restart, and waits for its next attempt.
            expected[Tier.FAST][DISPATCHING], expected[Tier.FAST][SCHEDULED] = 0, 3
            assert found == expected
            assert found[Tier.ULTRA][SCHEDULED], found[Tier.ULTRA][CANCELED] == (4, 1)
            counts = again.engine.reads.overview().counts
            assert [sum(tier[s] for tier in found) for s in Status] == [counts[s.name] for s in Status]
            assert again.engine.reads.tally().moves_to(ACKED) == 0

    def _standings(w):
        tally = w.engine.reads.tally()
        return [tally.standing(tier) for tier in Tier]

    run(main())


def test_no_meter_costs_nothing_and_changes_nothing(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            w.engine.meter = w.engine._dispatcher.meter = None
            await w.many("a", 3)
            assert await w.end() == 3
            assert w.meter.turns == 1  # the start's

    run(main())


def test_ack_levels_do_not_matter(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 2, ack=AckLevel.ASYNC)
            await w.end()
            assert w.meter.execution_s["task"].count == 2

    run(main())


def test_the_share_of_a_host_follows_the_size_of_the_tier(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            assert w.meter.host_share(Tier.STANDARD) == 40
            await w.engine.ask(Resize(Tier.STANDARD, 10))
            assert w.meter.host_share(Tier.STANDARD) == 8

    assert Meter().host_share(Tier.STANDARD) == 0
    run(main())
