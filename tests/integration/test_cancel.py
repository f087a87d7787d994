"""Cancelling at the wrong moment: what was not started yet never starts."""

from __future__ import annotations

import asyncio

from duetime import App, Status
from duetime.channels.local.inline import InlineChannel
from duetime.log.file import FileLog
from tests.integration.rig import engine_of


def test_an_intent_cancelled_while_its_delivery_waits_for_a_sync_never_starts(tmp_path, monkeypatch):
    app = App(str(tmp_path))
    runs: list[int] = []

    @app.task(ack="ASYNC", guarantee="AT_MOST_ONCE")
    async def once(number: int) -> None:
        runs.append(number)

    async def main() -> None:
        async with app:
            sync, held = FileLog.sync, asyncio.Event()

            async def slow_sync(log):
                await held.wait()
                return await sync(log)

            monkeypatch.setattr(FileLog, "sync", slow_sync)
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


def test_an_intent_cancelled_while_it_waits_for_a_runner_never_starts(monkeypatch):
    app = App(":memory:")
    runs: list[int] = []

    @app.task(ack="ASYNC")
    async def work(number: int) -> None:
        runs.append(number)

    async def main() -> None:
        async with app:
            channels: list[InlineChannel] = []

            def hold(channel: InlineChannel) -> None:
                channels.append(channel)

            with monkeypatch.context() as patched:
                patched.setattr(InlineChannel, "flush", hold)
                handle = await work.schedule(1)
                assert await handle.status() is Status.DISPATCHING
                await handle.cancel()
            channels[0].flush()
            await engine_of(app).quiet()
            assert runs == []

    asyncio.run(main())
