"""One connection that takes deliveries: its messages become commands, and its deliveries are written to it.

Every connection has its own name, which is never reused, so that a reconnected client is distinguished from
its earlier connection. However a connection ends, the engine is notified that its consumer has left.
"""

from __future__ import annotations

import asyncio
from typing import Any

from duetime.api.access.auth import check_lanes
from duetime.api.access.revocations import revoked
from duetime.api.deliveries.consumers import ask, count, leave
from duetime.api.grpc import delivery_codec
from duetime.api.grpc.earlier_connections import Earlier
from duetime.api.grpc.errors import Context
from duetime.api.grpc.reading import read
from duetime.channels.pull import StreamChannel
from duetime.engine.engine import Engine
from duetime.errors import InvalidField
from duetime.limits import (
    ACKS_MAX,
    CREDITS_MAX,
    DELIVERIES_BYTES_MAX,
    DELIVERIES_MAX,
    GRPC_ANSWERS_MAX,
    HEARTBEAT_MS,
    HEARTBEAT_RECORDED_S,
    LEASE_MS,
)
from duetime.protocol.command import Beat, Demand
from duetime.protocol.reply import Answer
from duetime.protocol.terms import AckLevel
from duetime.v1 import deliveries_pb2 as pb


class Session:
    """One connection, from Hello to its end."""

    def __init__(
        self,
        context: Context,
        engine: Engine,
        channel: StreamChannel,
        packer: delivery_codec.Packer,
        result_bytes: int,
    ) -> None:
        self._context = context
        self._engine = engine
        self._channel = channel
        self._packer = packer
        self._result_bytes = result_bytes
        self._loop = asyncio.get_running_loop()
        self._answers: list[pb.ServerMessage] = []
        self._room = asyncio.Event()
        self._seen_s = self._loop.time()
        self._ending = False
        self._drained = False
        self._stops = False
        """The client is draining: its unfinished deliveries were stopped on purpose."""
        self._revoked: asyncio.Future[None] = self._loop.create_future()
        self.quiet = asyncio.Event()
        """Draining, and every delivery has an outcome."""

    async def run(self, name: str, hello: pb.Hello, earlier: tuple[str, ...] = ()) -> None:
        """Run the connection to its end. Deliveries without an outcome are then retried. Deliveries that the
        connections in `earlier` still hold can be settled here."""
        if hello.ack_mode not in (pb.ACK_MODE_AUTO, pb.ACK_MODE_MANUAL):
            raise InvalidField("Hello must set ACK_MODE_AUTO or ACK_MODE_MANUAL.")
        credits = delivery_codec.credits_of(hello.credits)
        if not credits:
            raise InvalidField("Hello must name at least one stream or queue.")
        self._earlier = Earlier(earlier, hello, self._engine.reads)
        self._subscriber = self._channel.join(name, auto=hello.ack_mode == pb.ACK_MODE_AUTO)
        tasks: list[asyncio.Future[None]] = []
        try:
            welcome = pb.Welcome(consumer=name, heartbeat_ms=HEARTBEAT_MS, credits_max=CREDITS_MAX)
            await self._write(pb.ServerMessage(welcome=welcome))
            tasks = [
                self._loop.create_task(self._deliver()),
                self._loop.create_task(self._listen(credits)),
                self._revoked,
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            self._leave()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def revoke(self) -> None:
        """The token was revoked: end immediately. Its deliveries are retried."""
        if not self._revoked.done():
            self._revoked.set_exception(revoked())

    def go_away(self, grace_ms: int) -> None:
        """The server stops: send GoingAway and no more deliveries."""
        self._subscriber.drain()
        self._answers.append(pb.ServerMessage(going_away=pb.GoingAway(grace_ms=grace_ms)))
        self._subscriber.wake()

    def end(self) -> None:
        """Write the remaining messages, and end."""
        self._ending = True
        self._subscriber.wake()

    # Writing.

    async def _deliver(self) -> None:
        """Write answers, aborts and deliveries, as many together as possible."""
        subscriber = self._subscriber
        while True:
            answers, self._answers = self._answers, []
            self._room.set()
            for answer in answers:
                await self._write(answer)
            deliveries, dropped = subscriber.take(DELIVERIES_MAX, DELIVERIES_BYTES_MAX)
            if dropped:
                await self._write(delivery_codec.aborts(dropped))
            if deliveries:
                await self._write(self._packer.pack(deliveries))
                subscriber.written(deliveries)
            if answers or deliveries or dropped or self._answers:
                continue
            if subscriber.draining and not len(subscriber):
                self.quiet.set()
                if self._drained:
                    self._drained = False
                    await self._write(pb.ServerMessage(drained=pb.Drained()))
                    continue
            if self._ending:
                return
            await subscriber.news()

    async def _write(self, message: pb.ServerMessage) -> None:
        """Write a message, and return when the transport has taken it."""
        await self._context.write(message.SerializeToString())

    async def _answer(self, message: pb.ServerMessage) -> None:
        self._answers.append(message)
        self._subscriber.wake()
        while len(self._answers) > GRPC_ANSWERS_MAX:
            self._room.clear()
            await self._room.wait()

    # Reading.

    async def _listen(self, credits: dict[str, int]) -> None:
        await count(self._engine, self._earlier.unheld(self._channel))
        await self._demand(credits)
        while True:
            body = await self._context.read()
            if not isinstance(body, bytes):  # grpc.aio.EOF
                return
            await self._hear(read(pb.ClientMessage, body))

    async def _hear(self, message: pb.ClientMessage) -> None:
        self._subscriber.seen_s = self._loop.time()
        match message.WhichOneof("message"):
            case "acks":
                await self._settle(message.acks)
            case "credits":
                await self._demand(delivery_codec.credits_of(message.credits.credits))
            case "heartbeat":
                await self._alive(always=True)
            case "drain":
                await self._drain()
            case "progress":
                self._engine.report(
                    self._subscriber.name, delivery_codec.words(message.progress, self._engine.now_ms())
                )
                await self._alive()
            case "hello":
                raise InvalidField("Hello may be sent only once, as the first message.")
            case _:
                raise InvalidField("The message is empty.")

    async def _settle(self, acks: pb.Acks) -> None:
        if len(acks.acks) > ACKS_MAX:
            raise InvalidField(f"{len(acks.acks)} acks are in one message; {ACKS_MAX} are allowed.")
        credits = delivery_codec.credits_of(acks.credits)
        now_ms = self._engine.now_ms()
        name = self._subscriber.name
        settlements = [delivery_codec.settlement(ack, now_ms, self._result_bytes, name) for ack in acks.acks]
        if self._earlier.names():
            settlements = [self._earlier.settled(each) for each in settlements]
        settlements = self._subscriber.answered(settlements)
        waiting: list[Any] = [count(self._engine, settlements)]
        if credits:
            waiting.append(self._demand(credits))
        counted, *_ = await asyncio.gather(*waiting)
        await self._answer(delivery_codec.results(acks.number, settlements, counted))
        await self._alive()

    async def _demand(self, credits: dict[str, int]) -> None:
        subscriber = self._subscriber
        self._reconcile()
        if subscriber.draining:
            return
        check_lanes(credits)
        granted = (credits, self._engine.reads.credits(subscriber.name), subscriber.voided)
        delivery_codec.check_credits(sum(sum(each.values()) for each in granted) + len(subscriber))
        subscriber.sources |= credits.keys()
        self._seen_s = self._loop.time()
        await asyncio.gather(
            *(
                ask(self._engine, Demand(subscriber.name, lane, more))
                for lane, more in credits.items()
                if more
            )
        )

    async def _drain(self) -> None:
        """The client drains: a demand of zero revokes its credits."""
        self._stops = True
        self._subscriber.drain()
        self._subscriber.voided.clear()
        name, sources = self._subscriber.name, self._subscriber.sources
        await asyncio.gather(*(ask(self._engine, Demand(name, lane, 0, standing=False)) for lane in sources))
        self._drained = True
        self._subscriber.wake()

    async def _alive(self, *, always: bool = False) -> None:
        """A heartbeat. It is recorded only if the client holds deliveries, and not for every message."""
        self._reconcile()
        now_s = self._loop.time()
        if always or now_s - self._seen_s >= HEARTBEAT_RECORDED_S:
            names = [*self._earlier.alive(), *((self._subscriber.name,) if len(self._subscriber) else ())]
            if names:
                self._seen_s = now_s
                await asyncio.gather(*(ask(self._engine, Beat(name)) for name in names))
        await self._renew()

    # Deliveries and credits that the kernel took back.

    def _reconcile(self) -> None:
        """Drop the deliveries that the kernel took back because their leases expired."""
        held = self._engine.reads.held(self._subscriber.name)
        if len(self._subscriber) > len(held):
            self._subscriber.keep({(intent.id, intent.delivery) for intent in held.values()})

    async def _renew(self) -> None:
        """Ask again for the credits that were revoked while the client was silent."""
        subscriber = self._subscriber
        if subscriber.voided and not subscriber.draining:
            voided, subscriber.voided = subscriber.voided, {}
            asked = (ask(self._engine, Demand(subscriber.name, lane, more)) for lane, more in voided.items())
            await asyncio.gather(*asked)

    def _leave(self) -> None:
        engine, subscriber = self._engine, self._subscriber
        goes_on = subscriber.superseded or engine.stalled_lately()
        if self._stops and not goes_on:
            subscriber.stopped()
        held = len(subscriber)
        self._channel.leave(subscriber)
        if self._revoked.done() and not self._revoked.cancelled():
            for name in self._earlier.names():  # its token was revoked: its earlier connections end too
                leave(engine, name)
            held = 0
        if not held or not goes_on:
            leave(engine, subscriber.name)
            return
        # The client may continue with its deliveries: on another connection, or after it reconnects because
        # this server was blocked. Until then it keeps them for a lease, and gets no more.
        for lane in subscriber.sources:
            engine.request(Demand(subscriber.name, lane, 0, standing=False), AckLevel.ASYNC, _ignore)
        leave_empty(engine, subscriber.name)


def _ignore(answer: Answer | Exception) -> None:
    """Ignore the reply."""


def leave_empty(engine: Engine, name: str) -> None:
    """Notify the engine that a consumer has left, once it holds no deliveries."""
    if engine.reads.held(name):
        asyncio.get_running_loop().call_later(LEASE_MS / 1000, leave_empty, engine, name)
    else:
        leave(engine, name)
