"""What a connection writes to: answers in one packet, and an end for clients that do not read them."""

from __future__ import annotations

import asyncio
from typing import Any

from duetime.limits import CLOSE_MS, UNREAD_BYTES_MIN, UNREAD_MS


class Outlet:
    """A transport on which everything written in one pass of the loop goes out at once: the head and the body
    of an answer are one packet, for which its reader wakes up once."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        unread_s: float = UNREAD_MS / 1000,
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._unread_s = unread_s
        self._parts: list[bytes] = []
        self._patience: asyncio.TimerHandle | None = None
        self._left = 0
        self._closed = False
        self._ended = False
        """The client was told that nothing more comes."""
        self.comes_more = False
        """The client is still sending a request."""

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def send(self, data: bytes) -> None:
        """Out at once: it is whole."""
        self.flush()
        if not self._ended:
            self._transport.write(data)

    def close(self) -> None:
        """Close when everything is read, or its reader has had its time. A client that is still sending would
        lose the answer: it is told that this is the end, and has a moment to read it."""
        if self._closed:
            return  # a second close would take a TLS transport apart
        self.flush()
        if self.comes_more and self._transport.can_write_eof() and not self._transport.is_closing():
            self._ended, self.comes_more = True, False
            self._transport.write_eof()
            self._loop.call_later(CLOSE_MS / 1000, self._transport.abort)
            return
        self._closed = True
        self._transport.close()
        if self._patience is None and self._transport.get_write_buffer_size():
            self.watch_reader()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def flush(self) -> None:
        """Out with what was written in this pass of the loop."""
        if self._parts:
            parts, self._parts = self._parts, []
            if not self._ended:
                self._transport.write(b"".join(parts))

    # Clients that do not read.

    def watch_reader(self) -> None:
        """Too much waits to be read: cut the connection unless it is read soon."""
        self.stop()
        self._left = self._transport.get_write_buffer_size()
        self._patience = self._loop.call_later(self._unread_s, self._look)

    def trust_reader(self) -> None:
        """Enough was read. A connection that is being closed must be read to its end."""
        if not self._transport.is_closing():
            self.stop()

    def lost(self) -> None:
        """The connection is gone."""
        self._closed = True
        self.stop()

    def stop(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _look(self) -> None:
        self._patience = None
        left = self._transport.get_write_buffer_size()
        if left > 0 and self._left - left < UNREAD_BYTES_MIN:
            self._transport.abort()
        elif left:
            self.watch_reader()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
