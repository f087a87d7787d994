"""A client's connections against servers that behave in every way a server or a proxy may."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from duetime.client.http.connections import Connections
from duetime.errors import InvalidField
from duetime.limits import CLIENT_CONNECTIONS_MAX
from tests.integration.asynchronous import asynchronous

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b"


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """The first line and the body of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
    return head.split(b"\r\n")[0] + b"|" + body


class Place:
    """A server that follows a script on each connection, numbered from 1."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.accepted = 0

    async def __aenter__(self) -> Connections:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/base"
        self.connections = Connections(self.url, None)
        return self.connections

    async def __aexit__(self, *exc: object) -> None:
        self.connections.close()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            await self._script(reader, writer, self.accepted)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went
        finally:
            writer.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
    while True:
        said = await request_of(reader)
        writer.write(OK % (len(said), said))


@asynchronous
async def test_one_connection_serves_one_request_after_the_other():
    place = Place(echo)
    async with place as connections:
        for number in range(3):
            answer = await connections.ask(connections.head("POST", "/a?b=1", {}), b"%d" % number, 5)
            assert (answer.status, answer.body) == (200, b"POST /base/a?b=1 HTTP/1.1|%d" % number)
    assert place.accepted == 1


@asynchronous
async def test_a_chunked_response_after_an_interim_response_is_whole():
    async def script(reader, writer, number):
        await request_of(reader)
        writer.write(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n")
        writer.write(b"X-Name: v\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        await request_of(reader)

    async with Place(script) as connections:
        answer = await connections.ask(connections.head("GET", "/", {}), None, 5)
        assert (answer.status, answer.body, answer.headers[b"x-name"]) == (201, b"abcde", b"v")


@asynchronous
async def test_a_connection_that_the_server_closed_meanwhile_is_replaced_unseen():
    async def script(reader, writer, number):
        await request_of(reader)
        writer.write(OK % (1, b"%d" % number))
        if number == 1:
            await request_of(reader)  # and hangs up instead of answering
        else:
            await echo(reader, writer, number)

    place = Place(script)
    async with place as connections:
        sent = connections.head("GET", "/", {})
        assert [(await connections.ask(sent, None, 5)).body for _ in range(2)] == [b"1", b"2"]
    assert place.accepted == 2


@asynchronous
async def test_a_request_cancelled_at_any_step_of_connecting_leaves_no_socket_open():
    """asyncio loses the socket of a race between addresses that is cancelled just as it is won."""
    place = Place(echo)
    async with place:
        for steps in range(40):
            connections = Connections(place.url, None)
            asked = asyncio.ensure_future(connections.ask(connections.head("GET", "/", {}), None, 5))
            for _ in range(steps):
                await asyncio.sleep(0)  # tidy: a step of the loop
            asked.cancel()
            await asyncio.wait([asked])
            connections.close()
    gc.collect()  # a socket that is still open is a ResourceWarning, and warnings are errors


@asynchronous
async def test_a_cancelled_request_leaves_no_response_to_the_next_request():
    asked = asyncio.Event()

    async def script(reader, writer, number):
        said = await request_of(reader)
        if number == 1:
            asked.set()
            await request_of(reader)
        writer.write(OK % (len(said), said))
        await echo(reader, writer, number)

    place = Place(script)
    async with place as connections:
        first = asyncio.ensure_future(connections.ask(connections.head("GET", "/first", {}), None, 60))
        await asked.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        answer = await connections.ask(connections.head("GET", "/second", {}), None, 5)
        assert b"/second" in answer.body
        with pytest.raises(TimeoutError):
            await Connections.ask(connections, b"GET /half HTTP/1.1\r\nContent-Length: 5\r\n", None, 0.05)
    assert place.accepted == 2


@pytest.mark.parametrize("words", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"])
def test_bytes_that_are_not_http_are_a_connection_error(words):
    @asynchronous
    async def ask():
        async def script(reader, writer, number):
            await request_of(reader)
            writer.write(words)
            await request_of(reader)

        async with Place(script) as connections:
            with pytest.raises(ConnectionError):
                await connections.ask(connections.head("GET", "/", {}), None, 5)

    ask()


@asynchronous
async def test_an_answer_that_is_cut_is_an_error():
    async def script(reader, writer, number):
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")

    async with Place(script) as connections:
        with pytest.raises(ConnectionError):
            await connections.ask(connections.head("GET", "/", {}), None, 5)


@asynchronous
async def test_an_answer_to_nothing_ends_the_connection():
    async def script(reader, writer, number):
        await request_of(reader)
        writer.write(OK % (1, b"a") + OK % (1, b"b"))
        await echo(reader, writer, number)

    place = Place(script)
    async with place as connections:
        sent = connections.head("GET", "/", {})
        assert (await connections.ask(sent, None, 5)).body == b"a"
        assert (await connections.ask(sent, None, 5)).body == b"a", "what nobody asked for is nobody's answer"
    assert place.accepted == 2


@asynchronous
async def test_connections_are_limited_and_every_request_is_answered():
    place = Place(echo)
    async with place as connections:
        head = connections.head("POST", "/", {})
        sent = [b"%d" % number for number in range(4 * CLIENT_CONNECTIONS_MAX)]
        answers = await asyncio.gather(*(connections.ask(head, each, 30) for each in sent))
        assert [answer.body.rpartition(b"|")[2] for answer in answers] == [
            b"%d" % n for n in range(len(sent))
        ]
    assert place.accepted == CLIENT_CONNECTIONS_MAX


@asynchronous
async def test_a_line_break_does_not_begin_another_request():
    connections = Connections("http://127.0.0.1:1", None)
    for target, headers in (("/a b\r\nX: y", {}), ("/", {"if-match": '"1"\r\nX: y'}), ("/", {"a\nb": "c"})):
        with pytest.raises(InvalidField):
            connections.head("GET", target, headers)
