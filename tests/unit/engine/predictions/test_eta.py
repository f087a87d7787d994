"""An intent that waits behind others says when its turn will come, about."""

from __future__ import annotations

import pytest

from duetime.engine.predictions import eta
from duetime.protocol.command import Demand, LaneSettings, Order, SetLane
from duetime.protocol.terms import Stream
from tests.unit.insight.rig import World, run, world

NEWS = Stream("news")


async def busy(w: World) -> None:
    """Two at a time, 1,000 ms each; ten of them wait."""
    await w.engine.ask(Demand("w1", "stream:news", 6))
    await w.many("past", 6, target=NEWS)
    await w.pass_ms(1_000)
    await w.end()
    await w.engine.ask(Demand("w1", "stream:news", 2))
    await w.many("now", 12, target=NEWS)


def test_an_expected_start_is_part_of_the_reason(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await busy(w)
            last, first = w.engine.reads.why("now11"), w.engine.reads.why("now2")
            assert last is not None and first is not None
            assert last.code == "workers-busy" and last.data["ahead"] == 9
            assert last.data["eta_ms"] == pytest.approx(5_000, rel=0.05)
            assert "9 others are ahead of it in its lane; its turn comes in about" in last.sentence
            assert first.data["ahead"] == 0 and "Nobody is ahead of it" in first.sentence
            running = w.engine.reads.why("now0")
            assert running is not None and "eta_ms" not in running.data

    run(main())


def test_the_first_intent_by_estimate_has_none_ahead(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.engine.ask(SetLane("stream:news", LaneSettings(order=Order.EXPECTED)))
            await busy(w)
            assert w.meter.state is not None
            lane = w.meter.state.lanes["stream:news"]
            intent = w.engine.reads.intent("now2")
            assert intent is not None
            assert eta.ahead_of(lane, intent) == 0

    run(main())


def test_in_a_long_line_the_order_of_acceptance_tells(tmp_path, monkeypatch):
    async def main():
        monkeypatch.setattr(eta, "ETA_COUNTED_MAX", 5)
        async with world(tmp_path) as w:
            await busy(w)
            last = w.engine.reads.why("now11")
            assert last is not None and last.data["ahead"] == 9

    run(main())


def test_an_unknown_start_time_is_left_out(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 3, target=NEWS)
            why = w.engine.reads.why("a2")
            assert why is not None and why.code == "no-worker" and "eta_ms" not in why.data
            await w.engine.ask(Demand("w1", "stream:news", 1))
            why = w.engine.reads.why("a2")
            assert why is not None and why.code == "workers-busy" and "eta_ms" not in why.data

    run(main())
