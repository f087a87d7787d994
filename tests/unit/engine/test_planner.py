"""Ticks of a schedule that has an owner are told to whoever counts what owners make."""

from __future__ import annotations

from duetime.protocol.schedule import Schedule
from duetime.protocol.terms import Stream, Terms, lane_of
from tests.unit.insight.rig import run, world

TERMS = Terms(Stream("nobody"), lane_of(Stream("nobody")))


def test_the_ticks_of_an_owner_are_charged(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            charged: list[tuple[str, int]] = []
            w.engine.charge = lambda owner, count: charged.append((owner, count))
            await w.engine.put_schedule(Schedule("mine", TERMS, every_ms=1_000, owner="token"))
            await w.engine.put_schedule(Schedule("free", TERMS, every_ms=1_000))
            await w.pass_ms(1_000)
            await w.pass_ms(1_000)
            assert charged == [("token", 1), ("token", 1)]

    run(main())
