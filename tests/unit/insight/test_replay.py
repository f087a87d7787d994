"""Replay: the life of an intent, and everything as it stood, with the place on the log."""

from __future__ import annotations

import msgspec

from duetime.insight.replay import Replay
from duetime.protocol.command import Revive
from duetime.protocol.outcome import Failed, Rejected
from duetime.timefmt import moment_of
from tests.unit.insight.rig import NOW, as_read, run, world


def test_the_life_of_an_intent(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            replay = Replay(w.engine, w.library)
            await w.many("a", 1, 1_000)
            await w.pass_ms(1_000)
            await w.end(Failed("http", "502", delay_ms=500))
            await w.pass_ms(1_000)
            await w.end(Rejected("http", "404"))
            await w.pass_ms(1_000)
            await w.engine.ask(Revive("a0"))
            await w.pass_ms(10)
            await w.end()
            life = await replay.life("a0")
            assert life is not None
            assert [step.status for step in life.steps] == [
                "SCHEDULED", "DUE", "DISPATCHING", "SCHEDULED", "DUE", "DISPATCHING", "DEAD_LETTERED",
                "SCHEDULED", "DUE", "DISPATCHING", "ACKED",
            ]  # fmt: skip
            assert "502" in life.steps[3].note
            assert (life.status, life.status_at) == ("ACKED", None)
            moments = {-1: None, 0: "SCHEDULED", 1_000: "SCHEDULED", 2_500: "DEAD_LETTERED", 9_000: "ACKED"}
            for after_ms, status in moments.items():
                then = await replay.life("a0", NOW + after_ms)
                assert then is not None
                assert then.status_at == status, after_ms
            then = await replay.life("a0", NOW + 2_500)
            assert then is not None
            assert len(then.steps) == 7
            assert await replay.life("nobody") is None
            shown = msgspec.json.decode(msgspec.json.encode(life))
            assert shown["steps"][0] == {
                "at": "2030-01-01T00:00:00.000Z", "status": "SCHEDULED", "delivery": 0, "note": "",
            }  # fmt: skip

    run(main())


def test_everything_as_it_stood_and_where_the_log_was(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            replay = Replay(w.engine, w.library)
            seen = {}
            for number in range(5):
                await w.many(f"{number}-", 200, 2_000)
                seen[w.clock.now_ms()] = (w.engine.reads.overview().counts, w.engine.reads.overview().records)
                await w.pass_ms(1_000)
                await w.end()
            for at_ms, (counts, records) in seen.items():
                past = await replay.system(at_ms + 500)
                assert past.exact
                assert past.log is not None
                assert past.log.epoch == 1
                assert past.log.record == records
                assert sum(past.counts.values()) == sum(counts.values())
            before = await replay.system(NOW - 1)
            assert before.log is None
            assert not any(before.counts.values())
            now = as_read(await replay.system(NOW + 10**9))
            assert now.counts == w.engine.reads.overview().counts
            assert now.at == moment_of(NOW + 5_000)

    run(main())


def test_a_restart_is_another_epoch(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 1, 10_000_000)
        w.clock.set_ms(NOW + 60_000)
        async with world(tmp_path, w.clock) as again:
            replay = Replay(again.engine, again.library)
            places = [(await replay.system(NOW + after_ms)).log for after_ms in (0, 30_000, 60_000)]
            assert [place.epoch for place in places if place is not None] == [1, 1, 2]
            segments = await replay.segments()
            assert [(s.first_position, s.epoch, s.sealed) for s in segments] == [(0, 1, False)]
            assert segments[0].end_position == again.engine.position

    run(main())
