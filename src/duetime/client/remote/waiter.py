"""Waits for the end of intents on a server, with its events instead of polling.

A few waits have their own streams, with only the events of their intent. Many waits share one stream with the
ends of all intents, and so one connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from duetime.client.http.client import transition
from duetime.client.http.transport import Request, Transport
from duetime.errors import Closed, DuetimeError
from duetime.limits import CLIENT_RECONNECT_S, OWN_STREAMS_MAX
from duetime.protocol.intent import FINAL
from duetime.wire.views import Ended

_ENDS = ",".join(sorted(status.name for status in FINAL))


class Ends:
    """The waits, by intent."""

    def __init__(self, transport: Transport, ended: Callable[[str], Awaitable[Ended | None]]) -> None:
        self._transport = transport
        self._ended = ended
        self._own = 0
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._shared: asyncio.Task[None] | None = None
        self._listening: asyncio.Future[None] | None = None

    async def wait(self, id: str) -> Ended:
        """Wait for the end of an intent, and return it."""
        while True:
            ended = await self._ended(id)
            if ended is not None:
                return ended
            if self._own < OWN_STREAMS_MAX:
                await self._told_alone(id)
            else:
                await self._told_with_others(id)

    async def close(self) -> None:
        if self._shared is not None:
            self._shared.cancel()
            await asyncio.gather(self._shared, return_exceptions=True)
        self._fail(Closed("The app was closed while waiting for an intent; the intent itself continues."))

    async def _told_alone(self, id: str) -> None:
        """Wait until an event or a read shows the end: it may have come before the stream was open."""
        pairs = [("intentId", id), ("status", _ENDS)]
        request = Request("GET", "/v1/events", pairs, accept="text/event-stream")
        self._own += 1
        try:
            async with aclosing(
                self._transport.events(request, CLIENT_RECONNECT_S, self._look(id))
            ) as events:
                async for _ in events:
                    return
        finally:
            self._own -= 1

    def _look(self, id: str) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            return await self._ended(id) is not None

        return look

    async def _told_with_others(self, id: str) -> None:
        loop = asyncio.get_running_loop()
        if self._shared is None or self._shared.done():
            self._listening = loop.create_future()
            self._shared = loop.create_task(self._listen(self._listening))
        told: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(id, []).append(told)
        try:
            assert self._listening is not None
            await asyncio.shield(self._listening)
            if await self._ended(id) is None:
                await told
        finally:
            waiting = self._waiting.get(id)
            if waiting is not None and told in waiting:
                waiting.remove(told)
                if not waiting:
                    del self._waiting[id]

    async def _listen(self, listening: asyncio.Future[None]) -> None:
        request = Request("GET", "/v1/events", [("status", _ENDS)], accept="text/event-stream")

        async def connected() -> bool:
            if not listening.done():
                listening.set_result(None)
            return False

        try:
            async with aclosing(self._transport.events(request, CLIENT_RECONNECT_S, connected)) as events:
                async for event in events:
                    found = transition(event)
                    if found is not None:
                        self._tell(found.intent_id if not found.gap else None)
        except DuetimeError as error:
            if not listening.done():
                listening.set_exception(error)
                listening.exception()  # there may be no other wait
            self._fail(error)

    def _tell(self, id: str | None) -> None:
        """Wake the waits for this intent. After a gap, wake all: their intents may have ended in it."""
        for each in [id] if id is not None else list(self._waiting):
            for told in self._waiting.pop(each, ()):
                if not told.done():
                    told.set_result(None)

    def _fail(self, error: DuetimeError) -> None:
        for waiting in self._waiting.values():
            for told in waiting:
                if not told.done():
                    told.set_exception(error)
        self._waiting.clear()
