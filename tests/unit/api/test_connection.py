"""Connections with bounds, on a real socket."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn

from duetime.api.connection import Connection, make_room
from duetime.api.server import bind
from duetime.limits import CONNECTIONS_MAX, FILES_RESERVED


async def application(scope: Any, receive: Any, send: Any) -> None:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def serving(most: int = 10, request_s: float = 60) -> AsyncIterator[int]:
    """The port of a server with these bounds."""
    bounded: Any = partial(Connection, most=most, request_s=request_s)
    config = uvicorn.Config(application, http=bounded, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    listener = bind("127.0.0.1", 0)
    task = asyncio.create_task(server._serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task


CUT_OFF = (ConnectionResetError, asyncio.IncompleteReadError)
ASK = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"


@pytest.mark.parametrize(
    "said", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc"]
)
def test_who_says_too_little_is_cut_off(said):
    async def main() -> None:
        async with serving(request_s=0.1) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            with pytest.raises(CUT_OFF):
                await reader.readexactly(1)
            writer.close()

    asyncio.run(main())


def test_who_has_asked_may_be_silent():
    """After an answer it is the keep-alive's time that counts; a second request begins anew."""

    async def main() -> None:
        async with serving(request_s=0.1) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK)
            await reader.readuntil(b"\r\n\r\n")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.3)
            writer.write(ASK)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            writer.write(ASK[:5])
            with pytest.raises(CUT_OFF):
                await reader.readexactly(1)
            writer.close()

    asyncio.run(main())


def test_one_too_many_is_closed_and_makes_room_when_others_go():
    async def main() -> None:
        async with serving(most=2) as port, asyncio.timeout(20):
            kept = []
            for _ in range(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(ASK)
                await reader.readuntil(b"\r\n\r\n")
                kept.append(writer)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with pytest.raises(CUT_OFF):
                await reader.readexactly(1)
            for each in (*kept, writer):
                each.close()
                await asyncio.gather(each.wait_closed(), return_exceptions=True)
            while True:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(ASK)
                try:
                    answer = await reader.readuntil(b"\r\n\r\n")
                except CUT_OFF:
                    continue
                finally:
                    writer.close()
                assert answer.startswith(b"HTTP/1.1 200")
                return

    asyncio.run(main())


@pytest.mark.parametrize(
    ("hard", "most"),
    [
        (resource.RLIM_INFINITY, CONNECTIONS_MAX),
        (1 << 20, CONNECTIONS_MAX),
        (10_000, 10_000 - FILES_RESERVED),
        (1_024, 512),
        (64, 32),
        (1, 1),
    ],
)
def test_files_are_kept_back(monkeypatch, hard, most):
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    assert make_room() == most
    assert asked == ([] if hard == 1 else [(hard, hard)])
