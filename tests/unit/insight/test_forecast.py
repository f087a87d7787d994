"""The timeline: what fires when, and whether it can be done in time."""

from __future__ import annotations

import msgspec
import pytest

from duetime.errors import BadQuery
from duetime.insight.forecast import timeline
from duetime.protocol.command import Demand
from duetime.protocol.terms import Callback, Stream, Tier
from tests.unit.insight.rig import NOW, World, as_read, run, world

HOUR = 3_600_000


async def look(w: World, to_ms: int = NOW + HOUR, slots: int = 60):
    return as_read(await timeline(w.engine, w.meter, w.library, NOW, to_ms, slots))


def test_a_forecast_without_intents(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            found = await look(w)
            assert (found.total, found.peak, found.risk) == (0, None, "NONE")
            assert found.narrative == "Nothing is scheduled in this time."
            assert len(found.slots) == 60
            assert not any(each.measured for each in found.capacity)

    run(main())


def test_slots_by_tier_and_queue_and_the_peak(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 30, 10 * 60_000)
            await w.many("b", 5, 10 * 60_000 + 59_000, tier=Tier.FAST, target=Stream("news"))
            await w.many("c", 7, 30 * 60_000)
            found = await look(w)
            busy = [slot for slot in found.slots if slot.count]
            assert [(f"{slot.at:%H:%M}", slot.count) for slot in busy] == [("00:10", 35), ("00:30", 7)]
            assert busy[0].by_tier == {"FAST": 5, "STANDARD": 30}
            assert busy[0].by_queue == {"stream:news": 5, "task:default": 30}
            assert found.peak is not None
            assert (found.peak.count, found.total) == (35, 42)
            assert found.risk == "NONE"
            assert found.narrative == (
                "42 intents will fire, at most 35 within 1 min at 2030-01-01T00:10:00.000Z:"
                " that can be done in time."
            )
            shown = msgspec.json.decode(msgspec.json.encode(found))
            assert {"slotMs", "slots", "peak", "capacity", "predictedLatenessMs", "risk"} <= set(shown)

    run(main())


def test_too_much_for_its_permits_is_late(tmp_path):
    async def main():
        async with world(tmp_path, permits=(200, 150, 50, 50, 1)) as w:
            await w.many("first", 1, tier=Tier.ECONOMY)
            await w.pass_ms(100)
            await w.end()  # a delivery takes 100 ms: ten in a second
            await w.many("a", 700, 60_000, tier=Tier.ECONOMY)
            found = await look(w, NOW + HOUR)
            economy = next(each for each in found.capacity if each.name == "ECONOMY")
            assert (economy.per_second, economy.measured) == (10.0, True)
            # 700 in a minute in which 600 can be done: the last waits ten seconds.
            assert found.predicted_lateness_ms["ECONOMY"] == pytest.approx(10_000)
            assert found.risk == "HIGH"
            assert "ECONOMY is expected to be up to 10 s late, its bound is 1000 ms" in found.narrative
            late = [slot for slot in found.slots if slot.predicted_lateness_ms]
            assert [slot.count for slot in late] == [700]

    run(main())


def test_batched_callbacks_take_a_part_of_a_permit(tmp_path):
    async def main():
        async with world(tmp_path, permits=(200, 150, 50, 50, 1)) as w:
            await w.many("first", 1, tier=Tier.ECONOMY, target=Callback("http://x", batch=True))
            await w.pass_ms(100)
            await w.end()
            await w.many("a", 700, 60_000, tier=Tier.ECONOMY, target=Callback("http://x", batch=True))
            found = await look(w)
            economy = next(each for each in found.capacity if each.name == "ECONOMY")
            assert economy.per_second == pytest.approx(2_000)
            assert found.risk == "NONE"

    run(main())


def test_a_forecast_of_a_pulled_queue_follows_its_workers(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.engine.ask(Demand("w1", "stream:news", 2))
            await w.many("a", 1, target=Stream("news"))
            await w.pass_ms(1_000)
            await w.end()  # a delivery takes a second
            await w.engine.ask(Demand("w1", "stream:news", 1))
            await w.many("b", 130, 60_000, target=Stream("news"))
            found = await look(w)
            news = next(each for each in found.capacity if each.name == "stream:news")
            assert (news.at_once, news.per_second) == (2.0, 2.0)
            assert found.predicted_lateness_ms["STANDARD"] == pytest.approx(5_000)

    run(main())


@pytest.mark.parametrize(("to_ms", "slots"), [(NOW, 10), (NOW + HOUR, 0), (NOW + HOUR, 501)])
def test_bad_questions(tmp_path, to_ms, slots):
    async def main():
        async with world(tmp_path) as w:
            with pytest.raises(BadQuery):
                await look(w, to_ms, slots)

    run(main())
