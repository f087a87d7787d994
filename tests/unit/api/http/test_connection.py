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
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from duetime.api.access.admission import Admission
from duetime.api.access.byte_budget import Budget
from duetime.api.http.connection import Connection
from duetime.api.http.server import _Uvicorn, bind


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
async def serving(
    door: Admission | None = None,
    quick: Any = None,
    app: Any = application,
    keep_alive_s: float = 5,
    **times: float,
) -> AsyncIterator[int]:
    """The port of a server with these bounds."""
    made: Any = Connection
    bounded: Any = partial(made, quick=quick, **times)
    config = uvicorn.Config(app, http=bounded, ws="none", lifespan="off", log_config=None)
    config.timeout_keep_alive = keep_alive_s  # type: ignore[assignment]  # parts of a second will do
    server = _Uvicorn(config, door if door is not None else Admission("http", 10, per_address=10))
    listener = bind("127.0.0.1", 0)
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task


CUT_OFF = (ConnectionResetError, asyncio.IncompleteReadError)
ASK = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "said", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nabc"]
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


@pytest.mark.parametrize("before", [b"", ASK])
def test_empty_lines_are_no_request(before):
    """They may stand before a request; they ended every time limit of the connection."""

    async def main() -> None:
        async with serving(first_s=0.1, keep_alive_s=0.1) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if before:
                writer.write(before)
                await reader.readuntil(b"\r\n\r\n")
            writer.write(b"\r\n")
            with pytest.raises(CUT_OFF):
                await reader.readexactly(1)
            writer.close()

    asyncio.run(main())


def test_a_stream_ends_with_its_connection_when_more_was_asked_behind_it():
    """Only the newest request was told, so the stream went on for ever, for nobody."""

    async def main() -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def stream(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            began.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            ended.set()

        async with serving(app=stream, request_s=0.1) as port, asyncio.timeout(20):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK + ASK[:9])
            await began.wait()
            await ended.wait()
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
        async with serving(Admission("http", 2, per_address=2)) as port, asyncio.timeout(20):
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

    def __init__(self, answer: bytes = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n") -> None:
        self.bodies: list[bytes] = []
        self._answer = answer

    def begin(self, headers: Any, body: bytes) -> Any:
        self.bodies.append(body)
        reply = asyncio.get_running_loop().create_future()
        reply.set_result(None)
        return SimpleNamespace(reply=reply) if body == b"welcome" else None

    def answer(self, begun: Any) -> bytes:
        return self._answer


def test_what_goes_the_quick_way():
    """A whole request to make an intent, and no other; who is not taken there goes the long way."""

    async def main() -> None:
        told = Told()
        async with serving(quick=told) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = b"%b %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 7\r\n\r\n"
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


class Watched(Budget):
    """Tells when something changes."""

    def __init__(self) -> None:
        super().__init__(1_000_000, 200_000)
        self._changed = asyncio.Event()

    def take(self, holder: str, count: int) -> bool:
        self._changed.set()
        return super().take(holder, count)

    def give(self, holder: str, count: int) -> None:
        self._changed.set()
        super().give(holder, count)

    async def until(self, held: int) -> None:
        while self.held != held:
            self._changed.clear()
            await self._changed.wait()


def test_what_is_not_complete_is_bounded_by_bytes():
    """Heads and bodies count as they come; an address that holds too much is refused."""

    async def main() -> None:
        held = Watched()
        async with serving(Admission("http", 10, held=held)) as port, asyncio.timeout(20):
            head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 150000\r\n\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + b"x" * 149_999)
            await held.until(len(head) + 149_999)
            its_reader, its_writer = await asyncio.open_connection("127.0.0.1", port)
            its_writer.write(head + b"x" * 100_000)
            answer = await its_reader.read()
            assert answer.startswith(b"HTTP/1.1 429") and b"connection: close" in answer
            its_writer.close()
            writer.write(b"x")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await held.until(0)
            writer.write(head[:20])
            await held.until(20)
            writer.close()
            await held.until(0)

    asyncio.run(main())


