"""The engine and its disk: what waits for a sync, what a failing one stops, and what a full one refuses."""

from __future__ import annotations

import asyncio
import errno
import os
import threading

import pytest

from duetime import App, Status, errors
from duetime.config import Config
from duetime.engine.reads.gauges import gauges
from duetime.settings import StoreSettings
from tests.integration.rig import SOON, Gate, WatchedDisk, engine_of, on_disk, running


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def broken(number: int):
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture
def disk():
    return WatchedDisk()


@pytest.fixture
def app(tmp_path, disk, monkeypatch):
    on_disk(monkeypatch, disk, allocate_bytes=4096)
    # No checkpoint comes between: it syncs too.
    config = Config(store=StoreSettings(checkpoint_ms=3_600_000))
    return App(str(tmp_path / "data"), config=config)


class HeldSync:
    """Syncs do not end until they are let go."""

    def __init__(self, disk: WatchedDisk) -> None:
        self.begun = threading.Event()
        self._go = threading.Event()
        disk.before_sync = self._wait

    def _wait(self) -> None:
        self.begun.set()
        assert self._go.wait(20)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 10)

    def let_go(self) -> None:
        self._go.set()


async def as_task(call):
    return await call


async def a_while(*tasks: asyncio.Future) -> None:
    """Time enough for something that must not happen to happen."""
    never = asyncio.ensure_future(asyncio.Event().wait())
    await asyncio.wait([*tasks, never], timeout=0.1)
    never.cancel()


def test_durable_is_answered_after_the_sync_and_async_before(app, disk):
    @app.task
    async def work() -> None: ...

    async def main():
        async with app:
            sync = HeldSync(disk)
            durable = asyncio.ensure_future(as_task(work.options(ack="DURABLE", delay="1h").schedule()))
            await sync.reached()
            written = disk.events.count("write")
            await asyncio.wait_for(as_task(work.options(ack="ASYNC", delay="1h").schedule()), 10)
            assert disk.events.count("write") > written, "others go on meanwhile"
            await a_while(durable)
            assert not durable.done(), "answered before it was on the medium"
            sync.let_go()
            await asyncio.wait_for(durable, 10)

    run(main())


def test_at_most_once_starts_after_its_delivery_is_on_the_medium(app, disk):
    async def main():
        once, least = Gate(), Gate()
        once.open()
        least.open()

        @app.task(tier="ULTRA", guarantee="AT_MOST_ONCE")
        async def at_most_once() -> None:
            await once.wait()

        @app.task(tier="ULTRA")
        async def at_least_once() -> None:
            await least.wait()

        async with app:
            sync = HeldSync(disk)
            handle = await at_most_once.schedule()
            await at_least_once.schedule()
            await least.arrived()
            await sync.reached()
            await a_while()
            assert once.count == 0, "it began before its delivery was durable"
            sync.let_go()
            await handle.result(SOON)
            assert once.count == 1

    run(main())


def test_one_sync_serves_all_waiting_callers(app, disk):
    @app.task
    async def work() -> None: ...

    async def main():
        async with app:
            before = disk.events.count("sync")
            planned = work.options(delay="1h", ack="DURABLE")
            await asyncio.gather(*(as_task(planned.schedule()) for _ in range(500)))
            assert disk.events.count("sync") - before < 50

    run(main())


def test_a_failing_sync_stops_the_engine_and_every_caller_gets_the_error(app, disk):
    ran = []

    @app.task
    async def work(number: int) -> None:
        ran.append(number)

    async def outcome(call):
        try:
            return await call
        except errors.DuetimeError as error:
            return error

    async def main():
        await app.start()
        safe = await work.delay("1h").schedule(0)
        waiting = asyncio.ensure_future(outcome(safe.result()))
        await safe.view()  # answered after the wait has begun
        disk.before_sync = broken(errno.EIO)
        calls = [outcome(work.options(ack="DURABLE").schedule(n)) for n in range(1, 4)]
        answers = await asyncio.wait_for(asyncio.gather(*calls), 10)
        assert [type(answer) for answer in answers] == [errors.Fatal] * 3, answers
        assert "Input/output error" in answers[0].message
        assert type(await asyncio.wait_for(waiting, 10)) is errors.Fatal
        for call in (safe.view(), app.find(), work.schedule(9), safe.cancel()):
            assert type(await outcome(call)) is errors.Fatal
        await app.stop()
        disk.before_sync = lambda: None
        async with app:
            assert await safe.status() is Status.SCHEDULED, "what was acknowledged before is there"
            await (await work.schedule(5)).result(SOON)
        assert 5 in ran

    run(main())


