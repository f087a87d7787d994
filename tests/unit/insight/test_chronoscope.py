"""The chronoscope shows each tier's work, permits and punctuality."""

from __future__ import annotations

import msgspec

from duetime.insight.chronoscope import look
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Failed
from duetime.protocol.terms import Tier
from tests.unit.insight.rig import NOW, run, world

HOUR = 3_600_000


def test_work_permits_and_lateness(tmp_path):
    async def main():
        async with world(tmp_path, permits=(2, 4, 50, 50, 50)) as w:
            await w.many("far", 3, HOUR, tier=Tier.FAST)
            await w.submit(Item("blocked", 0, NOW, after=("far0",)), tier=Tier.FAST)
            await w.many("a", 60, tier=Tier.ULTRA)
            scope = look(w.engine, w.meter)
            ultra, fast = scope.tiers[0], scope.tiers[1]
            # Its own two, half of four, and half of fifty three times.
            assert (ultra.running, ultra.ready, ultra.pending) == (60, 0, 0)
            assert (ultra.permits.available, ultra.permits.max, ultra.permits.borrowed) == (0, 2, 58)
            assert (fast.permits.lent, fast.pending) == (2, 4)
            assert scope.borrowed_now == scope.borrows == 58
            assert ultra.load == 1.0
            await w.many("b", 60, tier=Tier.ULTRA)
            assert look(w.engine, w.meter).tiers[0].backpressure == "WAITING"
            await w.pass_ms(40)
            await w.end()
            await w.end()
            late = look(w.engine, w.meter).tiers[0].lateness
            assert late.count == 120
            assert late.bound_ms == 10
            assert late.p99_ms is not None
            assert 30 <= late.p99_ms <= 50
            await w.pass_ms(HOUR // 2)
            assert look(w.engine, w.meter).tiers[0].lateness.p99_ms is None

    run(main())


def test_a_tier_that_cannot_hold_its_bound_refuses(tmp_path):
    async def main():
        async with world(tmp_path, permits=(200, 150, 50, 50, 1), lateness_guard=True) as w:
            await w.many("a", 300, tier=Tier.ECONOMY)
            for _ in range(90):
                await w.pass_ms(50)
                await w.end(Failed("x", "no", delay_ms=3_600_000))
            assert look(w.engine, w.meter).tiers[4].backpressure == "REFUSING"

    run(main())


def test_the_chronoscope_can_be_encoded_as_json(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 3, HOUR)
            shown = msgspec.json.decode(msgspec.json.encode(look(w.engine, w.meter)))
            assert shown["nextWakeAt"] == "2030-01-01T01:00:00.000Z"
            assert shown["log"]["segments"] == 1
            assert shown["log"]["bytes"] > 0
            assert shown["store"]["unwritten"] == 3
            assert shown["store"]["checkpointLagBytes"] > 0
            assert shown["counts"]["SCHEDULED"] == 3
            await w.engine.checkpoint()
            store = look(w.engine, w.meter).store
            assert (store.unwritten, store.hot, store.cold, store.checkpoint_lag_bytes) == (0, 0, 3, 0)

    run(main())
