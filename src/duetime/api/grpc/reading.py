"""Reads messages: only after the caller was checked, and only some at a time.

The library keeps a message in memory until it is complete, and a client may never finish it. So a call is
handled from its headers on: an unauthorized call is refused before its message is read, and an authorized
call waits for a slot. Until then a call costs at most the window of its stream.

Calls that need no token have separate slots, without waiting: an honest message arrives together with its
call, so the oldest incomplete message is dropped for a new one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from duetime.api.access.quotas import bearer
from duetime.api.grpc.errors import Context, refuse
from duetime.api.grpc.message_parts import check_parts
from duetime.errors import Busy, InvalidField, NotJson, TooLarge
from duetime.limits import (
    FIRST_REQUEST_MS,
    GRPC_OPEN_CALLS_MAX,
    GRPC_READING_MAX,
    GRPC_READING_OPEN,
    GRPC_READING_PER_TOKEN,
    REQUEST_MS,
)

M = TypeVar("M", bound=Message)
T = TypeVar("T")

RpcHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""What grpc calls. It gets no request: the messages are read from the context."""


class Reading:
    """The slots for incomplete messages: of all callers, and of each token."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(GRPC_READING_MAX)
        self._of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._open: dict[asyncio.Timeout, None] = {}
        """The slots of callers without a token, oldest first."""

    async def one(self, context: Context, within_ms: int = REQUEST_MS) -> bytes:
        """The next message of a call."""
        name = bearer.get()
        own = self._of.get(name)
        if own is None:
            own = self._of[name] = asyncio.Semaphore(GRPC_READING_PER_TOKEN)
        try:
            async with own, self._all, asyncio.timeout(within_ms / 1000):
                body = await context.read()
        except TimeoutError:
            raise InvalidField(f"The message was not complete within {within_ms // 1000} seconds.") from None
        return _whole(body)

    async def stranger(self, context: Context, within_ms: int = FIRST_REQUEST_MS) -> bytes:
        """The next message of a call that needs no token."""
        waiting = self._open
        try:
            async with asyncio.timeout(within_ms / 1000) as own:
                if len(waiting) >= GRPC_READING_OPEN:
                    oldest = next(iter(waiting))
                    del waiting[oldest]
                    if not oldest.expired():
                        oldest.reschedule(0)
                waiting[own] = None
                try:
                    body = await context.read()
                finally:
                    waiting.pop(own, None)
        except TimeoutError:
            raise InvalidField("The message was not complete in time.") from None
        return _whole(body)


class OpenCalls:
    """Calls of the standard services, which need no token: limited in number and size."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._open = Counter[str]()
        """Counted by kind, so that open streams do not block unary calls."""

    def unary(self, kind: type[M], method: Callable[[M, Context], Awaitable[Message]]) -> RpcHandler:
        async def call(requests: object, context: Context) -> bytes:
            async def answer() -> bytes:
                return (await method(await self._read(kind, context), context)).SerializeToString()

            return await self._counted("one", answer, context)

        return grpc.stream_unary_rpc_method_handler(call)

    def stream(self, kind: type[M], method: Callable[[M, Context], Awaitable[None]]) -> RpcHandler:
        """A server-streaming call."""

        async def call(requests: object, context: Context) -> None:
            async def answer() -> None:
                await method(await self._read(kind, context), context)

            await self._counted("stream", answer, context)

        return grpc.stream_stream_rpc_method_handler(call, response_serializer=_serialize)

    def both(
        self, kind: type[M], method: Callable[[AsyncIterator[M], Context], AsyncIterator[Message]]
    ) -> RpcHandler:
        """A bidirectional call."""

        async def call(requests: object, context: Context) -> None:
            async def answer() -> None:
                async for message in method(self._each(kind, context), context):
                    await context.write(message)

            await self._counted("both", answer, context)

        return grpc.stream_stream_rpc_method_handler(call, response_serializer=_serialize)

    async def _counted(self, kind: str, answer: Callable[[], Awaitable[T]], context: Context) -> T:
        if self._open[kind] >= GRPC_OPEN_CALLS_MAX:
            await refuse(context, Busy(f"{GRPC_OPEN_CALLS_MAX} such calls are open.", waitMs=1_000), "open")
        self._open[kind] += 1
        try:
            return await answer()
        except (InvalidField, NotJson, TooLarge) as error:
            await refuse(context, error, "open")
        finally:
            self._open[kind] -= 1

    async def _read(self, kind: type[M], context: Context) -> M:
        return read(kind, await self._reading.stranger(context))

    async def _each(self, kind: type[M], context: Context) -> AsyncIterator[M]:
        while True:
            try:
                yield await self._read(kind, context)
            except InvalidField:  # the call has ended, or is too slow
                return


def _whole(body: object) -> bytes:
    if not isinstance(body, bytes):  # grpc.aio.EOF
        raise InvalidField("There is no message in the call.")
    return body


def read(kind: type[M], body: bytes) -> M:
    """Parse bytes as a message."""
    check_parts(kind.DESCRIPTOR, body)
    message = kind()
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise NotJson(
            f"The message cannot be read: {error}.", hint=f"Send a {kind.DESCRIPTOR.full_name}."
        ) from None
    return message


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
