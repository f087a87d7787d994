"""Clients that repeat themselves: what is known already takes no room on the log, and is no less durable."""

from __future__ import annotations

import asyncio

import pytest

from duetime import App, errors
from duetime.config import Config
from duetime.engine.durability import checkpointer
from duetime.engine.reads.gauges import gauges
from duetime.protocol.command import Pause, Resume
from duetime.settings import StoreSettings
from tests.integration.rig import SOON, Gate, WatchedDisk, engine_of, on_disk
from tests.integration.test_disk import HeldSync, a_while, as_task

REPEATS = 2_000


@pytest.fixture
def app(tmp_path):
    config = Config(store=StoreSettings(checkpoint_ms=3_600_000))
    return App(str(tmp_path / "data"), config=config)


def position(app: App) -> int:
    return engine_of(app).position


def test_repeats_and_refusals_take_no_room_on_the_log(app):
    @app.task
    async def later(number: int) -> None: ...

    async def main() -> None:
        async with app:
            first = await later.options(key="k").delay("1h").schedule(1)
            named = later.options(id="mine").delay("1h")
            await named.schedule(1)
            before = position(app)
            for _ in range(REPEATS // 50):
                calls = [later.options(key="k").delay("1h").schedule(1) for _ in range(50)]
                assert {handle.id for handle in await asyncio.gather(*calls)} == {first.id}
            for _ in range(20):
                with pytest.raises(errors.IdExists):
                    await named.schedule(1)
                with pytest.raises(errors.KeyReused):
                    await later.options(key="k").delay("1h").schedule(2)
            assert position(app) == before

    asyncio.run(main())


def test_a_schedule_put_again_as_it_is_takes_no_room(app):
    @app.every("1h", id="hourly")
    async def hourly() -> None: ...

    async def main() -> None:
        async with app:
            engine = engine_of(app)
            (table,) = engine.schedules.all()
            before = position(app)
            for _ in range(100):
                assert await engine.schedules.put(table.schedule) == table
            with pytest.raises(errors.NoSuchSchedule):
                await engine.schedules.drop("none")
            assert position(app) == before

    asyncio.run(main())


def test_a_repeat_is_answered_durable_only_when_the_first_is(app, monkeypatch):
    disk = WatchedDisk()
    on_disk(monkeypatch, disk)

    @app.task(ack="DURABLE")
    async def later(number: int) -> None: ...

    async def main() -> None:
        async with app:
            held = HeldSync(disk)
            plan = later.options(key="k").delay("1h")
            first = asyncio.ensure_future(as_task(plan.schedule(1)))
            await held.reached()
            again = asyncio.ensure_future(as_task(plan.schedule(1)))
            await a_while(first, again)
            assert not first.done() and not again.done()
            held.let_go()
            assert (await first).id == (await again).id

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_key_is_free_again_when_its_intent_has_ended_and_its_window_too(app):
    """What runs meanwhile changes the answer."""
    gate = Gate()

    @app.task
    async def work(number: int) -> int:
        await gate.wait()
        return number

    async def main() -> None:
        async with app:
            plan = work.options(key="k")
            first = await plan.schedule(1)
            await gate.arrived()
            assert (await plan.schedule(1)).id == first.id
            gate.open()
            assert await first.result(SOON) == 1
            with pytest.raises(errors.KeyFinished):
                await plan.schedule(1)

    asyncio.run(main())


def test_records_that_change_no_intent_cause_a_checkpoint_too(app, monkeypatch):
    monkeypatch.setattr(checkpointer, "CHECKPOINT_BYTES", 20_000)

    async def main() -> None:
        async with app:
            engine = engine_of(app)
            while gauges(engine).store.checkpoints < 2:
                await engine.ask(Pause("task:default"))
                await engine.ask(Resume("task:default"))
            assert position(app) < 100_000
            assert gauges(engine).store.unwritten == 0

    asyncio.run(asyncio.wait_for(main(), 60))
