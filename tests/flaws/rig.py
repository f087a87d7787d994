"""An engine whose process may be killed and whose disk may lose its power, on a clock set by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from duetime.channels.local.inline import InlineChannel
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions
from duetime.errors import Fatal
from duetime.log.file import FileLog
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Done, Outcome
from duetime.protocol.terms import AckLevel, Entity, Task, Terms
from duetime.refusals import Submitted
from duetime.store.memory import MemoryStore
from duetime.testing.disk import FaultyDisk, Survival
from duetime.testing.time import ManualClock
from tests.unit.kernel.bench import T0, terms

Body = Callable[[Deliver], Awaitable[Outcome]]


class Handler:
    """Runs one coroutine function for every delivery, and remembers which."""

    executor: Executor | None = None
    workers = 0

    def __init__(self, body: Body | None) -> None:
        self.body = body
        self.ran: list[str] = []

    def run(self, delivery: Deliver) -> Coroutine[Any, Any, Outcome]:
        self.ran.append(delivery.id)
        return self._run(delivery)

    async def _run(self, delivery: Deliver) -> Outcome:
        return Done() if self.body is None else await self.body(delivery)

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        raise NotImplementedError

    def outcome(self, delivery: Deliver, value: Any, error: BaseException | None) -> Outcome:
        raise NotImplementedError


class World:
    """What outlives a process: a disk, what the store wrote, and the time."""

    def __init__(self) -> None:
        self.disk = FaultyDisk()
        self.store = MemoryStore(durable=True)
        self.clock = ManualClock(T0)

    @asynccontextmanager
    async def life(
        self, handler: Handler | None, survival: Survival = Survival.EVERYTHING, **options: Any
    ) -> AsyncIterator[Engine]:
        """One process. It ends by being killed, or by a loss of power if `survival` says so: nothing is
        written or told on its way out."""
        self.store = self.store.reopen()
        log = FileLog("log", disk=self.disk, allocate_bytes=1 << 16, inline_sync=True)
        channel = InlineChannel(lambda delivery: handler)
        dispatcher = Dispatcher({Task: channel, Entity: channel})
        engine = Engine(log, self.store, self.clock, dispatcher, EngineOptions(**options))
        await engine.start()
        try:
            yield engine
        finally:
            self.disk.lose_power()
            engine._phase.fail(Fatal("killed"))
            await dispatcher.close()
            await engine._let_go()
            self.disk.restart(Random(1), survival)


async def submit(
    engine: Engine, *ids: str, on: Terms | None = None, ack: AckLevel = AckLevel.DURABLE, **item: Any
) -> list[Submitted]:
    now_ms = engine.clock.now_ms()
    delay = item.pop("delay", 0)
    items = tuple(Item(id, 0, now_ms + delay, **item) for id in ids)
    return await engine.submit((on if on is not None else terms(),), items, ack)
