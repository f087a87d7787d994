"""Waiters and observers that register during a slow append are told what it changed."""

from __future__ import annotations

import asyncio

from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.log.memory import MemoryLog
from duetime.protocol.effect import Change
from duetime.protocol.intent import Item, Status
from duetime.protocol.terms import AckLevel, Task, Terms
from duetime.store.memory import MemoryStore
from duetime.testing.time import EPOCH_MS, ManualClock
from tests.unit.insight.rig import SETTINGS, HandChannel, run

WORK = Terms(Task("work"), "task:default")


class SlowLog(MemoryLog):
    """A log whose append takes until the test lets it end."""

    def __init__(self) -> None:
        super().__init__()
        self.appending = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def append(self, at: Position, frame: Frame) -> Position:
        self.appending.set()
        await self.may_end.wait()
        return await super().append(at, frame)


class Slow:
    """An engine on a slow log, with one intent that a channel holds and whose outcome is being written."""

    def __init__(self) -> None:
        self.log, self.channel = SlowLog(), HandChannel()
        clock, dispatcher = ManualClock(), Dispatcher({Task: self.channel})
        self.engine = Engine(self.log, MemoryStore(), clock, dispatcher, EngineOptions(settings=SETTINGS))

    async def start(self) -> None:
        await self.engine.start()
        await self.engine.submit((WORK,), (Item("a", 0, EPOCH_MS),), AckLevel.DURABLE)
        await self.engine.quiet()
        self.log.may_end.clear()
        self.log.appending.clear()
        self.channel.end()
        await self.log.appending.wait()


def test_a_waiter_that_registers_during_an_append_gets_its_result():
    async def main() -> None:
        slow = Slow()
        await slow.start()
        waiter = asyncio.create_task(slow.engine.wait("a"))
        await asyncio.sleep(0)  # tidy: it waits now, while the append is under way
        slow.log.may_end.set()
        async with asyncio.timeout(5):
            assert (await waiter).status is Status.ACKED
        await slow.engine.close(0)

    run(main())


def test_an_observer_that_comes_during_an_append_sees_what_it_changes():
    async def main() -> None:
        slow, seen = Slow(), list[Change]()
        await slow.start()
        slow.engine.observe(seen.append)
        slow.log.may_end.set()
        await slow.engine.quiet()
        assert [(change.id, change.new) for change in seen] == [("a", Status.ACKED)]
        await slow.engine.close(0)

    run(main())
