"""A listening socket that counts connections before anything is read from them, with TLS or without.

The server of asyncio has no limit: a protocol sees its connection only after the TLS handshake, and a process
without file descriptors logs every failed `accept`. Here, `accept` asks the `Admission` first.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from functools import partial

from duetime.api.access.admission import Admission, Ticket
from duetime.limits import ACCEPT_PAUSE_MS, ACCEPTED_AT_ONCE, CLOSE_MS, HANDSHAKE_MS

_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Protocols = Callable[[Ticket], asyncio.Protocol]
"""Creates the protocol of one connection. The protocol releases the ticket when the connection is lost."""


class Listener:
    """Accepts connections from one socket within the limits."""

    def __init__(
        self,
        sock: socket.socket,
        admission: Admission,
        protocols: Protocols,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._socket = sock
        self._admission = admission
        self._protocols = protocols
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._joining: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Accept no more connections. Open ones stay; those in a TLS handshake are closed."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._socket)
            if self._pause is not None:
                self._pause.cancel()
            for joining in self._joining:
                joining.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._joining, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):  # then other tasks have their turn
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_FILES:
                    raise
                self._admission.out_of_files()
                self._rest()
                return
            ticket = self._admission.admit(address[0] if isinstance(address, tuple) else "")
            if ticket is None:
                sock.close()
                continue
            sock.setblocking(False)
            joining = self._loop.create_task(self._join(sock, ticket))
            self._joining.add(joining)
            joining.add_done_callback(partial(self._joined, sock, ticket))

    async def _join(self, sock: socket.socket, ticket: Ticket) -> None:
        """Pass the socket to the event loop, which does the TLS handshake if there is one."""
        if self._tls is None:
            await self._loop.connect_accepted_socket(lambda: self._protocols(ticket), sock)
        else:
            await self._loop.connect_accepted_socket(
                lambda: self._protocols(ticket),
                sock,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_MS / 1000,
                ssl_shutdown_timeout=CLOSE_MS / 1000,
            )

    def _joined(self, sock: socket.socket, ticket: Ticket, joining: asyncio.Task[None]) -> None:
        self._joining.discard(joining)
        error = None if joining.cancelled() else joining.exception()
        if joining.cancelled() or error is not None:
            ticket.release()
            self._loop.call_soon(sock.close)  # after its transport, if any
        if error is not None and not isinstance(error, OSError):  # failed TLS handshakes are not logged
            raise error

    def _rest(self) -> None:
        """Pause until file descriptors are free: waiting connections would keep the socket readable."""
        self._loop.remove_reader(self._socket)
        self._pause = self._loop.call_later(ACCEPT_PAUSE_MS / 1000, self.start)
