"""HTTP connections on a real socket: limits, timeouts, order, streams, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from duetime.api.access.admission import Admission
from duetime.api.access.byte_budget import Budget
from duetime.api.http.connection import ServerConnections, Timeouts
from duetime.api.http.exchange import Answer, ClientGone, Exchange, encoded
from duetime.api.http.listener import Listener
from duetime.api.http.server import bind
from duetime.limits import BODY_UNREAD_BYTES, HEAD_BYTES_MAX, HEADERS_MAX


async def ok(exchange: Exchange) -> None:
    try:
        while await exchange.read():
            pass
    except ClientGone:
        return
    await exchange.respond(Answer(b""))


@asynccontextmanager
async def serving(
    admission: Admission | None = None, fast: Any = None, handler: Any = ok, **times: float
) -> AsyncIterator[int]:
    """The port of a server with these limits."""
    connections = ServerConnections(handler, fast, Timeouts(**times))
    with bind("127.0.0.1", 0) as sock:
        admission = admission if admission is not None else Admission("http", 10, per_address=10)
        listener = Listener(sock, admission, connections.make)
        listener.start()
        try:
            yield sock.getsockname()[1]
        finally:
            listener.close()
            await connections.close(1)


CUT_OFF = (ConnectionResetError, asyncio.IncompleteReadError)
ASK = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nabc"]
)
@pytest.mark.parametrize("times", [{"request_s": 0.1, "first_s": 0.1}, {"request_s": 0.1}, {"first_s": 0.1}])
def test_a_client_that_sends_too_little_is_disconnected(sent, times):
    if times == {"request_s": 0.1} and not sent.startswith(b"POST"):
        times = {"first_s": 0.1}  # nothing was begun
    elif times == {"first_s": 0.1} and sent.startswith(b"POST"):
        times = {"request_s": 0.1}  # its head is there

    async def main() -> None:
        async with serving(**times) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            with pytest.raises(CUT_OFF):
                await reader.readexactly(1)
            writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("before", [b"", ASK])
def test_empty_lines_are_not_a_request(before):
    """They may come before a request, and no timeout of the connection ends with them."""

    async def main() -> None:
        async with serving(first_s=0.1, idle_s=0.1) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if before:
                writer.write(before)
                await reader.readuntil(b"\r\n\r\n")
            writer.write(b"\r\n")
            with pytest.raises(CUT_OFF):
                await reader.readexactly(1)
            writer.close()

    asyncio.run(main())


def test_a_stream_with_a_request_behind_it_ends_with_its_connection():
    """Also the request that is being answered is told of the loss, and not only the newest one."""

    async def main() -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def stream(exchange: Exchange) -> None:
            await exchange.start_stream(b"text/plain", [])
            began.set()
            await exchange.closed()
            ended.set()

        async with serving(handler=stream, request_s=0.1) as port, asyncio.timeout(20):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK + ASK[:9])
            await began.wait()
            await ended.wait()
            writer.close()

    asyncio.run(main())


def test_a_client_may_be_silent_between_requests():
    """After a response only the idle timeout counts; a second request has its own timeout."""

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


def test_one_connection_too_many_is_closed_until_another_one_ends():
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


class Welcoming:
    """In place of the fast path: takes the body `welcome`, and no other."""

    def __init__(self, body: bytes = b"") -> None:
        self.bodies: list[bytes] = []
        self._answer = Answer(body, 201)

    def begin(self, headers: Any, body: bytes) -> Any:
        self.bodies.append(body)
        reply = asyncio.get_running_loop().create_future()
        reply.set_result(None)
        return SimpleNamespace(reply=reply) if body == b"welcome" else None

    def answer(self, begun: Any) -> Answer:
        return self._answer


def test_simple_requests_take_the_fast_path():
    """A whole POST of one intent. What the fast path does not take goes to the handler."""

    async def main() -> None:
        fast = Welcoming()
        async with serving(fast=fast) as port, asyncio.timeout(20):
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
        assert fast.bodies == [b"welcome", b"another", b"welcome"]

    asyncio.run(main())


class Watched(Budget):
    """A budget on which a test can wait."""

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


def test_the_bytes_of_incomplete_requests_are_limited():
    """Heads and bodies count as they arrive; an address that holds too much is refused."""

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


async def large(exchange: Exchange) -> None:
    await exchange.respond(Answer(LARGE))


class Empty(Admission):
    """Sets an event when a connection has ended."""

    def __init__(self) -> None:
        super().__init__("http", 10)
        self.empty = asyncio.Event()

    def _release(self, key: str) -> None:
        super()._release(key)
        self.empty.set()


@pytest.mark.parametrize("more", [b"", b"connection: close\r\n"], ids=["kept", "closing"])
def test_a_client_that_does_not_read_is_disconnected(more):
    async def main() -> None:
        admission = Empty()
        async with serving(admission, handler=large, unread_s=0.2) as port, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_000)
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n%b\r\n" % more)
            await reader.readexactly(10)
            await admission.empty.wait()  # and nothing is read in between
            writer.close()

    asyncio.run(main())


def test_a_client_that_reads_slowly_is_not_disconnected():
    async def main() -> None:
        async with serving(handler=large, unread_s=0.2) as port, asyncio.timeout(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK)
            await reader.readuntil(b"\r\n\r\n")
            for _ in range(50):
                assert len(await reader.readexactly(400_000)) == 400_000
                await asyncio.sleep(0.02)  # tidy: it reads slowly
            writer.close()

    asyncio.run(main())


def test_the_fast_path_waits_until_responses_are_read():
    """While a response is not read, the next request goes to the handler, which waits for it."""

    async def main() -> None:
        fast = Welcoming(LARGE)
        async with serving(fast=fast) as port, asyncio.timeout(20):
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
        assert fast.bodies == [b"welcome"]

    asyncio.run(main())


# One request after the other.


async def talk(port: int, data: bytes) -> bytes:
    """Everything that the server sends until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_the_number_of_headers_is_limited():
    async def main() -> None:
        def ask(headers: int) -> bytes:
            return b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * (headers - 1) + b"\r\n"

        async with serving() as port, asyncio.timeout(20):
            answer = await talk(port, ask(HEADERS_MAX) + ask(HEADERS_MAX + 1) + ask(1))
        first, second = answer.split(b"HTTP/1.1 ")[1:]
        assert first.startswith(b"200") and second.startswith(b"431")
        assert b"connection: close" in second

    asyncio.run(main())


