"""One HTTP/1.1 connection: an `asyncio.Protocol` that owns parsing, order, limits, timeouts and closing.

Its rules:

- Every byte belongs to one request. An upgrade to another protocol is ignored, so that no body is taken for a
  request. Trailers (fields after a body) are ignored: they cannot change the token or the target of a
  request.
- Responses are sent in the order of the requests. A pipelined request waits for the one before, and nothing
  more is read from the client in the meantime. The same holds while a handler has not read the body.
- A client without a token gets limited memory and time: bytes and number of headers, bytes of unanswered
  requests, time for the first head, for a whole request, for reading a response, and without any request.
- A complete request is answered, also if the client has closed its side, sends invalid data next, or the
  server stops. Then the connection is closed in a way that lets the client read the response.
- The plain POST of one intent takes the fast path, without a task. All other requests go to the handler.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, cast
from urllib.parse import unquote

import httptools
from msgspec import Struct

from duetime.api.access.admission import Ticket
from duetime.api.http.endpoint import bug, refusal
from duetime.api.http.exchange import Answer, Exchange, Head, Headers, RequestTurn, encoded
from duetime.api.http.fast_path import METHOD, PATH, FastPath
from duetime.api.http.outlet import Outlet
from duetime.api.service import Begun
from duetime.errors import BadHttp, Busy, DuetimeError, HeadTooLarge, Unavailable
from duetime.limits import (
    BODY_UNREAD_BYTES,
    FIRST_REQUEST_MS,
    HEAD_BYTES_MAX,
    HEADERS_MAX,
    IDLE_MS,
    REQUEST_MS,
    UNREAD_MS,
)

_logger = logging.getLogger("duetime.api")
# Headers that ask for another protocol: removed when a request is parsed again as plain HTTP/1.1.
_UPGRADES: Final = frozenset({b"upgrade", b"http2-settings"})

ExchangeHandler = Callable[[Exchange], Awaitable[None]]


class Timeouts(Struct, frozen=True):
    """How long a connection waits for its client, in seconds."""

    first_s: float = FIRST_REQUEST_MS / 1000
    """For the head of the first request."""
    request_s: float = REQUEST_MS / 1000
    """For a whole request, from its first byte."""
    unread_s: float = UNREAD_MS / 1000
    """For a response to be read."""
    idle_s: float = IDLE_MS / 1000
    """For the next request."""


class ServerConnections:
    """The open connections of one port, and the tasks that handle their requests."""

    def __init__(
        self, handler: ExchangeHandler, fast_path: FastPath | None = None, timeouts: Timeouts | None = None
    ) -> None:
        self.handler = handler
        self.fast_path = fast_path
        self.timeouts = timeouts if timeouts is not None else Timeouts()
        self._open: set[ServerConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed: asyncio.Event | None = None
        """Set during shutdown, when no connection and no task is left."""

    def make(self, ticket: Ticket) -> ServerConnection:
        """The protocol of one new connection, which releases the ticket when the connection is lost."""
        return ServerConnection(self, ticket)

    def opened(self, connection: ServerConnection) -> None:
        self._open.add(connection)
        if self._closed is not None:
            connection.shut_down()

    def lost(self, connection: ServerConnection) -> None:
        self._open.discard(connection)
        self._check()

    def run(self, answering: Coroutine[None, None, None]) -> None:
        """Answer a request in a task."""
        task = asyncio.get_running_loop().create_task(answering)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def close(self, within_s: float) -> None:
        """Close every connection when its requests are answered, or after this time."""
        self._closed = asyncio.Event()
        for connection in tuple(self._open):
            connection.shut_down()
        self._check()
        try:
            async with asyncio.timeout(within_s):
                await self._closed.wait()
        except TimeoutError:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for connection in tuple(self._open):
                connection.abort()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._check()

    def _check(self) -> None:
        if self._closed is not None and not self._open and not self._tasks:
            self._closed.set()


class ServerConnection(asyncio.Protocol):
    """One client's connection."""

    _transport: asyncio.Transport
    _out: Outlet
    _parser: httptools.HttpRequestParser

    def __init__(self, connections: ServerConnections, ticket: Ticket) -> None:
        self._connections = connections
        self._fast_path = connections.fast_path
        self._ticket = ticket
        self._loop = asyncio.get_running_loop()
        self._tls = False
        # The request that is being parsed.
        self._url = b""
        self._headers: Headers = []
        self._expects_continue = False
        self._head_done = False
        """Fields that come now are trailers."""
        self._whole = True
        """No request is incomplete."""
        self._fast_body: bytes | None = None
        """The body so far of a request that may take the fast path."""
        # Requests and their order.
        self._newest: RequestTurn | None = None
        self._running: RequestTurn | None = None
        """The request that is being answered."""
        self._waiting: deque[Exchange] = deque()
        """Requests behind it."""
        # Limits.
        self._progress = False
        """The data just received completed a head or a part of a body."""
        self._unparsed = 0
        """Bytes received since the last progress."""
        self._held = 0
        """Bytes of requests that are not answered, as the ticket counts them."""
        self._first = True
        """The head of the first request has not arrived yet."""
        self._request_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_since_s: float | None = None
        """When the last response was written, if no request has begun since."""
        # Flow.
        self._reading_paused = False
        self._writable: asyncio.Event | None = None
        """Set when the client has read enough; None: nothing to wait for."""
        self._deaf = False
        """Nothing that arrives is parsed any more."""
        self._last_answer: Answer | None = None
        """Sent behind the responses of earlier requests, before the connection is closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        timeouts = self._connections.timeouts
        self._tls = transport.get_extra_info("sslcontext") is not None
        self._transport = cast(asyncio.Transport, transport)  # with uvloop it only behaves like one
        self._out = Outlet(self._transport, self._loop, timeouts.unread_s)
        self._new_parser()
        self._request_timer = self._loop.call_later(timeouts.first_s, self._too_slow)
        self._connections.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deaf = True
        self._cancel_request_timer()
        self._cancel_idle_timer()
        self._out.lost()
        if self._held:
            self._ticket.give(self._held)
            self._held = 0
        self._ticket.release()
        self._waiting.clear()
        if self._running is not None:
            self._running.lose()
        if self._writable is not None:
            self._writable.set()
            self._writable = None
        del self._parser  # breaks the reference cycle
        self._connections.lost(self)

    # Data from the client.

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._progress = False
        self._unparsed += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            if not isinstance(cause, (DuetimeError, httptools.HttpParserError)):
                raise  # a bug in a callback, not an error of the client
            self._stop_reading(cause if isinstance(cause, DuetimeError) else BadHttp())
            return
        except httptools.HttpParserError:
            self._stop_reading(BadHttp())
            return
        if self._fast_body is not None:
            self._leave_fast_path()  # the rest of the body arrives later
        if self._progress:
            self._unparsed = 0
        elif self._unparsed > HEAD_BYTES_MAX:
            self._stop_reading(HeadTooLarge())
            return
        newest = self._newest
        if self._unparsed or (type(newest) is Exchange and not newest.answered):
            self._count(len(data))
        if self._whole:
            if not self._first:  # empty lines before the first request do not stop its timeout
                self._cancel_request_timer()
        elif self._request_timer is None:
            self._request_timer = self._loop.call_later(self._connections.timeouts.request_s, self._too_slow)

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as stop:
                data = self._head_without_upgrade() + data[stop.args[0] :]

    def _head_without_upgrade(self) -> bytes:
        """The head without the headers that ask for another protocol. The parser has stopped at the first
        byte of the body, which it takes for data of that protocol."""
        method, version = self._parser.get_method(), self._parser.get_http_version()
        if method == b"CONNECT":
            raise httptools.HttpParserError("CONNECT is for proxies")
        lines = [b"%b %b HTTP/%b" % (method, self._url, version.encode())]
        for name, value in self._headers:
            if name == b"connection":
                value = b", ".join(
                    each for each in value.split(b",") if each.strip().lower() not in _UPGRADES
                )
            if name not in _UPGRADES:
                lines.append(b"%b: %b" % (name, value))
        self._new_parser()
        return b"\r\n".join((*lines, b"", b""))

    def _new_parser(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        # Data after a request that closes the connection is ignored, not refused.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _count(self, size: int) -> None:
        """Count the received bytes against the limits."""
        if self._ticket.take(size):
            self._held += size
        elif not self._whole:
            self._stop_reading(Busy("Incomplete requests use too much memory.", waitMs=1_000))

    def eof_received(self) -> bool:
        """The client closed its side: its requests are answered first."""
        if self._tls or self._deaf or not self._answering():
            return False  # there is no half-closed TLS, and nothing to answer
        self._stop_reading(None)
        if self._running is not None:
            self._running.half_close()
        for exchange in self._waiting:
            exchange.half_close()
        return self._answering()

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        self._idle_since_s = None  # a request ends the idle time; empty lines do not
        self._whole = self._head_done = False
        self._out.client_sends = True
        self._url = b""
        self._expects_continue = False
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_done:
            return  # a trailer
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._progress = self._head_done = True
        if self._parser.should_upgrade():
            return  # it is parsed again
        self._check_head()
        if self._first:
            self._first = False
            self._cancel_request_timer()
        if self._may_be_fast():
            self._fast_body = b""
        else:
            self._begin()

    def _check_head(self) -> None:
        headers = self._headers
        if len(headers) > HEADERS_MAX:
            raise HeadTooLarge(f"The request has more than {HEADERS_MAX} headers.")
        if self._unparsed > HEAD_BYTES_MAX:  # unless most of this is a body, or other requests
            size = len(self._url) + sum(len(name) + len(value) for name, value in headers)
            if size > HEAD_BYTES_MAX:
                raise HeadTooLarge()

    def on_body(self, body: bytes) -> None:
        self._progress = True
        if self._fast_body is not None:
            self._fast_body += body
            return
        exchange = self._newest
        assert isinstance(exchange, Exchange)
        if exchange.feed(body) > BODY_UNREAD_BYTES:
            self._pause_reading()

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        self._progress = self._whole = True
        self._out.client_sends = False
        if self._fast_body is not None:
            if self._take_fast_path():
                return
            self._leave_fast_path()
        exchange = self._newest
        assert isinstance(exchange, Exchange)
        exchange.complete()

    def _begin(self) -> None:
        """A request for the handler. It is answered after those before it."""
        url = httptools.parse_url(self._url)
        path = (url.path or b"/").decode("ascii")
        version = self._parser.get_http_version()
        head = Head(
            self._parser.get_method().decode("ascii"),
            unquote(path) if "%" in path else path,
            url.query or b"",
            self._headers,
            version,
        )
        before = self._newest
        self._newest = exchange = Exchange(
            head,
            self,
            keep_alive=version != "1.0" and self._parser.should_keep_alive(),
            expects_continue=self._expects_continue,
        )
        if before is None or before.answered:
            self._run(exchange)
        else:
            self._pause_reading()
            self._waiting.append(exchange)

    # The fast path.

    def _may_be_fast(self) -> bool:
        """Whether the request looks like the plain POST of one intent, and nothing waits before it."""
        parser = self._parser
        return (
            self._fast_path is not None
            and self._url == PATH
            and parser.get_method() == METHOD
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not self._expects_continue
            and self._writable is None  # the handler waits until responses are read
            and (self._newest is None or self._newest.answered)
        )

    def _take_fast_path(self) -> bool:
        assert self._fast_path is not None and self._fast_body is not None
        begun = self._fast_path.begin(self._headers, self._fast_body)
        if begun is None:
            return False
        self._fast_body = None
        turn = self._newest = self._running = RequestTurn()
        begun.reply.add_done_callback(lambda reply: self._answer_fast(turn, begun))
        return True

    def _leave_fast_path(self) -> None:
        """The request cannot take the fast path: pass it to the handler with its body so far."""
        body, self._fast_body = self._fast_body, None
        self._begin()
        if body:
            self.on_body(body)

    def _answer_fast(self, turn: RequestTurn, begun: Begun) -> None:
        assert self._fast_path is not None
        answer = self._fast_path.answer(begun)
        turn.answered = True
        if not turn.gone:
            self._out.write(encoded(answer, close=not turn.keep_alive))
            self.finished(turn)

    # The handler.

    def _run(self, exchange: Exchange) -> None:
        self._running = exchange
        self._connections.run(self._handle(exchange))

    async def _handle(self, exchange: Exchange) -> None:
        try:
            await self._connections.handler(exchange)
            if not exchange.answered and not exchange.gone:
                raise AssertionError("The handler returned before the response was complete.")
        except asyncio.CancelledError:
            self._fail(exchange, refusal(Unavailable("The server stopped before the response was ready.")))
            raise
        except Exception as error:
            self._fail(exchange, bug(error, exchange.head.method, exchange.head.path))

    def _fail(self, exchange: Exchange, answer: Answer) -> None:
        """The handler has not responded, or not completely."""
        if exchange.answered or exchange.gone:
            return
        if exchange.started:
            self._out.abort()
            return
        exchange.answered, exchange.keep_alive = True, False
        self._out.write(encoded(answer, close=True))
        self.finished(exchange)

    # Calls of an exchange.

    def write(self, data: bytes) -> None:
        self._out.write(data)

    async def drain(self) -> None:
        if self._writable is not None:
            await self._writable.wait()

    def finished(self, turn: RequestTurn) -> None:
        """A response is written: start the next one, or wait for a request, or close the connection."""
        if not turn.keep_alive:
            self._waiting.clear()
            self._close()
        elif self._waiting and not self._out.is_closing():
            self.resume_reading()
            self._run(self._waiting.popleft())
            return
        if self._held:
            self._ticket.give(self._held)
            self._held = 0
        if self._out.is_closing():
            return
        if self._deaf:
            self._close()
            return
        self.resume_reading()
        self._idle_since_s = self._loop.time()
        if self._idle_timer is None:
            self._set_idle_timer(self._connections.timeouts.idle_s)

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self._writable = asyncio.Event()
        self._out.watch_reader()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None
        self._out.trust_reader()

    # The end of the connection.

    def shut_down(self) -> None:
        """The server stops: close after all requests are answered."""
        newest = self._newest
        if newest is None or newest.answered:
            self._close()
        else:
            newest.keep_alive = False

    def abort(self) -> None:
        """Close at once."""
        self._out.abort()

    def _answering(self) -> bool:
        running = self._running
        return running is not None and not running.answered and not running.gone

    def _stop_reading(self, error: DuetimeError | None) -> None:
        """Parse nothing more: answer the earlier requests, then send the error, and close."""
        self._deaf = True
        self._fast_body = None
        self._cancel_request_timer()
        if error is not None:
            self._last_answer = refusal(error)
        newest = self._newest
        if newest is not None and not newest.whole and not newest.answered:  # it will never be complete
            newest.lose()
            if self._waiting and self._waiting[-1] is newest:
                self._waiting.pop()
            elif isinstance(newest, Exchange) and newest.started:
                self._out.abort()
        if not self._answering():
            self._close()

    def _close(self) -> None:
        if self._out.is_closing():
            return
        self._deaf = True
        self._cancel_request_timer()
        self._cancel_idle_timer()
        if self._last_answer is not None:
            self._out.write(encoded(self._last_answer, close=True))
            self._out.client_sends = True
        self.resume_reading()  # to notice the end of the client's data
        self._out.close()

    # Timeouts.

    def _too_slow(self) -> None:
        """No whole request in time: the client sends nothing, or too slowly."""
        self._request_timer = None
        self._out.abort()

    def _cancel_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _set_idle_timer(self, seconds: float) -> None:
        self._idle_timer = self._loop.call_later(seconds, self._check_idle)

    def _check_idle(self) -> None:
        """One timer for all requests: it is set again only if it fires too early."""
        self._idle_timer = None
        if self._idle_since_s is None:
            return  # the next response sets it
        left_s = self._idle_since_s + self._connections.timeouts.idle_s - self._loop.time()
        if left_s > 0:
            self._set_idle_timer(left_s)
        else:
            self._close()

    def _cancel_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
