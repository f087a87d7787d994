"""One HTTP request and its response: the body as it arrives, and the response as it is written.

A connection creates an `Exchange` for each request and passes it the body. A handler reads the body from it
and responds through it, with one whole `Answer` or with a stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from msgspec import Struct

from duetime.limits import ANSWER_PIECE_BYTES

JSON: Final = b"application/json"
_STATUS_LINES: Final = {
    each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus
}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"connection: close\r\n"

Headers = list[tuple[bytes, bytes]]
"""Names in lower case."""


class Head(Struct):
    """The head of a request."""

    method: str
    path: str
    """Decoded."""
    query: bytes
    headers: Headers
    version: str = "1.1"


class Answer(Struct):
    """A whole response."""

    body: bytes
    status: int = 200
    headers: Headers = []
    media_type: bytes = JSON
    ended: Callable[[bool], None] | None = None
    """Called once: whether the whole response was written. False: the client has gone."""


def encoded(answer: Answer, *, close: bool = False, body: bytes | None = None) -> bytes:
    """A response as bytes. `close`: the last one of its connection. `body`: sent instead of the whole
    body."""
    return b"%bcontent-type: %b\r\ncontent-length: %d\r\n%b%b\r\n%b" % (
        _STATUS_LINES[answer.status],
        answer.media_type,
        len(answer.body),
        _lines(answer.headers),
        _CLOSE if close else b"",
        answer.body if body is None else body,
    )


def _lines(headers: Headers) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % each for each in headers])
    assert lines.count(b"\n") == lines.count(b"\r") == len(headers), "a header has a line break in it"
    return lines


class ClientGone(Exception):
    """The connection was closed before the body was complete."""


class Carrier(Protocol):
    """The connection, for an exchange."""

    def write(self, data: bytes) -> None:
        """Send these bytes."""

    async def drain(self) -> None:
        """Wait until the client has read most of what was written."""

    def resume_reading(self) -> None:
        """The exchange waits for more of its body, or for the end of the connection."""

    def finished(self, turn: RequestTurn) -> None:
        """The response is written."""


class RequestTurn:
    """The turn of one request on its connection. The fast path needs no more."""

    answered = False
    """The whole response is written."""
    gone = False
    """Nobody waits for the response: the connection is lost, or the body will never be complete."""
    keep_alive = True
    """The connection stays open after the response."""
    whole = True
    """The whole body has arrived."""

    def lose(self) -> None:
        """Nobody waits for the response any more."""
        self.gone = True

    def half_close(self) -> None:
        """The client sends no more; it still reads."""


class Exchange(RequestTurn):
    """A request that a handler responds to."""

    def __init__(
        self, head: Head, carrier: Carrier, *, keep_alive: bool = True, expects_continue: bool = False
    ) -> None:
        self.head = head
        self.keep_alive = keep_alive
        self.whole = False
        self.started = False
        """The head of the response is written."""
        self._carrier = carrier
        self._expects_continue = expects_continue
        self._body = bytearray()
        """What has arrived of the body and is not read yet."""
        self._half_closed = False
        self._changed = asyncio.Event()

    # Called by the connection.

    def feed(self, part: bytes) -> int:
        """A part of the body has arrived. Returns the number of unread bytes."""
        if self.answered or self.gone:
            return 0  # the rest of the body is skipped
        self._body += part
        self._changed.set()
        return len(self._body)

    def complete(self) -> None:
        """The whole body has arrived."""
        self.whole = True
        self._changed.set()

    def lose(self) -> None:
        self.gone = True
        self._changed.set()

    def half_close(self) -> None:
        self._half_closed = True
        self._changed.set()

    # The body, for the handler.

    async def read(self) -> bytes:
        """The next part of the body; empty at its end. Raises `ClientGone`."""
        if self._expects_continue:
            self._expects_continue = False
            self._carrier.write(_CONTINUE)
        while not (self._body or self.whole or self.gone):
            self._carrier.resume_reading()
            await self._change()
        if self.gone:
            raise ClientGone
        part = bytes(self._body)
        self._body.clear()
        return part

    async def closed(self) -> None:
        """Wait until the client has gone, or sends no more. For streams, which end then."""
        self._carrier.resume_reading()
        while not (self.gone or self.answered or self._half_closed):
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    # The response, by the handler.

    async def respond(self, answer: Answer) -> None:
        """Send a whole response. A large one is sent in pieces, each after the one before is mostly read."""
        if not await self._may_write():
            return
        self.started = True
        body = b"" if self.head.method == "HEAD" else answer.body
        self._carrier.write(encoded(answer, close=not self.keep_alive, body=body[:ANSWER_PIECE_BYTES]))
        for start in range(ANSWER_PIECE_BYTES, len(body), ANSWER_PIECE_BYTES):
            if not await self._may_write():
                return
            self._carrier.write(body[start : start + ANSWER_PIECE_BYTES])
        self._finish()

    async def start_stream(self, media_type: bytes, headers: Headers, first: bytes = b"") -> None:
        """Start a response of unknown length; its head and `first` are sent together. HTTP/1.0 has no chunks:
        there it ends with the connection."""
        if not await self._may_write():
            return
        self.started = True
        lines = [(b"content-type", media_type), *headers]
        if self._chunked:
            lines.append((b"transfer-encoding", b"chunked"))
        closes = b"" if self.keep_alive else _CLOSE
        part = self._part(first)
        self._carrier.write(b"%b%b%b\r\n%b" % (_STATUS_LINES[200], _lines(lines), closes, part))

    async def write(self, part: bytes) -> None:
        """Send more of the stream, after the client has read most of the earlier part."""
        if (encoded := self._part(part)) and await self._may_write():
            self._carrier.write(encoded)

    def _part(self, part: bytes) -> bytes:
        """A part of the stream as it is sent."""
        if not part or self.head.method == "HEAD":
            return b""
        return b"%x\r\n%b\r\n" % (len(part), part) if self._chunked else part

    async def end_stream(self) -> None:
        """The stream is complete."""
        if not await self._may_write():
            return
        if self._chunked:
            self._carrier.write(b"0\r\n\r\n")
        self._finish()

    async def _may_write(self) -> bool:
        """Wait until most of the earlier part is read. Returns whether the client still waits."""
        await self._carrier.drain()
        return not self.gone

    @property
    def _chunked(self) -> bool:
        return self.head.version != "1.0" and self.head.method != "HEAD"

    def _finish(self) -> None:
        self.answered = True
        self._changed.set()
        self._carrier.finished(self)
