"""When a checkpoint is made, in which order it is written, and when it is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from duetime.engine.durability import checkpointer
from duetime.engine.durability.checkpointer import Checkpointer
from duetime.engine.reads.gauges import gauges
from duetime.engine.shell.inbox import PumpBatch
from duetime.engine.shell.pump import Pump
from duetime.errors import Damaged, NoSpace
from duetime.kernel.kernel import Kernel
from duetime.log.log import Position
from duetime.log.memory import MemoryLog
from duetime.protocol.checkpoint import Checkpoint
from duetime.protocol.command import Cancel, Command, Submit
from duetime.protocol.intent import Item
from duetime.protocol.terms import AckLevel
from duetime.store.memory import MemoryStore
from duetime.store.store import Job
from duetime.testing.time import ManualClock
from tests.unit.insight.rig import run, world
from tests.unit.kernel.bench import T0, terms

HOUR_MS = 3_600_000


class Order:
    """What happened, in order, to a log and a store that tell of it."""

    def __init__(self) -> None:
        self.seen: list[str] = []


class TellingLog(MemoryLog):
    def __init__(self, order: Order) -> None:
        super().__init__()
        self._order = order
        self.trimmed = asyncio.Event()

    async def sync(self) -> Position:
        self._order.seen.append("sync")
        return await super().sync()

    async def trim(self, below: Position) -> None:
        self._order.seen.append("trim")
        await super().trim(below)
        self.trimmed.set()


class TellingStore(MemoryStore):
    def __init__(self, order: Order) -> None:
        super().__init__(durable=True)
        self._order = order
        self.error: Exception | None = None

    def checkpoint(self, checkpoint: Checkpoint) -> Iterator[Job]:
        def told() -> None:
            self._order.seen.append("write")
            if self.error is not None:
                raise self.error

        yield told
        yield from super().checkpoint(checkpoint)


class Rig:
    """A checkpointer over a pump with some intents in it."""

    def __init__(self, **options: Any) -> None:
        self.order = Order()
        self.log, self.store = TellingLog(self.order), TellingStore(self.order)
        self.pump = Pump(self.log, Kernel(self.store), ManualClock(T0), 0, lambda: 1)
        self.failures: list[Exception] = []
        options = {"every_ms": HOUR_MS, "changes_max": 100, **options}
        self.checkpointer = Checkpointer(self.pump, self.log, self.store, self.failures.append, **options)

    async def submit(self, *ids: str) -> None:
        items = tuple(Item(id, 0, T0 + HOUR_MS) for id in ids)
        await self.write(Submit((terms(),), items))

    async def write(self, *commands: Command) -> None:
        await self.pump.turn(PumpBatch(list(commands), [[] for _ in commands], AckLevel.ASYNC, []))
        self.checkpointer.changed()

    def saved(self) -> Position | None:
        checkpoint = self.store.reopen().load()
        return None if checkpoint is None else checkpoint.position


@asynccontextmanager
async def rig(**options: Any) -> AsyncIterator[Rig]:
    made = Rig(**options)
    try:
        yield made
    finally:
        await made.checkpointer.close()


def test_the_log_is_synced_before_the_store_is_written_and_trimmed_after():
    async def main() -> None:
        async with rig() as r:
            await r.submit("a")
            await r.checkpointer.now()
            assert r.order.seen == ["sync", "write", "trim"]
            assert r.saved() == r.checkpointer.position == r.pump.position
            assert r.checkpointer.count == 1
            await r.checkpointer.now()
            assert r.checkpointer.count == 1, "nothing is new"

    run(main())


def test_a_checkpoint_is_written_some_time_after_a_change_and_only_then():
    async def main() -> None:
        async with rig(every_ms=1) as r:
            r.checkpointer.changed()
            assert not r.checkpointer.planned
            await r.submit("a")
            await asyncio.wait_for(r.log.trimmed.wait(), 10)
            assert r.saved() == r.pump.position

    run(main())


def test_many_intents_that_ended_are_written_without_waiting():
    async def main() -> None:
        async with rig(changes_max=2) as r:
            await r.submit("a", "b")
            assert not r.checkpointer.running, "they are about to run, and would be written twice"
            await r.write(Cancel("a"), Cancel("b"))
            await r.checkpointer.finished()
            assert r.checkpointer.count == 1

    run(main())


def test_a_running_checkpoint_is_followed_by_one_for_later_changes():
    async def main() -> None:
        async with rig() as r:
            await r.submit("a")
            first = asyncio.create_task(r.checkpointer.now())
            await asyncio.sleep(0)  # tidy: it has begun
            await r.submit("b")
            await r.checkpointer.now()
            await first
            assert r.saved() == r.pump.position

    run(main())


def test_after_it_is_stopped_none_begins_and_one_under_way_is_abandoned():
    async def main() -> None:
        async with rig(every_ms=1) as r:
            await r.submit("a")
            begun = asyncio.create_task(r.checkpointer.now())
            await asyncio.sleep(0)  # tidy: it has begun
            r.checkpointer.stop()
            await begun
            assert r.saved() is None
            await r.submit("b")
            assert not r.checkpointer.planned and not r.checkpointer.running

    run(main())


def test_a_store_that_cannot_be_written_stops_the_engine():
    async def main() -> None:
        async with rig() as r:
            r.store.error = Damaged("a page")
            await r.submit("a")
            await r.checkpointer.now()
            assert set(map(type, r.failures)) == {Damaged}
            assert "trim" not in r.order.seen
            r.checkpointer.stop()

    run(main())


def test_without_room_it_is_tried_again_after_a_while_and_not_after_every_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "CHECKPOINT_BYTES", 1)
    tries: list[object] = []

    def full(checkpoint):
        tries.append(checkpoint)
        raise NoSpace("no room")

    async def main():
        async with world(tmp_path, checkpoint_ms=3_600_000) as w:
            await w.engine.checkpoint()
            with monkeypatch.context() as patched:
                patched.setattr(w.store, "checkpoint", full)
                for number in range(5):
                    await w.many(f"i{number}", 1, in_ms=60_000)
                    await w.engine._checkpointer.finished()
            assert len(tries) == 1
            before = gauges(w.engine).store.checkpoints
            await w.engine.checkpoint()
            assert gauges(w.engine).store.checkpoints == before + 1, "whoever asks for one gets it"

    run(main())
