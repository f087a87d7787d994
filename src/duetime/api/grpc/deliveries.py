"""The `Deliveries` call: admits connections of workers and subscribers, and ends them at shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from msgspec import Struct

from duetime.api.access.auth import Role, check_lanes, check_target
from duetime.api.access.call_slots import Places
from duetime.api.access.quotas import bearer
from duetime.api.access.revocations import Revocations
from duetime.api.deliveries.consumers import new_name, own_names
from duetime.api.functions.registry import checked
from duetime.api.grpc import delivery_codec
from duetime.api.grpc.calls import Door
from duetime.api.grpc.errors import Context, refuse
from duetime.api.grpc.reading import read
from duetime.api.grpc.session import Session
from duetime.api.service import Service
from duetime.channels.pull import StreamChannel
from duetime.errors import DuetimeError, InvalidField, NotReady
from duetime.limits import GRPC_STREAMS_MAX, LAST_MESSAGE_MS
from duetime.protocol.command import Drain
from duetime.protocol.terms import AckLevel
from duetime.v1 import deliveries_pb2 as pb


class DeliveriesParts(Struct):
    """The parts that the call needs."""

    service: Service
    channel: StreamChannel
    door: Door
    revocations: Revocations
    result_bytes_max: int


class DeliveryCalls:
    """The bidirectional call, and all open connections."""

    def __init__(self, parts: DeliveriesParts) -> None:
        self._parts = parts
        self._packer = delivery_codec.Packer()
        self._sessions: set[Session] = set()
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._open = Places(GRPC_STREAMS_MAX, "streams of deliveries", wait_ms=1_000)
        self._stopping = False

    async def behaviour(self, requests: object, context: Context) -> None:
        """What grpc calls."""
        try:
            try:
                self._admit(context)
            except DuetimeError:
                await self._first_word(context)
                raise
            with self._open.one(bearer.get()):
                await self._run(context, await self._hello(context))
        except Exception as error:
            await refuse(context, error, "Deliveries")

    async def _hello(self, context: Context) -> pb.Hello:
        """The first message."""
        message = read(pb.ClientMessage, await self._parts.door.message(context))
        if message.WhichOneof("message") != "hello":
            raise InvalidField("The first message is not Hello.", hint="Send Hello first.")
        return message.hello

    async def _first_word(self, context: Context) -> None:
        """Read the messages of a refused client: a client that still writes would not get the reason."""
        with contextlib.suppress(InvalidField):
            await self._parts.door.reading.stranger(context, LAST_MESSAGE_MS)

    def _admit(self, context: Context) -> None:
        self._parts.door.check(context, Role.worker)
        if self._stopping:
            raise NotReady("The server is stopping.")
        self._open.check(bearer.get())

    async def _run(self, context: Context, hello: pb.Hello) -> None:
        parts = self._parts
        name = new_name(hello.consumer, bearer.get())
        check_lanes(delivery_codec.credits_of(hello.credits))
        functions = await asyncio.to_thread(
            checked, delivery_codec.functions(hello)
        )  # there may be thousands
        for each in functions:
            check_target(each.target())
        session = Session(context, parts.service.running, parts.channel, self._packer, parts.result_bytes_max)
        if self._stopping:
            raise NotReady("The server is stopping.")
        self._sessions.add(session)  # runs before other tasks: a shutdown must reach all connections
        self._nobody.clear()
        book = parts.service.functions
        try:
            types = [each.source.entity for each in hello.credits if each.source.entity]
            book.join(name, functions, types)
            with parts.revocations.watching(session.revoke):
                await session.run(name, hello, own_names(hello.earlier, bearer.get()))
        finally:
            book.leave(name)
            self._sessions.discard(session)
            if not self._sessions:
                self._nobody.set()

    async def stop(self, within_s: float) -> None:
        """Send no more deliveries, accept outcomes for a while, then end all connections."""
        self._stopping = True
        engine = self._parts.service.engine
        if engine is not None:
            engine.request(Drain(), AckLevel.ASYNC, lambda answer: None)
        sessions = list(self._sessions)
        for session in sessions:
            session.go_away(round(1000 * within_s))
        waiting = [asyncio.ensure_future(session.quiet.wait()) for session in sessions]
        everybody: asyncio.Future[Any] = asyncio.gather(*waiting, return_exceptions=True)
        nobody: asyncio.Future[object] = asyncio.ensure_future(self._nobody.wait())
        await asyncio.wait({everybody, nobody}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        everybody.cancel()
        for session in list(self._sessions):
            session.end()
        await asyncio.wait({nobody}, timeout=LAST_MESSAGE_MS / 1000)
        nobody.cancel()
