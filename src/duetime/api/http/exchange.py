"""One request on a connection and its answer, on the long way and on the quick one."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class Cycle(RequestResponseCycle):
    """Uvicorn's; a client that closes its side after asking is gone for streams, but gets its answer."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._ended = False
        self._told = False
        """The application has got the whole body."""

    def end(self) -> None:
        """Nothing more comes from the client; it may still read."""
        self._ended = True
        self.message_event.set()

    async def receive(self) -> ASGIReceiveEvent:
        if not (self._ended and self._told):
            message = await super().receive()
            if message["type"] != "http.request" or not self._told:
                self._told = message["type"] == "http.request" and not message["more_body"]
                return message
        return {"type": "http.disconnect"}


class Turn:
    """Stands where uvicorn has the request that is answered now, for one that is answered the quick way: what
    comes behind it waits, and a stop lets it finish."""

    response_complete = False
    disconnected = False
    keep_alive = True
    more_body = False
    message_event = asyncio.Event()
    """Nobody waits for it: one for all."""

    def end(self) -> None:
        """It is answered all the same."""