@pytest.mark.parametrize("pieces", [1, 2, 50])
def test_a_head_is_limited_however_it_arrives(pieces):
    async def main() -> None:
        head = b"GET / HTTP/1.1\r\nhost: localhost\r\nx: %b\r\nconnection: close\r\n\r\n"
        for size, status in ((HEAD_BYTES_MAX - 1_000, b"200"), (HEAD_BYTES_MAX, b"431")):
            async with serving() as port, asyncio.timeout(20):
                whole = head % (b"y" * size)
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                step = len(whole) // pieces + 1
                for start in range(0, len(whole), step):
                    writer.write(whole[start : start + step])
                    await asyncio.sleep(0)  # tidy: a turn of the loop, in which the server reads
                assert (await reader.read()).split()[1] == status
                writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("more", [b"GET /behind HTTP/1.1\r\nhost: x\r\n\r\n", b"GET /be", b"garbage\r\n\r\n"])
def test_bytes_after_the_last_request_are_ignored(more):
    async def main() -> None:
        paths = []

        async def noting(exchange: Exchange) -> None:
            paths.append(exchange.head.path)
            await ok(exchange)

        async with serving(handler=noting) as port, asyncio.timeout(20):
            last = b"GET /last HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            answer = await talk(port, ASK + last + more)
        assert answer.count(b"HTTP/1.1 200") == 2 and answer.count(b"HTTP/1.1") == 2
        assert paths == ["/", "/last"]

    asyncio.run(main())


def test_continue_is_sent_when_the_handler_reads():
    async def main() -> None:
        async def choosy(exchange: Exchange) -> None:
            if exchange.head.path == "/no":
                await exchange.respond(Answer(b"", 413))
            else:
                await ok(exchange)

        async with serving(handler=choosy) as port, asyncio.timeout(20):
            head = b"POST %b HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head % b"/yes")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 Continue")
            writer.write(b"abc")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            writer.write(head % b"/no")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413")
            writer.write(b"abc" + ASK)  # the body is skipped
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            writer.close()

    asyncio.run(main())


def test_a_body_is_received_no_faster_than_it_is_read():
    async def main() -> None:
        size, parts = 20_000_000, []

        async def slow(exchange: Exchange) -> None:
            for _ in range(1_000):
                await asyncio.sleep(0)  # tidy: turns of the loop, in which the client sends
            while part := await exchange.read():
                parts.append(len(part))
            await exchange.respond(Answer(b""))

        async with serving(handler=slow) as port, asyncio.timeout(60):
            head = (
                b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
                % size
            )
            assert (await talk(port, head + b"x" * size)).startswith(b"HTTP/1.1 200")
        assert sum(parts) == size
        assert max(parts) <= BODY_UNREAD_BYTES + 256 * 1024, "and what one call of the socket gives"

    asyncio.run(main())


