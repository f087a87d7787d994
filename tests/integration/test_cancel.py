"""Cancelling at the wrong moment: what was not started yet never starts."""

from __future__ import annotations

import asyncio

from duetime import App, Status
from tests.integration.rig import engine_of


def test_what_is_cancelled_while_its_delivery_waits_for_the_medium_never_starts(tmp_path, monkeypatch):
    app = App(str(tmp_path))
    runs: list[int] = []

    @app.task(ack="ASYNC", guarantee="AT_MOST_ONCE")
    async def once(number: int) -> None:
        runs.append(number)

    async def main() -> None:
        async with app:
            log = engine_of(app)._log
            sync, held = log.sync, asyncio.Event()

            async def slow_sync():
                await held.wait()
                return await sync()

            monkeypatch.setattr(log, "sync", slow_sync)
            applied = asyncio.Event()
            app.observe(lambda change: applied.set() if change.status is Status.CANCELED else None)
            handle = await once.schedule(1)
            assert await handle.status() is Status.DISPATCHING
            cancelled = asyncio.ensure_future(_cancel(handle))
            await applied.wait()
            held.set()
            await cancelled
            await engine_of(app).quiet()
            assert runs == []

    asyncio.run(main())


async def _cancel(handle) -> None:
    await handle.cancel()


def test_what_is_cancelled_while_it_waits_for_a_runner_never_starts(monkeypatch):
    app = App(":memory:")
    runs: list[int] = []

    @app.task(ack="ASYNC")
    async def work(number: int) -> None:
        runs.append(number)

    async def main() -> None:
        async with app:
            channel = engine_of(app)._dispatcher._channels[0]
            flush = channel.flush
            monkeypatch.setattr(channel, "flush", lambda: None)
            handle = await work.schedule(1)
            assert await handle.status() is Status.DISPATCHING
            await handle.cancel()
            flush()
            await engine_of(app).quiet()
            assert runs == []

    asyncio.run(main())
