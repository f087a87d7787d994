"""One HTTP connection, and how much a stranger can have of it: bytes, time, and nothing but requests.

Uvicorn bounds none of these. Without bounds, whoever can reach the port can fill the memory with a header
that never ends or with bodies that never do, without a token. And every byte belongs to one request: an
upgrade that is not known is ignored, so that no body is taken for a request.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from duetime.api.access.admission import Ticket
from duetime.api.http import problems
from duetime.api.http.exchange import Cycle, Turn
from duetime.api.http.fast_path import METHOD, PATH, Quick
from duetime.api.http.outlet import Outlet
from duetime.api.service import Begun
from duetime.errors import BadHttp, Busy, DuetimeError, HeadTooLarge
from duetime.limits import FIRST_REQUEST_MS, HEAD_BYTES_MAX, REQUEST_MS, UNREAD_MS

# What asks for another protocol: left out when a request is read again as plain HTTP/1.1.
_UPGRADES = frozenset({b"upgrade", b"http2-settings"})


class Connection(HttpToolsProtocol):
    """Uvicorn's, with bounds, and a shorter way for what is short."""

    cycle: Cycle | Turn | None  # type: ignore[assignment]  # of our own kinds
    transport: Outlet  # type: ignore[assignment]  # it behaves as a transport

    def __init__(
        self,
        *args: Any,
        ticket: Ticket,
        first_s: float = FIRST_REQUEST_MS / 1000,
        request_s: float = REQUEST_MS / 1000,
        unread_s: float = UNREAD_MS / 1000,
        quick: Quick | None = None,
        **more: Any,
    ) -> None:
        """`ticket`: given back when the connection is lost. `first_s`: how long the head of the first request
        may take to come, `request_s`: any whole request, `unread_s`: how long an answer may stay unread."""
        super().__init__(*args, **more)
        self._ticket = ticket
        self._first_s = first_s
        self._request_s = request_s
        self._unread_s = unread_s
        self._quick = quick
        self._running: Cycle | Turn | None = None
        """The request that is answered now; `cycle` is the newest one."""
        self._body: bytes | None = None
        """What has come of the body of a request that may be a quick one."""
        self._unread = 0
        """Bytes that came since something came out of the parser."""
        self._held = 0
        """Bytes of requests that are not answered, as the ticket counts them."""
        self._moved = False
        self._whole = True
        self._headed = False
        """The head is there: fields that come later are trailers."""
        self._deaf = False
        """Nothing that comes is read any more."""
        self._last_words: bytes | None = None
        """Sent before the connection is closed, behind the answers that are under way."""
        self._patience: asyncio.TimerHandle | None = None
        self._idle_since_s: float | None = None
        """When the last answer was given, if nothing was asked since."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Outlet(transport, self.loop, self._unread_s))  # type: ignore[arg-type]
        self._patience = self.loop.call_later(self._first_s, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm_down()
        self._unset_keepalive_if_required()
        self.transport.lost()
        if self._held:
            self._ticket.give(self._held)
            self._held = 0
        self._ticket.release()
        self.pipeline.clear()
        running = self._running
        if running is not None and not running.response_complete:  # uvicorn tells only the newest
            running.disconnected = True
            running.message_event.set()
        super().connection_lost(exc)

    # What comes in.

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._moved = False
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._give_up(BadHttp())
            return
        if self._body is not None:
            self._step_aside()  # the rest takes its time
        if self._moved:
            self._unread = 0
        else:
            self._unread += len(data)
            if self._unread > HEAD_BYTES_MAX:
                self._give_up(HeadTooLarge())
                return
        if self._unread or type(self.cycle) is Cycle:
            self._count(data)
        if self._whole:
            if not self._first_s:  # empty lines before the first request are none
                self._calm_down()
        elif self._patience is None:
            self._patience = self.loop.call_later(self._request_s, self._too_slow)

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as stop:
                data = self._without_upgrade() + data[stop.args[0] :]

    def _without_upgrade(self) -> bytes:
        """The head again, as if nothing had been said of another protocol: the parser stops at what would be
        the other protocol's first byte, and it is the body's."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        if method == b"CONNECT":
            raise httptools.HttpParserError("CONNECT is for proxies")
        lines = [b"%b %b HTTP/%b" % (method, self.url, version.encode())]
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(
                    each for each in value.split(b",") if each.strip().lower() not in _UPGRADES
                )
            if name not in _UPGRADES:
                lines.append(b"%b: %b" % (name, value))
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join((*lines, b"", b""))

    def _count(self, data: bytes) -> None:
        """Count what came against the limits of bytes, unless it is thrown away."""
        if not self._unread and (self.cycle is None or self.cycle.response_complete):
            return
        if self._ticket.take(len(data)):
            self._held += len(data)
        elif not self._whole:
            self._give_up(Busy("Incomplete requests use too much memory.", waitMs=1_000))

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn never keeps it open
        """The client closed its side: what it asked for is answered first."""
        if self.scheme == "https" or self._deaf or not self._answering():
            self.transport.flush()  # the loop closes it now
            return False  # there is no half-closed TLS, and nothing to answer
        self._give_up(None)
        for each in (self._running, *(cycle for cycle, _ in self.pipeline)):
            if isinstance(each, Cycle):
                each.end()
        return self._answering()

    # What the parser found.

    def on_message_begin(self) -> None:
        self._idle_since_s = None  # by a request, and not by empty lines
        self._whole = self._headed = False
        self.transport.comes_more = True
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._headed:
            return  # a trailer says nothing about who asks, or for what
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._moved = self._headed = True
        if self.parser.should_upgrade():
            return  # it is read again
        if self._first_s:
            self._first_s = 0
            self._calm_down()
        if self._may_be_quick():
            self._body = b""
        else:
            self._begin()

    def on_body(self, body: bytes) -> None:
        self._moved = True
        if self._body is not None:
            self._body += body
            return
        cycle = self.cycle
        assert isinstance(cycle, Cycle)
        if not cycle.response_complete:
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._moved = self._whole = True
        self.transport.comes_more = False
        if self._body is not None:
            begun = self._quick.begin(self.headers, self._body) if self._quick is not None else None
            if begun is not None:
                self._body, turn = None, Turn()
                self.cycle = self._running = turn
                begun.reply.add_done_callback(lambda reply: self._answer(turn, begun))
                return
            self._step_aside()
        cycle = self.cycle
        assert cycle is not None
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def _begin(self) -> None:
        """A request on the long way: it is answered when those before it are."""
        version = self.parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "method": self.parser.get_method().decode("ascii"),
            "scheme": self.scheme or "http",
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "root_path": self.root_path,
            "headers": self.headers,
            "client": self.client,
            "server": self.server,
            "state": self.app_state.copy(),
        }
        before = self.cycle
        self.cycle = Cycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    # The quick way.

    def _may_be_quick(self) -> bool:
        parser = self.parser
        return (
            self._quick is not None
            and self.url == PATH
            and parser.get_method() == METHOD
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not self.expect_100_continue
            and not self.flow.write_paused  # the long way waits until answers are read
            and getattr(self.cycle, "response_complete", True)
        )

    def _step_aside(self) -> None:
        """Not quick after all: begin what was held back."""
        body, self._body = self._body, None
        self._begin()
        if body:
            self.on_body(body)

    def _answer(self, turn: Turn, begun: Begun) -> None:
        assert self._quick is not None
        answer = self._quick.answer(begun)
        turn.response_complete = True
        if not turn.disconnected:
            self.transport.send(answer)
            if not turn.keep_alive:
                self.transport.close()
        self.on_response_complete()

    # The end of an answer, and of the connection.

    def _answering(self) -> bool:
        return self._running is not None and not (
            self._running.response_complete or self._running.disconnected
        )

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.pipeline:
            if not self.transport.is_closing():
                self.flow.resume_reading()
                self._start_asgi_task(*self.pipeline.pop())
            return
        if self._held:
            self._ticket.give(self._held)
            self._held = 0
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._idle_since_s = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_idle(self.timeout_keep_alive)
        if self._deaf:
            self._say_goodbye()

    def _wait_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self._look_idle)

    def _look_idle(self) -> None:
        """One timer for all requests: it is set again only when it goes off too early."""
        self.timeout_keep_alive_task = None
        if self._idle_since_s is None:
            return  # the answer will set it
        left_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._wait_idle(left_s)
        else:
            self.timeout_keep_alive_handler()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.transport.trust_reader()

    def _give_up(self, error: DuetimeError | None) -> None:
        """Read nothing more: answer what was asked before, then say why, and close."""
        self._deaf = True
        self._body = None
        self._calm_down()
        if error is not None:
            self._last_words = _words(error)
        newest = self.cycle
        if newest is not None and newest.more_body and not newest.response_complete:  # it stays half
            newest.disconnected = True
            newest.message_event.set()
            if self.pipeline and self.pipeline[0][0] is newest:
                self.pipeline.popleft()
            elif isinstance(newest, Cycle) and newest.response_started:
                self.transport.abort()
        if not self._answering():
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if self._last_words is not None:
            self.transport.write(self._last_words)
            self.transport.comes_more = True
            self.flow.resume_reading()
        self.transport.close()

    def _calm_down(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _too_slow(self) -> None:
        """No whole request in time: whoever is there says nothing, or says it too slowly."""
        self._patience = None
        self.transport.abort()


def _words(error: DuetimeError) -> bytes:
    """A refusal as the whole answer, after which the connection is closed."""
    body = problems.encode(error)
    wait_s = problems.retry_after_s(error)
    more = b"" if wait_s is None else b"retry-after: %d\r\n" % wait_s
    return b"%bcontent-type: %b\r\ncontent-length: %d\r\n%bconnection: close\r\n\r\n%b" % (
        STATUS_LINE[error.status], problems.MEDIA_TYPE, len(body), more, body,
    )  # fmt: skip
