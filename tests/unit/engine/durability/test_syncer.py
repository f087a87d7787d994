"""When the log is synced: at once, within a window, once for all; and what happens when it cannot be."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duetime.engine.durability.syncer import Syncer
from duetime.errors import Damaged, Fatal
from duetime.log.log import Position
from duetime.log.memory import MemoryLog
from tests.unit.insight.rig import run

HOUR_S = 3_600.0


class CountingLog(MemoryLog):
    """Counts syncs; each takes until the test lets it end."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Queue[Position]()
        self.may_end = asyncio.Semaphore(0)
        self.error: Exception | None = None

    async def sync(self) -> Position:
        tail = self.storage.tail
        self.begun.put_nowait(tail)
        await self.may_end.acquire()
        if self.error is not None:
            raise self.error
        return tail


class Rig:
    """A syncer and what it said."""

    def __init__(self) -> None:
        self.log = CountingLog()
        self.reached = asyncio.Queue[Position]()
        self.failed = asyncio.Queue[Exception]()
        self.syncer = Syncer(self.log, self.reached.put_nowait, self.failed.put_nowait)
        self.syncer.start()

    def write(self, position: Position, within_s: float) -> None:
        self.log.storage.tail = position
        self.syncer.written(position, within_s)


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    async with asyncio.timeout(10):
        yield made
    await made.syncer.close()


def test_a_sync_covers_what_was_written_when_it_began_and_the_next_the_rest():
    async def main() -> None:
        async with rig() as r:
            r.write(10, 0)
            assert await r.log.begun.get() == 10
            r.write(20, 0)
            r.write(30, 0)
            r.log.may_end.release()
            assert await r.reached.get() == 10
            assert await r.log.begun.get() == 30, "one sync for both that came meanwhile"
            r.log.may_end.release()
            assert await r.reached.get() == 30 == r.syncer.synced

    run(main())


def test_a_position_that_is_synced_already_is_reported_without_a_sync():
    async def main() -> None:
        async with rig() as r:
            r.log.may_end.release()
            r.write(10, 0)
            assert await r.reached.get() == 10
            r.syncer.written(10, 0)
            assert await r.reached.get() == 10
            assert r.log.begun.qsize() == 1

    run(main())


def test_a_window_ends_when_the_earliest_does():
    async def main() -> None:
        async with rig() as r:
            r.log.may_end.release()
            r.write(10, HOUR_S)
            r.write(20, 2 * HOUR_S)
            assert r.log.begun.empty()
            r.write(30, 0.001)
            assert await r.reached.get() == 30

    run(main())


def test_a_sync_at_once_covers_what_its_window_would_have(monkeypatch):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        call_at = loop.call_at

        def planned(*arguments: Any) -> asyncio.TimerHandle:
            timers.append(call_at(*arguments))
            return timers[-1]

        async with rig() as r:
            monkeypatch.setattr(loop, "call_at", planned)
            r.log.may_end.release()
            r.write(10, HOUR_S)
            r.write(20, 0)
            assert await r.reached.get() == 20
            assert [timer.cancelled() for timer in timers] == [True]

    run(main())


def task_of_syncer() -> asyncio.Task[Any]:
    """The only task besides that of the test."""
    [task] = asyncio.all_tasks() - {asyncio.current_task()}
    return task


def test_a_failed_sync_is_reported_and_not_retried():
    async def main() -> None:
        async with rig() as r:
            task = task_of_syncer()
            r.log.error = Damaged("fdatasync failed")
            r.log.may_end.release()
            r.write(10, 0)
            assert isinstance(await r.failed.get(), Damaged)
            r.write(20, 0)
            await asyncio.wait([task])
            assert r.log.begun.qsize() == 1
            assert r.reached.empty()

    run(main())


@pytest.mark.skipif(
    sys.gettrace() is not None and sys.version_info < (3, 12),
    reason="CPython 3.11 loses exceptions that are thrown into a traced coroutine",
)
def test_a_task_that_is_cancelled_from_outside_is_a_failure():
    async def main() -> None:
        async with rig() as r:
            r.write(10, 0)
            await r.log.begun.get()
            task_of_syncer().cancel()
            assert isinstance(await r.failed.get(), Fatal)

    run(main())


def test_closing_is_no_failure():
    async def main() -> None:
        async with rig() as r:
            r.write(10, HOUR_S)
            await r.syncer.close()
            assert r.failed.empty()
            assert r.log.begun.empty()

    run(main())