def test_a_handler_gets_an_error_when_the_rest_of_a_body_does_not_come():
    async def main() -> None:
        told = asyncio.Event()

        async def reading(exchange: Exchange) -> None:
            with pytest.raises(ClientGone):
                while await exchange.read():
                    pass
            told.set()

        async with serving(handler=reading) as port, asyncio.timeout(20):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nabc")
            writer.close()
            await told.wait()

    asyncio.run(main())


# Responses.


@pytest.mark.parametrize(
    ("line", "body"),
    [
        (b"GET / HTTP/1.1", b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"),
        (b"GET / HTTP/1.0", b"onetwo"),
        (b"HEAD / HTTP/1.1", b""),
    ],
)
def test_a_stream_has_chunks_where_the_client_knows_them(line, body):
    async def main() -> None:
        async def stream(exchange: Exchange) -> None:
            await exchange.start_stream(b"text/plain", [])
            for part in (b"one", b"", b"two"):
                await exchange.write(part)
            await exchange.end_stream()

        async with serving(handler=stream) as port, asyncio.timeout(20):
            answer = await talk(port, line + b"\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        head, _, found = answer.partition(b"\r\n\r\n")
        assert found == body and b"connection: close" in head
        assert (b"transfer-encoding: chunked" in head) == body.startswith(b"3")

    asyncio.run(main())


def test_a_response_to_head_has_the_length_and_no_body():
    async def main() -> None:
        async def hello(exchange: Exchange) -> None:
            await exchange.respond(Answer(b"hello"))

        async with serving(handler=hello) as port, asyncio.timeout(20):
            answer = await talk(port, b"HEAD / HTTP/1.0\r\n\r\n")
        assert b"content-length: 5\r\n" in answer and answer.endswith(b"\r\n\r\n")

    asyncio.run(main())


def test_a_header_cannot_have_a_line_break():
    with pytest.raises(AssertionError):
        encoded(Answer(b"", headers=[(b"location", b"/a\r\nset-cookie: b")]))


def test_a_bug_is_answered_and_logged_and_the_connection_closed(caplog):
    async def main() -> None:
        async def broken(exchange: Exchange) -> None:
            if exchange.head.path == "/late":
                await exchange.start_stream(b"text/plain", [])
            if exchange.head.path != "/silent":
                raise RuntimeError("broken")

        async with serving(handler=broken) as port, asyncio.timeout(20):
            for path in (b"/", b"/silent"):
                answer = await talk(port, b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n" % path)
                assert answer.startswith(b"HTTP/1.1 500") and b"connection: close" in answer
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /late HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with pytest.raises(CUT_OFF):
                await reader.readuntil(b"0\r\n\r\n")
            writer.close()

    asyncio.run(main())
    assert sum(record.message.startswith("Bug ") for record in caplog.records) == 3


# The end.


def test_a_stop_closes_what_is_idle_and_lets_requests_finish():
    async def main() -> None:
        began, go_on = asyncio.Event(), asyncio.Event()

        async def waiting(exchange: Exchange) -> None:
            if exchange.head.path == "/wait":
                began.set()
                await go_on.wait()
            await ok(exchange)

        connections = ServerConnections(waiting)
        with bind("127.0.0.1", 0) as sock:
            listener = Listener(sock, Admission("http", 10, per_address=10), connections.make)
            listener.start()
            port = sock.getsockname()[1]
            async with asyncio.timeout(20):
                idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
                idle_writer.write(ASK)
                await idle_reader.readuntil(b"\r\n\r\n")
                busy = asyncio.create_task(talk(port, b"GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n"))
                await began.wait()
                listener.close()
                closing = asyncio.create_task(connections.close(20))
                assert await idle_reader.read() == b""
                go_on.set()
                answer = await busy
                await closing
                idle_writer.close()
        assert answer.startswith(b"HTTP/1.1 200") and b"connection: close" in answer

    asyncio.run(main())


def test_a_stop_does_not_wait_for_ever():
    async def main() -> None:
        began = asyncio.Event()

        async def endless(exchange: Exchange) -> None:
            began.set()
            await asyncio.Event().wait()

        connections = ServerConnections(endless)
        with bind("127.0.0.1", 0) as sock:
            listener = Listener(sock, Admission("http", 10), connections.make)
            listener.start()
            async with asyncio.timeout(20):
                busy = asyncio.create_task(talk(sock.getsockname()[1], ASK))
                await began.wait()
                listener.close()
                await connections.close(0.01)
                answer = await busy
        assert answer.startswith(b"HTTP/1.1 503") and b"connection: close" in answer

    asyncio.run(main())
