"""Connections with bounds, on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from duetime.api.admission import Admission
from duetime.api.connection import Connection
from duetime.api.server import _Uvicorn, bind


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
async def serving(most: int = 10, quick: Any = None, **times: float) -> AsyncIterator[int]:
    """The port of a server with these bounds."""
    made: Any = Connection
    bounded: Any = partial(made, quick=quick, **times)
    config = uvicorn.Config(application, http=bounded, ws="none", lifespan="off", log_config=None)
    server = _Uvicorn(config, Admission("http", most, per_address=most))
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
@pytest.mark.parametrize("times", [{"request_s": 0.1, "first_s": 0.1}, {"request_s": 0.1}, {"first_s": 0.1}])
def test_who_says_too_little_is_cut_off(said, times):
    if times == {"request_s": 0.1} and not said.startswith(b"POST"):
        times = {"first_s": 0.1}  # nothing was begun
    elif times == {"first_s": 0.1} and said.startswith(b"POST"):
        times = {"request_s": 0.1}  # its head is there

    async def main() -> None:
        async with serving(**times) as port, asyncio.timeout(20):
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


class Told:
    """Stands where single intents are taken, and takes those that are welcome."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def begin(self, headers: Any, body: bytes) -> Any:
        self.bodies.append(body)
        reply = asyncio.get_running_loop().create_future()
        reply.set_result(None)
        return SimpleNamespace(reply=reply) if body == b"welcome" else None

    def answer(self, begun: Any) -> bytes:
        return b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n"


def test_what_goes_the_quick_way():
    """A whole request to make an intent, and no other; who is not taken there goes the long way."""

    async def main() -> None:
        told = Told()
        async with serving(quick=told) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = b"%b %b HTTP/1.1\r\nhost: h\r\ncontent-length: 7\r\n\r\n"
            for method, path, body, status in (
                (b"POST", b"/v1/intents", b"welcome", b"201"),
                (b"POST", b"/v1/intents", b"another", b"200"),
                (b"POST", b"/v1/intents?a", b"welcome", b"200"),
                (b"PUT", b"/v1/intents", b"welcome", b"200"),
                (b"POST", b"/v1/intents", b"welcome", b"201"),
            ):
                writer.write(head % (method, path) + body)
                assert (await reader.readuntil(b"\r\n\r\n")).split()[1] == status
            writer.close()
        assert told.bodies == [b"welcome", b"another", b"welcome"]

    asyncio.run(main())