def test_a_failing_write_stops_the_engine_too(app, disk):
    @app.task
    async def work() -> None: ...

    async def main():
        await app.start()
        disk.before_write = broken(errno.EIO)
        with pytest.raises(errors.Fatal, match="Input/output error"):
            await work.schedule()
        with pytest.raises(errors.Fatal, match="Input/output error"):
            await app.find()
        await app.stop()
        disk.before_write = lambda: None
        async with app:
            await (await work.schedule()).result(SOON)

    run(main())


def test_on_a_full_disk_new_work_is_refused_and_running_work_continues(app, disk):
    async def main():
        gate = Gate()

        @app.task(tier="ULTRA")
        async def work(text: str = "") -> str:
            await gate.wait()
            return "done"

        async with app:
            handle = await work.schedule()
            await gate.arrived()
            disk.before_write = broken(errno.ENOSPC)
            with pytest.raises(errors.NoSpace):
                await work.schedule("x" * 10_000)
            assert await handle.status() is Status.DISPATCHING, "reading goes on"
            gate.open()
            with pytest.raises(errors.NoSpace):
                await work.schedule("x" * 10_000)
            disk.before_write = lambda: None
            assert await handle.result(SOON) == "done", "its outcome was kept until there was room"
            assert (await handle.view()).delivery == 1
            assert await (await work.schedule()).result(SOON) == "done"
            assert len(await app.find()) == 2, "what was refused is not there"

    run(main())


def test_a_reserve_is_kept_for_finishing(app, disk):
    ran = []

    @app.task(name="work", tier="ULTRA")
    async def work(number: int) -> None:
        ran.append(number)

    async def main():
        async with running(app):
            accepted = await work.delay("50ms").schedule(1)
        disk.free = 1 << 20
        async with app:
            with pytest.raises(errors.NoSpace, match="are reserved"):
                await work.schedule(2)
            await accepted.result(SOON)
            disk.free = None
            await (await work.schedule(3)).result(SOON)
        assert ran == [1, 3]

    run(main())


def test_work_submitted_during_a_close_is_answered(app, disk):
    @app.task
    async def work() -> None: ...

    async def answer(call):
        try:
            return (await call).id
        except errors.Closed:
            return None

    async def main():
        await app.start()
        calls = [asyncio.ensure_future(answer(work.delay("1h").schedule())) for _ in range(20)]
        sync = HeldSync(disk)
        await asyncio.wait(calls, timeout=0.02)
        stopping = asyncio.ensure_future(app.stop())
        await sync.reached()
        sync.let_go()
        await asyncio.wait_for(stopping, 20)
        ids = {id for id in await asyncio.wait_for(asyncio.gather(*calls), 10) if id is not None}
        async with app:
            assert ids == {each.intent_id for each in await app.find()}, (
                "answered with an id if and only if it is there"
            )

    run(main())


def test_the_log_is_brought_to_the_medium_before_the_store(app, disk):
    @app.task
    async def work() -> None: ...

    async def main():
        async with app:
            await work.options(ack="ASYNC", delay="1h").schedule()
            before = disk.events.count("sync")
            await engine_of(app).checkpoint()
            assert disk.events.count("sync") > before

    run(main())


def test_closing_on_a_full_disk_comes_to_an_end(app, disk, monkeypatch):
    monkeypatch.setattr("duetime.engine.engine.CLOSE_FLUSH_MS_MAX", 50)

    async def main():
        gate = Gate()

        @app.task(name="work", tier="ULTRA")
        async def work() -> str:
            await gate.wait()
            return "x" * 10_000

        await app.start()
        handle = await work.schedule()
        await gate.arrived()
        disk.before_write = broken(errno.ENOSPC)
        gate.open()
        await asyncio.wait_for(app.stop(drain_ms=50), 20)
        disk.before_write = lambda: None
        async with app:
            await handle.result(SOON)
            assert (await handle.view()).delivery == 2, "its outcome could not be written, so it ran again"

    run(main())


def test_a_store_without_room_waits_for_some(tmp_path, sqlite_connections):
    config = Config(store=StoreSettings(checkpoint_ms=100))
    app = App(str(tmp_path / "data"), config=config)

    @app.task
    async def work(text: str) -> int:
        return len(text)

    async def main():
        async with app:
            pages = sqlite_connections[0].execute("PRAGMA page_count").fetchone()[0]
            for connection in sqlite_connections:
                connection.execute(f"PRAGMA max_page_count = {pages + 1}")
            handles = [await work.schedule("x" * 5_000) for _ in range(20)]
            assert [await handle.result(SOON) for handle in handles] == [5_000] * 20
            for _ in range(3):
                await engine_of(app).checkpoint()
                assert await (await work.schedule("more")).result(SOON) == 4, "it goes on meanwhile"
            for connection in sqlite_connections:
                connection.execute("PRAGMA max_page_count = 1000000")
            await engine_of(app).checkpoint()
            assert gauges(engine_of(app)).store.checkpoint_lag_bytes == 0
        async with app:
            assert [await handle.result(SOON) for handle in handles] == [5_000] * 20

    run(main())