LARGE = b"x" * 20_000_000


async def large(scope: Any, receive: Any, send: Any) -> None:
    length = (b"content-length", b"%d" % len(LARGE))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": LARGE})


class Empty(Admission):
    """Tells when nobody is connected any more."""

    def __init__(self) -> None:
        super().__init__("http", 10)
        self.empty = asyncio.Event()

    def _release(self, key: str) -> None:
        super()._release(key)
        self.empty.set()


@pytest.mark.parametrize("more", [b"", b"connection: close\r\n"], ids=["kept", "closing"])
def test_who_does_not_read_is_cut_off(more):
    async def main() -> None:
        door = Empty()
        async with serving(door, app=large, unread_s=0.2) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_000)
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n%b\r\n" % more)
            await reader.readexactly(10)
            await door.empty.wait()  # and nothing is read in between
            writer.close()

    asyncio.run(main())


def test_who_reads_slowly_is_not_cut_off():
    async def main() -> None:
        async with serving(app=large, unread_s=0.2) as port, asyncio.timeout(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK)
            await reader.readuntil(b"\r\n\r\n")
            for _ in range(50):
                assert len(await reader.readexactly(400_000)) == 400_000
                await asyncio.sleep(0.02)  # tidy: it reads slowly
            writer.close()

    asyncio.run(main())


def test_the_quick_way_waits_for_its_reader():
    """While an answer is not read, the next request goes the way that waits for it."""

    async def main() -> None:
        told = Told(b"HTTP/1.1 201 Created\r\ncontent-length: %d\r\n\r\n" % len(LARGE) + LARGE)
        async with serving(quick=told) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_000)
            one = b"POST /v1/intents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 7\r\n\r\nwelcome"
            writer.write(one)
            await reader.readexactly(10)
            writer.write(one)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            assert "Created" in head
            await reader.readexactly(len(LARGE))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            writer.close()
        assert told.bodies == [b"welcome"]

    asyncio.run(main())


# Internals of uvicorn's httptools protocol that `Connection` and `Cycle` read, set or override.
FIELDS = (
    "access_logger app app_state asgi_version client cycle expect_100_continue flow headers logger loop"
    " parser pipeline root_path scheme scope server server_state timeout_keep_alive timeout_keep_alive_task"
    " transport"
)
METHODS = (
    "_start_asgi_task _unset_keepalive_if_required connection_lost connection_made data_received eof_received"
    " on_body on_header on_headers_complete on_message_begin on_message_complete on_response_complete"
    " pause_writing resume_writing timeout_keep_alive_handler"
)
CYCLE = "disconnected keep_alive message_event more_body receive response_complete response_started"


def test_uvicorn_has_what_a_connection_builds_on():
    async def main() -> None:
        config = uvicorn.Config(application, log_config=None)
        config.load()
        protocol = HttpToolsProtocol(config=config, server_state=ServerState(), app_state={})
        missing = [name for name in f"{FIELDS} {METHODS}".split() if not hasattr(protocol, name)]
        assert not missing, f"uvicorn {uvicorn.__version__} has no {missing}"
        protocol.flow = FlowControl(asyncio.Transport())
        scope: Any = {"type": "http"}
        cycle = RequestResponseCycle(
            scope=scope, transport=asyncio.Transport(), flow=protocol.flow, logger=protocol.logger,
            access_logger=protocol.access_logger, access_log=False, default_headers=[], keep_alive=True,
            message_event=asyncio.Event(), expect_100_continue=False, on_response=lambda: None,
        )  # fmt: skip
        missing = [name for name in CYCLE.split() if not hasattr(cycle, name)]
        assert not missing, f"uvicorn {uvicorn.__version__} has no {missing}"

    asyncio.run(main())
