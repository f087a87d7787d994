"""One connection that takes deliveries: what it says becomes commands, what it is handed is written to it.

The connection's name is its own and never used again, so that a client that comes back is not taken for the
connection it had. When the connection ends, in whatever way, the engine is told that its consumer left.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc.aio

from duetime.api.access.auth import check_lanes
from duetime.api.access.revocations import revoked
from duetime.api.grpc import delivery_codec
from duetime.api.grpc.earlier_connections import Earlier
from duetime.api.grpc.errors import Context
from duetime.api.grpc.reading import read
from duetime.channels.pull import StreamChannel
from duetime.engine.admission.commands import resolver
from duetime.engine.engine import Engine
from duetime.errors import DuetimeError, InvalidField, LogUnavailable
from duetime.kernel.kernel import Answer
from duetime.limits import (
    ACKS_MAX,
    CREDITS_MAX,
    DELIVERIES_BYTES_MAX,
    DELIVERIES_MAX,
    HEARTBEAT_MS,
    LEASE_MS,
)
from duetime.protocol.command import Beat, Command, Demand, Leave
from duetime.protocol.outcome import Settlement
from duetime.protocol.terms import AckLevel
from duetime.v1 import deliveries_pb2 as pb

_logger = logging.getLogger("duetime.api")

# Answers that wait to be written before nothing more is read.
_ANSWERS_MAX = 64
# Every message is a sign of life; so often it is written down when it says nothing else.
_SIGN_S = 1.0
# How soon to say again that a consumer left, when the log had no room for it.
_AGAIN_S = 1.0


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
        """The client was told to stop: what it leaves behind was stopped on purpose."""
        self._revoked: asyncio.Future[None] = self._loop.create_future()
        self.quiet = asyncio.Event()
        """Draining, and nothing is out any more."""

    async def run(self, name: str, hello: pb.Hello, earlier: tuple[str, ...] = ()) -> None:
        """See it through. What was sent and has no outcome in the end is tried again. What the connections
        named in `earlier` still hold may be settled here."""
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
        """The client may not be here any more: it ends at once, and what it held is tried again."""
        if not self._revoked.done():
            self._revoked.set_exception(revoked())

    def go_away(self, grace_ms: int) -> None:
        """The server stops: hand out nothing more, and say so."""
        self._subscriber.drain()
        self._answers.append(pb.ServerMessage(going_away=pb.GoingAway(grace_ms=grace_ms)))
        self._subscriber.wake()

    def end(self) -> None:
        """Write what is still to be written, and end."""
        self._ending = True
        self._subscriber.wake()

    # Out.

    async def _deliver(self) -> None:
        """Write: answers, what to drop, deliveries; as many together as there are."""
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
        """Returns when the transport has taken it, not when it is somewhere in between."""
        await self._context.write(message.SerializeToString())

    async def _answer(self, message: pb.ServerMessage) -> None:
        self._answers.append(message)
        self._subscriber.wake()
        while len(self._answers) > _ANSWERS_MAX:
            self._room.clear()
            await self._room.wait()

    # In.

    async def _listen(self, credits: dict[str, int]) -> None:
        await self._count(self._earlier.unheld(self._channel))
        await self._demand(credits)
        while True:
            body = await self._context.read()
            if body is grpc.aio.EOF:
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
        waiting: list[Any] = [self._count(settlements)]
        if credits:
            waiting.append(self._demand(credits))
        counted, *_ = await asyncio.gather(*waiting)
        await self._answer(delivery_codec.results(acks.number, settlements, counted))
        await self._alive()

    async def _count(self, settlements: list[Settlement]) -> list[bool]:
        """Hand in outcomes, and learn which of them counted."""
        future: asyncio.Future[list[bool]] = self._loop.create_future()
        self._engine.settle(settlements, resolver(future))
        try:
            return await future
        except LogUnavailable:  # no room: the engine keeps them until there is room; nobody knows yet
            return [True] * len(settlements)

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
            *(self._ask(Demand(subscriber.name, lane, more)) for lane, more in credits.items() if more)
        )

    async def _drain(self) -> None:
        """The client wants nothing more: a claim of nothing takes its credits back."""
        self._stops = True
        self._subscriber.drain()
        self._subscriber.voided.clear()
        name, sources = self._subscriber.name, self._subscriber.sources
        await asyncio.gather(*(self._ask(Demand(name, lane, 0, standing=False)) for lane in sources))
        self._drained = True
        self._subscriber.wake()

    async def _alive(self, *, always: bool = False) -> None:
        """The client lives. Worth a record only if it holds something, and not after every message."""
        self._reconcile()
        now_s = self._loop.time()
        if always or now_s - self._seen_s >= _SIGN_S:
            names = [*self._earlier.alive(), *((self._subscriber.name,) if len(self._subscriber) else ())]
            if names:
                self._seen_s = now_s
                await asyncio.gather(*(self._ask(Beat(name)) for name in names))
        await self._renew()

    # The kernel's view and ours.

    def _reconcile(self) -> None:
        """Drop what the kernel took back because the client was silent for too long."""
        held = self._engine.reads.held(self._subscriber.name)
        if len(self._subscriber) > len(held):
            self._subscriber.keep({(intent.id, intent.delivery) for intent in held.values()})

    async def _renew(self) -> None:
        """Ask again for the credits that were voided while the client was silent: it lives after all."""
        subscriber = self._subscriber
        if subscriber.voided and not subscriber.draining:
            voided, subscriber.voided = subscriber.voided, {}
            asked = (self._ask(Demand(subscriber.name, lane, more)) for lane, more in voided.items())
            await asyncio.gather(*asked)

    async def _ask(self, command: Command, ack: AckLevel = AckLevel.ASYNC, size: int = 512) -> Any:
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._engine.request(command, ack, resolver(future), size)
        return await future

    def _leave(self) -> None:
        engine, subscriber = self._engine, self._subscriber
        goes_on = subscriber.superseded or engine.stalled_lately()
        if self._stops and not goes_on:
            subscriber.stopped()
        held = len(subscriber)
        self._channel.leave(subscriber)
        if self._revoked.done() and not self._revoked.cancelled():
            for name in self._earlier.names():  # it may not come back, so neither may what it held before
                leave(engine, name)
            held = 0
        if not held or not goes_on:
            leave(engine, subscriber.name)
            return
        # The client goes on with what it holds: on another connection that it has, or we stood still, and it
        # gave this one up and comes back. Until then it keeps that for a lease, and gets nothing more.
        for lane in subscriber.sources:
            engine.request(Demand(subscriber.name, lane, 0, standing=False), AckLevel.ASYNC, _ignore)
        leave_empty(engine, subscriber.name)


def _ignore(answer: Answer | Exception) -> None:
    """Nobody waits for it."""


def leave_empty(engine: Engine, name: str) -> None:
    """Tell the engine that a consumer is gone, once it holds nothing any more."""
    if engine.reads.held(name):
        asyncio.get_running_loop().call_later(LEASE_MS / 1000, leave_empty, engine, name)
    else:
        leave(engine, name)


def leave(engine: Engine, name: str) -> None:
    """Tell the engine that a consumer is gone; again, while its log has no room."""

    def reply(answer: Answer | Exception) -> None:
        if isinstance(answer, LogUnavailable):
            asyncio.get_running_loop().call_later(_AGAIN_S, leave, engine, name)
        elif isinstance(answer, Exception) and not isinstance(answer, DuetimeError):
            _logger.error("%r disconnected, but the engine could not record it.", name, exc_info=answer)

    engine.request(Leave(name), AckLevel.ASYNC, reply)
