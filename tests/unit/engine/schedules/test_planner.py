"""Ticks of a schedule that has an owner are told to whoever counts what owners make."""

from __future__ import annotations

import pytest

from duetime.engine.schedules import planner
from duetime.protocol.schedule import Schedule
from duetime.protocol.terms import Stream, Terms, lane_of
from tests.unit.insight.rig import run, world

TERMS = Terms(Stream("nobody"), lane_of(Stream("nobody")))


def test_the_ticks_of_an_owner_are_charged(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            charged: list[tuple[str, int]] = []
            w.engine.schedules.charge = lambda owner, count: charged.append((owner, count))
            await w.engine.schedules.put(Schedule("mine", TERMS, every_ms=1_000, owner="token"))
            await w.engine.schedules.put(Schedule("free", TERMS, every_ms=1_000))
            await w.pass_ms(1_000)
            await w.pass_ms(1_000)
            assert charged == [("token", 1), ("token", 1)]

    run(main())


@pytest.mark.parametrize(("still_ms", "by_ms", "looks"), [(0, 0, 0), (60_000, 0, 0), (0, 60_000, 1)])
def test_schedules_are_looked_at_when_the_clock_was_set_and_not_when_the_engine_stood_still(
    tmp_path, monkeypatch, still_ms, by_ms, looks
):
    looked: list[int] = []

    def rewound(state, now_ms):
        looked.append(now_ms)
        return ()

    async def main():
        async with world(tmp_path) as w:
            monkeypatch.setattr(planner, "rewound", rewound)
            w.engine._pump.stood_still = lambda: still_ms
            w.engine._pump._ahead_ms -= by_ms
            await w.engine.advance()
            w.engine._pump.stood_still = lambda: 0

    run(main())
    assert len(looked) == looks
