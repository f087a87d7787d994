"""The outcome of a worker comes in as that of a webhook does: counted once, also when the disk is full."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from duetime.api.grpc.delivery_codec import Packer
from duetime.api.grpc.session import Session
from duetime.channels.pull import StreamChannel
from duetime.engine import engine as engine_module
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions
from duetime.engine.reads.meter import Meter
from duetime.errors import NoSpace
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.log.memory import MemoryLog
from duetime.protocol.command import Settings
from duetime.protocol.intent import Item, Status
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.terms import AckLevel, Callback, Target, Task, Terms, lane_of
from duetime.store.memory import MemoryStore
from duetime.testing.time import EPOCH_MS, ManualClock
from duetime.v1 import deliveries_pb2 as pb
from tests.unit.insight.rig import HandChannel, run


class FillingLog(MemoryLog):
    """A log on a disk that is full while the test says so. Tells of every append that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.refused = asyncio.Event()

    async def append(self, at: Position, frame: Frame) -> Position:
        if self.full:
            self.refused.set()
            raise NoSpace("full")
        return await super().append(at, frame)


class Connection:
    """The server's side of a call whose other side is the test."""

    def __init__(self) -> None:
        self.to_server = asyncio.Queue[bytes]()
        self.to_client = asyncio.Queue[pb.ServerMessage]()

    async def read(self) -> bytes:
        return await self.to_server.get()

    async def write(self, message: bytes) -> None:
        self.to_client.put_nowait(pb.ServerMessage.FromString(message))

    def send(self, message: pb.ClientMessage) -> None:
        self.to_server.put_nowait(message.SerializeToString())

    async def next(self, kind: str) -> Any:
        async with asyncio.timeout(10):
            while True:
                message = await self.to_client.get()
                if message.WhichOneof("message") == kind:
                    return getattr(message, kind)


class World:
    """An engine with a meter, a worker on a connection, and a channel for webhooks answered by hand."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.log, self.meter = FillingLog(), Meter()
        self.workers, self.webhooks = StreamChannel(clock), HandChannel()
        dispatcher = Dispatcher({Task: self.workers, Callback: self.webhooks}, self.meter)
        options = EngineOptions(settings=Settings(pushed=("callback",)))
        self.engine = Engine(self.log, MemoryStore(), clock, dispatcher, options)
        self.connection = Connection()

    async def work(self) -> None:
        """Serve the worker, until cancelled."""
        hello = pb.Hello(consumer="w", ack_mode=pb.ACK_MODE_MANUAL)
        credit = hello.credits.add(credits=10)
        credit.source.queue = "default"
        context: Any = self.connection
        await Session(context, self.engine, self.workers, Packer(), 1_000).run("w", hello)

    async def submit(self, id: str, target: Target) -> None:
        made = Terms(target, lane_of(target))
        await self.engine.submit((made,), (Item(id, 0, EPOCH_MS),), AckLevel.ASYNC)

    def counted(self) -> dict[tuple[str, str], int]:
        return {(channel, kind): count for (_, channel, kind), count in self.meter.deliveries.items()}

    def status(self, id: str) -> Status:
        view = self.engine.reads.get(id)
        assert view is not None
        return view.status


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World()
    await made.engine.start()
    worker = asyncio.create_task(made.work())
    try:
        yield made
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        await made.engine.close(0)


def acks(delivery: pb.Delivery) -> pb.ClientMessage:
    done = pb.Ack(intent_id=delivery.intent_id, delivery=delivery.delivery, done=pb.Done())
    return pb.ClientMessage(acks=pb.Acks(acks=[done], number=1))


async def both_out(w: World) -> pb.Delivery:
    """One intent is with the worker, one with the webhook channel."""
    await w.submit("task", Task("work"))
    await w.submit("hook", Callback("https://example.com"))
    deliveries = await w.connection.next("deliveries")
    (delivery,) = deliveries.deliveries
    assert isinstance(delivery, pb.Delivery)
    return delivery


def test_an_outcome_of_a_worker_is_metered_as_a_webhooks_is():
    async def main() -> None:
        async with world() as w:
            delivery = await both_out(w)
            w.webhooks.end()
            w.connection.send(acks(delivery))
            assert (await w.connection.next("ack_results")).counted == 1
            assert w.counted() == {("callback", "done"): 1, ("task", "done"): 1}
            assert (w.status("task"), w.status("hook")) == (Status.ACKED, Status.ACKED)

    run(main())


def test_on_a_full_disk_an_outcome_of_a_worker_is_kept_and_metered_once(monkeypatch):
    monkeypatch.setattr(engine_module, "DISK_FULL_RETRY_S", 0)

    async def main() -> None:
        async with world() as w:
            delivery = await both_out(w)
            w.log.full = True
            w.webhooks.end()
            w.connection.send(acks(delivery))
            assert (await w.connection.next("ack_results")).counted == 1
            assert (w.status("task"), w.status("hook")) == (Status.DISPATCHING, Status.DISPATCHING)
            w.log.full = False
            await w.engine.quiet()
            assert (w.status("task"), w.status("hook")) == (Status.ACKED, Status.ACKED)
            assert w.counted() == {("callback", "done"): 1, ("task", "done"): 1}

    run(main())


def test_outcomes_of_workers_and_webhooks_are_one_record():
    async def main() -> None:
        async with world() as w:
            delivery = await both_out(w)
            before = w.engine.reads.overview().records
            counted: list[list[bool] | Exception] = []
            done = Settlement(delivery.intent_id, delivery.delivery, Done(), consumer="w")
            w.webhooks.end()
            w.engine.settle([done, done], counted.append)
            await w.engine.advance()
            assert counted == [[True, False]]
            assert w.engine.reads.overview().records == before + 2, "the outcomes, and the passing of time"

    run(main())
