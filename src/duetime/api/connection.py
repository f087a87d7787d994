"""One HTTP connection, and how much a stranger can have of it: bytes of a head, time, connections.

Uvicorn bounds none of these. Without bounds, whoever can reach the port can fill the memory with a header
that never ends, or use up the file descriptors that the log needs, without a token.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duetime.api.admission import Ticket
from duetime.api.quick import METHOD, PATH, Quick
from duetime.api.service import Begun
from duetime.limits import FIRST_REQUEST_MS, HEAD_BYTES_MAX, REQUEST_MS

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)  # fmt: skip


class Outlet:
    """A transport on which everything written in one pass of the loop goes out at once: the head and the body
    of an answer are one packet, for which its reader wakes up once."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def send(self, data: bytes) -> None:
        """Out at once: it is whole."""
        self._flush()
        self._transport.write(data)

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Turn:
    """Stands where uvicorn has the request that is answered now, for one that is answered the quick way: what
    comes behind it waits, and a stop lets it finish."""

    def __init__(self) -> None:
        self.response_complete = False
        self.disconnected = False
        self.keep_alive = True
        self.message_event = asyncio.Event()


class Connection(HttpToolsProtocol):
    """Uvicorn's, with bounds, and a shorter way for what is short."""

    def __init__(
        self,
        *args: Any,
        ticket: Ticket,
        first_s: float = FIRST_REQUEST_MS / 1000,
        request_s: float = REQUEST_MS / 1000,
        quick: Quick | None = None,
        **more: Any,
    ) -> None:
        """`ticket`: given back when the connection is lost. `first_s`: how long the head of the first request
        may take to come, `request_s`: how long any whole request may."""
        super().__init__(*args, **more)
        self._ticket = ticket
        self._first_s = first_s
        self._request_s = request_s
        self._quick = quick
        self._held: bytes | None = None
        """What has come of the body of a request that may be a quick one."""
        self._unread = 0
        """Bytes that came since something came out of the parser."""
        self._moved = False
        self._whole = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Outlet(transport, self.loop))  # type: ignore[arg-type]  # it behaves as one
        self._patience = self.loop.call_later(self._first_s, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ticket.release()
        self._calm_down()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._moved = False
        super().data_received(data)
        if self._held is not None:
            self._step_aside()  # the rest takes its time
        if self._moved:
            self._unread = 0
        else:
            self._unread += len(data)
            if self._unread > HEAD_BYTES_MAX and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()
        if self._whole:
            self._calm_down()
        elif self._patience is None:
            self._watch_time()

    def on_message_begin(self) -> None:
        self._whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._moved = True
        if self._first_s:
            self._first_s = 0
            self._calm_down()
        if self._may_be_quick():
            self._held = b""
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._moved = True
        if self._held is None:
            super().on_body(body)
            return
        self._held += body

    def on_message_complete(self) -> None:
        self._moved = self._whole = True
        if self._held is not None:
            begun = self._quick.begin(self.headers, self._held) if self._quick is not None else None
            if begun is not None:
                self._held, turn = None, _Turn()
                self.cycle = turn  # type: ignore[assignment]  # it behaves as one
                begun.reply.add_done_callback(lambda reply: self._answer(turn, begun))
                return
            self._step_aside()
        super().on_message_complete()

    # The quick way.

    def _may_be_quick(self) -> bool:
        parser = self.parser
        return (
            self._quick is not None
            and self.url == PATH
            and parser.get_method() == METHOD
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and not self.expect_100_continue
            and getattr(self.cycle, "response_complete", True)
        )

    def _step_aside(self) -> None:
        """Not quick after all: begin what was held back."""
        body, self._held = self._held, None
        super().on_headers_complete()
        if body:
            super().on_body(body)

    def _answer(self, turn: _Turn, begun: Begun) -> None:
        assert self._quick is not None
        answer = self._quick.answer(begun)
        turn.response_complete = True
        if not turn.disconnected:
            self.transport.send(answer)  # type: ignore[attr-defined]  # an Outlet
            if not turn.keep_alive:
                self.transport.close()
        self.on_response_complete()

    def _watch_time(self) -> None:
        self._patience = self.loop.call_later(self._request_s, self._too_slow)

    def _calm_down(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _too_slow(self) -> None:
        """No whole request in time: whoever is there says nothing, or says it too slowly."""
        self._patience = None
        self.transport.abort()
