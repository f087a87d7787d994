"""The server of `duetime serve`: sockets, the engine, and a graceful shutdown.

The port answers before the engine has recovered: health shows it, and reads use the last checkpoint. A
shutdown accepts nothing new, finishes running work within the time limit, returns the rest, and writes
everything to disk. A second signal stops immediately. If the engine stops itself, so does the process: its
supervisor restarts it, and it recovers from the log.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import shlex
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from duetime.api.access.admission import Admission
from duetime.api.access.auth import Gate
from duetime.api.http.connection import ServerConnections
from duetime.api.http.fast_path import FastPath
from duetime.api.http.listener import Listener
from duetime.api.http.router import Router
from duetime.engine.engine import Engine
from duetime.errors import BadConfig
from duetime.limits import ANSWERS_MS, BACKLOG
from duetime.settings import ServerSettings

_logger = logging.getLogger("duetime")


class Side(Protocol):
    """An additional server beside HTTP: the gRPC port."""

    async def start(self) -> str:
        """Start. Returns the address."""

    async def stop(self, within_s: float) -> None:
        """Stop within this time."""


class Parts(Struct):
    """The parts of a server."""

    settings: ServerSettings
    engine: Engine
    router: Router
    gate: Gate
    fast_path: FastPath
    admission: Admission
    """The admission of connections to the HTTP port."""
    ready: Callable[[Engine], None]
    """Called when recovery is done."""
    stopping: Callable[[], None]
    """Called when no new work is accepted: streams end."""
    stopped: Callable[[], None]
    """Called when everything is on disk."""
    sides: list[Side] = []
    drain_ms: int = 30_000


class Listening(Struct):
    """The addresses of a started server."""

    http: str
    others: list[str]
    asks_for_tokens: bool = False


class Server:
    """One process: HTTP, gRPC if it is installed, and the engine."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stop: asyncio.Event = asyncio.Event()
        self.failure: BaseException | None = None

    @property
    def router(self) -> Router:
        """The HTTP routes."""
        return self._parts.router

    def stop(self) -> None:
        """Start the shutdown, like a signal."""
        if self._stop.is_set():
            _logger.warning("Stopped immediately; running deliveries are recovered at the next start.")
            raise SystemExit(1)
        _logger.info(
            "Stopping: running requests and deliveries have up to %g s.", self._parts.drain_ms / 1000
        )
        self._stop.set()

    async def run(self, started: Callable[[Listening], object] | None = None) -> None:
        """Serve until stopped."""
        parts = self._parts
        tls = _tls_context(parts.settings)
        with bind(parts.settings.host, parts.settings.port) as sock:
            connections = ServerConnections(parts.router, parts.fast_path)
            listener = Listener(sock, parts.admission, connections.make, tls)
            listener.start()
            try:
                await self._until_stop(sock, started)
            finally:
                parts.stopping()
                listener.close()
                sock.close()
                await self._wind_down(listener, connections)
        if self.failure is not None:
            raise self.failure

    async def _until_stop(self, sock: socket.socket, started: Callable[[Listening], object] | None) -> None:
        parts = self._parts
        scheme = "https" if parts.settings.tls_cert else "http"
        failing: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        parts.engine.on_failure = lambda error: None if failing.done() else failing.set_result(error)
        await parts.engine.start()
        parts.ready(parts.engine)
        others = [await side.start() for side in parts.sides]
        if started is not None:
            started(Listening(f"{scheme}://{_shown(sock)}", others, not parts.gate.open()))
        stopping = asyncio.create_task(self._stop.wait())
        ends: list[asyncio.Future[Any]] = [stopping, failing]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            self.failure = failing.result()
        stopping.cancel()

    async def _wind_down(self, listener: Listener, connections: ServerConnections) -> None:
        parts = self._parts
        loop = asyncio.get_running_loop()
        until_s = loop.time() + parts.drain_ms / 1000

        def left_s() -> float:
            return max(0.1, until_s - loop.time())

        await asyncio.gather(
            listener.wait_closed(),
            connections.close(_answers_s(parts.drain_ms)),
            *(side.stop(left_s()) for side in parts.sides),
            return_exceptions=True,
        )
        await parts.engine.close(round(left_s() * 1000))
        parts.stopped()


def _tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise BadConfig("server.tls_cert and server.tls_key must be set together.", hint="Set both or none.")
    if not settings.tls_cert:
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ValueError) as error:
        raise BadConfig(
            f"TLS cannot be set up: {error}.", hint="Check server.tls_cert and server.tls_key."
        ) from error
    return context


def _answers_s(drain_ms: int) -> float:
    """How long responses may take during a shutdown: a part of its time."""
    return max(1.0, min(ANSWERS_MS, drain_ms // 2) / 1000)


def check_exposure(host: str, gate: Gate, folder: Path) -> None:
    """Refuse to listen on a public address without tokens."""
    if is_loopback(host) or not gate.open():
        return
    raise BadConfig(
        f"{host} can be reached from other machines, and there is no token.",
        hint=f"Create one with `duetime token new --role admin --data {shlex.quote(str(folder))}`, "
        "or start with --insecure if you must.",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises an error with a hint."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise BadConfig(
            f"There is no address {host!r}: {error.strerror}.", hint="Correct server.host."
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise BadConfig(
            f"Port {port} of {host} cannot be used: {error.strerror}.",
            hint="Another server may be running. Choose another port with --port; 0 picks a free one "
            '(and another --grpc-port and --data). With make: make run ARGS="--port 0 ...".',
        ) from error
    return listener


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def on_signals(stop: Callable[[], None]) -> None:
    """Stop the server on SIGTERM and SIGINT; the first time gracefully."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
