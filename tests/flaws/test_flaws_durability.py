"""Flaws of earlier systems of this kind, on durability: none may exist here.

Numbers are those of the list of flaws. The engine here is the real one, on a disk that can lose its power.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from duetime.errors import Busy, Damaged, DuetimeError, LaneFull
from duetime.limits import DAY_MS
from duetime.protocol.command import Settings
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import Status
from duetime.protocol.outcome import Done, Failed, Outcome
from duetime.protocol.terms import AckLevel
from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import SEQ_MAX
from duetime.testing.disk import Survival
from tests.flaws.rig import Handler, World, submit
from tests.unit.kernel.bench import T0, Bench, delivered, entity, errors, thawed


def test_flaw_10_a_far_intent_outlives_checkpoints_and_restarts_and_is_known_all_the_while(tmp_path):
    """Far away, it was lost by a restart after a snapshot; while cold, it and its key were unknown."""
    path = tmp_path / "store.db"
    bench = Bench(SqliteStore(path))
    bench.submit("a", delay=20 * 3_600_000, key="k", fingerprint=1)
    for hour in range(1, 20):
        bench.at(hour * 3_600_000)
        bench.save(hour)
        assert bench.status("a") is Status.SCHEDULED
        assert errors(bench.submit("b", key="k", fingerprint=2)) == ["KeyReused"]
        bench.store.close()
        bench = thawed(SqliteStore(path), bench.ms)
    assert delivered(bench.at(20 * 3_600_000 - 1)) == []
    assert delivered(bench.at(20 * 3_600_000)) == ["a"]
    bench.store.close()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_flaw_11_what_was_acknowledged_is_not_delivered_again(checkpoint):
    """Outcomes were never logged: after `kill -9`, everything acknowledged was delivered again."""
    world = World()

    async def run() -> None:
        first, second = Handler(None), Handler(None)
        async with world.life(first) as engine:
            await submit(engine, *(f"i{n}" for n in range(50)))
            for n in range(50):
                assert (await engine.wait(f"i{n}")).status is Status.ACKED
            if checkpoint:
                await engine.checkpoint()
        async with world.life(second) as engine:
            world.clock.set_ms(T0 + DAY_MS)
            await engine.advance()
            await engine.quiet()
            view = engine.reads.get("i7")
            assert view is not None and view.status is Status.ACKED
        assert (len(first.ran), second.ran) == (50, [])

    asyncio.run(run())


def test_flaw_12_a_durable_write_is_answered_when_it_is_on_the_medium():
    """A DURABLE write could be answered before its fsync."""
    world = World()

    async def run() -> None:
        async with world.life(Handler(None), Survival.NOTHING) as engine:
            replies = await submit(engine, *(f"i{n}" for n in range(20)), delay=3_600_000)
            assert len(replies) == 20
            # The power goes off in the very moment of the answer.
        async with world.life(Handler(None)) as engine:
            assert engine.reads.overview().counts["SCHEDULED"] == 20

    asyncio.run(run())


def test_flaw_12_a_durable_write_is_not_answered_while_its_sync_fails():
    """The other half: an answer before the sync would be seen here."""
    world = World()

    async def run() -> None:
        async with world.life(Handler(None), Survival.NOTHING) as engine:
            number = len(world.disk.operations)
            world.disk.errors = {number + step: 5 for step in range(2, 40)}  # everything after the write
            with pytest.raises(Exception, match=r"."):
                await submit(engine, "a", delay=3_600_000)
            world.disk.errors = {}

    asyncio.run(run())


def test_flaw_12_damage_in_a_checkpoint_is_named(tmp_path):
    """Snapshot damage was fatal without a word, or silent."""
    path = tmp_path / "store.db"
    bench = Bench(SqliteStore(path))
    bench.submit("a", delay=DAY_MS)
    bench.save()
    bench.store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE intents SET wake_at_ms = wake_at_ms + 1")
    connection.close()
    store = SqliteStore(path)
    with pytest.raises(Damaged, match="row 1 of the table intents"):
        store.get("a")
    store.close()


def test_flaw_13_finished_intents_are_forgotten_in_memory_and_on_disk(tmp_path):
    """Finished intents were never purged: memory and snapshots grew without end."""
    store = SqliteStore(tmp_path / "store.db")
    bench = Bench(store, retention_ms=DAY_MS)
    pages = []
    for day in range(1, 13):
        bench.at(day * DAY_MS)
        ids = [f"{day}-{n}" for n in range(200)]
        bench.submit(*ids, delay=50)
        for id in ids:
            bench.cancel(id)
        bench.save(day)
        assert store.hot() == 0
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
            pages.append(connection.execute("SELECT count(*) FROM intents").fetchone()[0])
    assert max(pages) <= 3 * 200
    assert len(store.page(None, None, SEQ_MAX, 10_000)) <= 3 * 200
    store.close()


def test_flaw_14_what_was_refused_never_runs_and_a_depth_of_ten_is_ten():
    """Refused work was on the log and ran after a restart; a depth of 10 admitted 1,000."""
    world = World()
    settings = Settings(lane_pending_max=10)

    async def run() -> None:
        async with world.life(Handler(None), settings=settings) as engine:
            many = [submit(engine, f"i{n}", delay=60_000) for n in range(1_000)]
            replies = [reply for part in await asyncio.gather(*many) for reply in part]
            refused = [reply for reply in replies if isinstance(reply, DuetimeError)]
            assert len(refused) == 990
            assert {type(error) for error in refused} == {LaneFull}
        handler = Handler(None)
        async with world.life(handler, settings=settings) as engine:
            assert engine.reads.overview().counts["SCHEDULED"] == 10
            world.clock.set_ms(T0 + 60_000)
            await engine.advance()
            await engine.quiet()
            assert handler.ran == [f"i{n}" for n in range(10)]

    asyncio.run(run())


def test_flaw_14_a_full_engine_refuses_before_it_writes():
    world = World()

    async def run() -> None:
        async with world.life(Handler(None), settings=Settings(pending_max=5)) as engine:
            await submit(engine, *(f"i{n}" for n in range(5)), delay=60_000)
            before = dict(world.disk.contents())
            with pytest.raises(Busy):
                await submit(engine, "more", delay=60_000)
            await engine.quiet()
            assert world.disk.contents() == before

    asyncio.run(run())


def test_flaw_15_recovery_keeps_the_order_of_messages_of_one_millisecond():
    """Counters sorted as text broke FIFO; a restart under a new random node id found nothing."""
    world = World()
    ids = [f"m{n}" for n in range(30)]

    async def run() -> None:
        async def never(delivery: Deliver) -> Outcome:
            await asyncio.Event().wait()
            return Done()

        first = Handler(never)
        async with world.life(first) as engine:
            await submit(engine, *ids, on=entity())
        assert first.ran == ["m0"]
        handler = Handler(None)
        async with world.life(handler) as engine:
            world.clock.set_ms(T0 + 60_000)
            await engine.advance()
            for id in ids:
                assert (await engine.wait(id)).status is Status.ACKED
        assert handler.ran == ids

    asyncio.run(run())


@pytest.mark.parametrize("ack", [AckLevel.ASYNC, AckLevel.DURABLE])
def test_flaw_16_what_was_handed_to_a_handler_that_died_is_handed_out_again(ack):
    """A message popped from the queue before it ran was lost by a crash."""
    world = World()

    async def run() -> None:
        async def never(delivery: Deliver) -> Outcome:
            await asyncio.Event().wait()
            return Done()

        first = Handler(never)
        async with world.life(first) as engine:
            await submit(engine, "a", "b", ack=ack)
            await engine.advance()
        assert sorted(first.ran) == ["a", "b"]
        handler = Handler(None)
        async with world.life(handler) as engine:
            world.clock.set_ms(T0 + 60_000)
            await engine.advance()
            for id in ("a", "b"):
                view = await engine.wait(id)
                assert (view.status, view.delivery, view.attempts) == (Status.ACKED, 2, 2)

    asyncio.run(run())


def test_flaw_17_a_handler_that_fails_in_one_life_is_tried_again_in_the_next():
    """A failed handler left its lock behind, so the retry was skipped and the work lost."""
    world = World()

    async def run() -> None:
        async def fails(delivery: Deliver) -> Outcome:
            return Failed("error", "no")

        async with world.life(Handler(fails)) as engine:
            await submit(engine, "a", "b", on=entity())
            await engine.quiet()
            view = engine.reads.get("a")
            assert view is not None and view.status is Status.SCHEDULED
        handler = Handler(None)
        async with world.life(handler) as engine:
            world.clock.set_ms(T0 + 60_000)
            await engine.advance()
            assert (await engine.wait("b")).status is Status.ACKED
        assert handler.ran == ["a", "b"]

    asyncio.run(run())


def test_flaw_22_a_missing_handler_is_a_dead_letter_with_its_reason():
    """A missing handler was a silent success."""
    world = World()

    async def run() -> None:
        async with world.life(None) as engine:
            await submit(engine, "a")
            view = await engine.wait("a")
            assert view.status is Status.DEAD_LETTERED
            assert view.last_error is not None and view.last_error.kind == "no-handler"

    asyncio.run(run())
