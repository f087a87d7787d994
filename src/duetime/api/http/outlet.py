"""The output side of a connection: closing without losing the last response, and an end for clients that do
not read."""

from __future__ import annotations

import asyncio

from duetime.limits import CLOSE_MS, UNREAD_BYTES_MIN


class Outlet:
    """Writes to a transport and closes it."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, unread_s: float
    ) -> None:
        """`unread_s`: how long written bytes may stay unread."""
        self._transport = transport
        self._loop = loop
        self._unread_s = unread_s
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0
        """Unread bytes when the timer was set."""
        self._ended = False
        """Nothing more can be written."""
        self.client_sends = False
        """The client is still sending a request."""

    def write(self, data: bytes) -> None:
        if not self._ended:
            self._transport.write(data)

    def close(self) -> None:
        """Close when everything is read, or when the time for reading is over.

        If the client is still sending, closing would reset the connection, and the client would lose the
        response. So only the output is closed first, and the client gets a moment to read it."""
        if self._ended:
            return  # a second close would break a TLS transport
        self._ended = True
        if self.client_sends and self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
            self._loop.call_later(CLOSE_MS / 1000, self._transport.abort)
            return
        self._transport.close()
        if self._timer is None and self._transport.get_write_buffer_size():
            self.watch_reader()

    def abort(self) -> None:
        """Close immediately; unsent data is lost."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._ended or self._transport.is_closing()

    def lost(self) -> None:
        """The connection is closed."""
        self._ended = True
        self._cancel()

    # Clients that do not read.

    def watch_reader(self) -> None:
        """Much is written and not read: close the connection unless the client reads soon."""
        self._cancel()
        self._left = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(self._unread_s, self._check)

    def trust_reader(self) -> None:
        """Enough was read: stop the timer. While the connection is being closed, everything must be read."""
        if not self._transport.is_closing():
            self._cancel()

    def _check(self) -> None:
        self._timer = None
        left = self._transport.get_write_buffer_size()
        if left > 0 and self._left - left < UNREAD_BYTES_MIN:
            self._transport.abort()
        elif left:
            self.watch_reader()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
