"""Persistent connections to one server: HTTP/1.1, one request at a time on each.

A request is one write, and its response one parse: if requests are awaited one by one, most of the time is
spent in the client. `httptools` parses the responses.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

from duetime.errors import BadConfig, InvalidField
from duetime.limits import (
    CLIENT_CONNECT_S,
    CLIENT_CONNECTIONS_MAX,
    CLIENT_LINE_BYTES_MAX,
    CLIENT_NEXT_ADDRESS_S,
)

_END = b"\r\n"


class HttpResponse(Struct):
    """A response. The names of headers are in lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    lines: asyncio.StreamReader | None = None
    """The body as it arrives, if a stream was requested."""


class Connection(asyncio.Protocol):
    """One socket, and the response that is being read from it."""

    def __init__(self, stream: bool = False) -> None:
        self._parser = _httptools().HttpResponseParser(self)
        self._stream = stream
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._headers: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._lines: asyncio.StreamReader | None = None
        self.closed = False

    async def ask(self, request: bytes, timeout_s: float) -> HttpResponse:
        """Send a request and return the response; of a stream, its beginning."""
        assert self._waiter is None, "one request at a time"
        if self.closed:
            raise ConnectionResetError("the connection was closed")
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        self._transport.write(request)
        # Takes a third of the time of `asyncio.timeout`, and runs for every request.
        patience = loop.call_later(timeout_s, self._fail, TimeoutError())
        try:
            return await self._waiter
        except BaseException:
            self.close()  # the response may still arrive, and must not be taken for that of another request
            raise
        finally:
            patience.cancel()
            self._waiter = None

    def close(self) -> None:
        self.closed = True
        self._transport.abort()

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # with uvloop it only behaves like one

    def data_received(self, data: bytes) -> None:
        if self._waiter is None and self._lines is None:
            self.close()  # there is no request
            return
        try:
            self._parser.feed_data(data)
        except _httptools().HttpParserError as error:
            self._fail(ConnectionError(f"the answer is not HTTP: {error}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self._fail(error if error is not None else ConnectionResetError("the connection was closed"))

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        if self._lines is not None:
            self._lines.set_exception(error)

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        self._headers, self._parts = {}, []
        if self._waiter is None or self._waiter.done():
            self.close()  # an unexpected response: the next one could not be assigned

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._stream and status == 200:
            self._lines = asyncio.StreamReader(CLIENT_LINE_BYTES_MAX)
            self._lines.set_transport(self._transport)
            self._done(HttpResponse(status, self._headers, b"", self._lines))

    def on_body(self, body: bytes) -> None:
        if self._lines is not None:
            self._lines.feed_data(body)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return  # the final response is still to come
        if self._lines is not None:
            self._lines.feed_eof()
        else:
            self._done(HttpResponse(status, self._headers, b"".join(self._parts)))
        if not self._parser.should_keep_alive():
            self.close()

    def _done(self, answer: HttpResponse) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(answer)


class Connections:
    """All connections to one server."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        _httptools()  # report a missing package now
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        assert parts.hostname is not None, "`url_of` has checked it"
        self._name, self._path = parts.netloc, parts.path
        self._host, self._port = parts.hostname, parts.port or (443 if secure else 80)
        self._tls = (tls or ssl.create_default_context()) if secure else None
        self._idle: list[Connection] = []
        self._streams: set[Connection] = set()
        self._attempts: set[asyncio.Task[Connection]] = set()
        self._count = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def ask(self, head: bytes, body: bytes | None, timeout_s: float) -> HttpResponse:
        """Send a request and return the whole response."""
        request = head + (_END if body is None else b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        connection = self._open_one()
        if connection is not None:
            try:
                return await connection.ask(request, timeout_s)
            except ConnectionError:
                pass  # the server closed the idle connection: try a new one
            finally:
                self._give_back(connection)
        async with asyncio.timeout(timeout_s):
            connection = await self._new_one()
        try:
            return await connection.ask(request, timeout_s)
        finally:
            self._give_back(connection)

    @asynccontextmanager
    async def stream(self, head: bytes, timeout_s: float) -> AsyncIterator[HttpResponse]:
        """The beginning of a streaming response."""
        connection = await self._connect(stream=True)
        self._streams.add(connection)
        try:
            yield await connection.ask(head + _END, timeout_s)
        finally:
            self._streams.discard(connection)
            connection.close()

    def head(self, method: str, target: str, headers: Mapping[str, str]) -> bytes:
        """The head of a request. Line breaks in values are refused: they would start another request."""
        lines = [f"{method} {self._path}{target} HTTP/1.1", f"Host: {self._name}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if not all(map(str.isprintable, lines)):
            raise InvalidField("A name or a header contains a character that cannot be sent.")
        return "\r\n".join((*lines, "")).encode()

    def close(self) -> None:
        self._closed = True
        for connection in (*self._idle, *self._streams):
            connection.close()
        self._idle.clear()
        self._streams.clear()

    def _open_one(self) -> Connection | None:
        """An idle connection, if there is one."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
            self._count -= 1
        return None

    async def _new_one(self) -> Connection:
        """A new connection; or, at the maximum, the next one that is released."""
        while self._count >= CLIENT_CONNECTIONS_MAX:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except BaseException:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # this waiter was already woken: wake the next one
                raise
            connection = self._open_one()
            if connection is not None:
                return connection
        self._count += 1
        try:
            return await self._connect()
        except BaseException:
            self._count -= 1
            self._wake()
            raise

    def _give_back(self, connection: Connection) -> None:
        if connection.closed or self._closed:
            self._count -= 1
            connection.close()
        else:
            self._idle.append(connection)
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _connect(self, *, stream: bool = False) -> Connection:
        """A new connection. If the caller is cancelled, the attempt continues and its connection is closed:
        asyncio loses the socket of a race between addresses that is cancelled just as it is won."""
        attempt = asyncio.create_task(self._attempt(stream))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            attempt.add_done_callback(_close_late)
            raise

    async def _attempt(self, stream: bool) -> Connection:
        loop = asyncio.get_running_loop()
        # Other event loops, such as uvloop, try the addresses one by one and have no such delay.
        own = isinstance(loop, asyncio.BaseEventLoop)
        more: dict[str, Any] = {"happy_eyeballs_delay": CLIENT_NEXT_ADDRESS_S} if own else {}
        async with asyncio.timeout(CLIENT_CONNECT_S):
            _, connection = await loop.create_connection(
                lambda: Connection(stream), self._host, self._port, ssl=self._tls, **more
            )
        return connection


def _close_late(attempt: asyncio.Task[Connection]) -> None:
    """Close a connection that nobody waits for any more."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def _httptools() -> Any:
    try:
        import httptools
    except ImportError:
        raise BadConfig(
            "Talking to a server needs httptools, which is not installed.",
            hint="Install it with `pip install 'duetime[client]'`.",
        ) from None
    return httptools
