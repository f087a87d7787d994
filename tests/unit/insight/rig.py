"""A whole engine on a real log and store, with a clock set by hand and a channel answered by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from duetime.channels.channel import Settler
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions
from duetime.engine.reads.library import Library
from duetime.engine.reads.meter import Meter
from duetime.errors import Fatal
from duetime.log.file import FileLog
from duetime.protocol.command import Pause, Settings
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Done, Outcome, Settlement
from duetime.protocol.terms import AckLevel, Callback, Entity, Stream, Task, Terms, Tier, lane_of
from duetime.refusals import Submitted
from duetime.store.sqlite.store import SqliteStore
from duetime.testing.time import EPOCH_MS, ManualClock

NOW = EPOCH_MS
SETTINGS = Settings(pushed=("callback", "task"))


T = TypeVar("T")


async def turns_of(work: Awaitable[T]) -> tuple[int, T]:
    """How many turns others on the loop have meanwhile, and what comes of it."""
    done, turns = asyncio.ensure_future(work), 0
    while not done.done():
        turns += 1
        await asyncio.sleep(0)  # tidy: a turn of the loop
    return turns, done.result()


class HandChannel:
    """Keeps deliveries until the test says how they ended."""

    def __init__(self) -> None:
        self.out: list[Deliver] = []
        self.settle: Settler = lambda settlements: None

    def open(self, settle: Settler) -> None:
        self.settle = settle

    def deliver(self, delivery: Deliver) -> None:
        self.out.append(delivery)

    def flush(self) -> None:
        pass

    def abort(self, abort: Abort) -> None:
        self.out = [each for each in self.out if each.id != abort.id]

    def running(self) -> int:
        return 0  # nobody waits for these

    async def close(self) -> None:
        pass

    def end(self, outcome: Outcome | None = None) -> int:
        """Everything that is out ends like this."""
        out, self.out = self.out, []
        done = outcome if outcome is not None else Done()
        if out:
            self.settle([Settlement(each.id, each.delivery, done, consumer=each.consumer) for each in out])
        return len(out)

    def end_twice(self) -> None:
        self.settle([Settlement(each.id, each.delivery, Done(), consumer=each.consumer) for each in self.out])
        self.end()


class World:
    """The engine and what looks at it."""

    def __init__(self, folder: Path, clock: ManualClock, options: EngineOptions) -> None:
        self.clock = clock
        self.folder = folder
        self.channel = HandChannel()
        self.meter = Meter()
        self.store = SqliteStore(folder / "store.db")
        dispatcher = Dispatcher(dict.fromkeys((Callback, Task, Entity, Stream), self.channel), self.meter)
        log = FileLog(folder / "log", segment_bytes_max=256 * 1024)
        self.engine = Engine(log, self.store, clock, dispatcher, options)
        self.library = Library(self.store.archive())

    async def submit(self, *items: Item, **terms: Any) -> list[Submitted]:
        target = terms.pop("target", Task("work"))
        made = Terms(target, lane_of(target), **{"tier": Tier.STANDARD, **terms})
        return await self.engine.submit((made,), items, AckLevel.DURABLE)

    async def many(self, prefix: str, count: int, in_ms: int = 0, **terms: Any) -> list[str]:
        at_ms = self.clock.now_ms() + in_ms
        ids = [f"{prefix}{number}" for number in range(count)]
        await self.submit(*(Item(id, 0, at_ms, b"{}") for id in ids), **terms)
        return ids

    async def pass_ms(self, ms: int) -> None:
        self.clock.set_ms(self.clock.now_ms() + ms)
        await self.engine.advance()
        await self.engine.quiet()

    async def fail(self) -> None:
        """The engine stops itself: without its lock file, another engine could write the log."""
        (self.folder / "log" / "lock").unlink()
        with suppress(Fatal):
            await self.engine.ask(Pause("task:any"))

    async def end(self, outcome: Outcome | None = None) -> int:
        """Everything that is out ends like this, and that is written."""
        count = self.channel.end(outcome)
        await self.engine.advance()
        await self.engine.quiet()
        return count


@asynccontextmanager
async def world(folder: Path, clock: ManualClock | None = None, **options: Any) -> AsyncIterator[World]:
    made = World(
        folder,
        clock if clock is not None else ManualClock(),
        EngineOptions(**{"settings": SETTINGS, **options}),
    )
    await made.engine.start()
    made.library.follow(made.engine)
    try:
        yield made
    finally:
        made.library.close()
        await made.engine.close(0)


def as_read(answer: T) -> T:
    """The answer as a client reads it: times are datetimes."""
    return msgspec.json.decode(msgspec.json.encode(answer), type=type(answer))


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)
