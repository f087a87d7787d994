"""A worker's connection to one server. It runs on its own event loop, in its own thread.

So heartbeats continue even if a function blocks the event loop of the functions, and its lease is kept.
Messages from other threads are collected and sent together. A broken connection is opened again; unconfirmed
outcomes are sent again, and the server counts each at most once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from typing import Any, Protocol
from urllib.parse import urlsplit

import grpc
import grpc.aio

from duetime.client.execution.reports import Word
from duetime.client.http.address import meant_url
from duetime.client.worker.connection_log import ConnectionLog
from duetime.client.worker.delivery_codec import Unpacker, chunks, pack, reports
from duetime.client.worker.worker_options import ServerAccess, WorkerOptions
from duetime.errors import BadConfig, Forbidden, NoToken
from duetime.limits import (
    EARLIER_NAMES_MAX,
    GRPC_KEEPALIVE_MS,
    GRPC_KEEPALIVE_TIMEOUT_MS,
    GRPC_PORT,
    WELCOME_S,
    WORKER_RECONNECT_S,
    WORKER_RECONNECT_S_MAX,
)
from duetime.protocol.effect import Abort, Deliver, DeliveryKey
from duetime.protocol.outcome import Settlement
from duetime.v1 import deliveries_pb2 as pb
from duetime.v1.stub import DuetimeStub

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    # A dead connection is noticed within half a minute, even if it is idle.
    ("grpc.keepalive_time_ms", GRPC_KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", GRPC_KEEPALIVE_TIMEOUT_MS),
    ("grpc.http2.max_pings_without_data", 0),
    # No shared connections, and our own back-off instead of the library's.
    ("grpc.use_local_subchannel_pool", 1),
]
_logger = logging.getLogger("duetime.worker")


class Taker(Protocol):
    """Receives the messages of a link. Called in the link's thread."""

    def opened(self, link: Link, credits_max: int) -> None: ...

    def closed(self, link: Link, number: int) -> None: ...

    def arrived(self, link: Link, deliveries: list[Deliver]) -> None: ...

    def aborted(self, link: Link, aborts: list[tuple[Abort, str]]) -> None: ...

    def refused(self, link: Link, error: Exception) -> None: ...


class Link:
    """Keeps one server connected, from `run` to `finish`."""

    def __init__(self, server: ServerAccess, options: WorkerOptions, taker: Taker) -> None:
        self.address = server.address
        self.credits: dict[str, int] = {}
        """Owned by the taker: deliveries asked for that have not arrived, by lane."""
        self.credits_max = 0
        self._token = server.token
        self._log = ConnectionLog(server.address, server.http)
        self._options = options
        self._taker = taker
        self._outbox: deque[tuple[list[Settlement], dict[str, int]]] = deque()
        self._nudged = False
        self._number = 0
        self._unanswered: dict[int, list[Settlement]] = {}
        self._words: dict[DeliveryKey, Word] = {}
        self._unpacker = Unpacker()
        self._earlier: deque[str] = deque(maxlen=EARLIER_NAMES_MAX)
        """The names of this link's connections: it may settle their deliveries."""
        self.holding: tuple[int, list[DeliveryKey]] = (0, [])
        """Owned by the taker: the deliveries that it still had when a connection ended, and the number of
        that connection. Another thread sets it, perhaps after the next connection has ended too; then it does
        not apply to that one."""
        self._ends = 0
        self._beat: asyncio.TimerHandle | None = None
        self._beat_due = False
        self._connected = False
        self._ever = False
        self._drain = self._drain_said = self._ending = self._stay = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._over = asyncio.Event()
        self._left = asyncio.Event()

    # From any thread.

    def send(self, settlements: list[Settlement], credits: dict[str, int]) -> None:
        """Queue outcomes and credits; they are sent soon."""
        self._outbox.append((settlements, credits))
        if not self._nudged and self._loop is not None:
            self._nudged = True
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._nudge)

    # On the event loop of the link.

    def report(self, words: dict[DeliveryKey, Word]) -> None:
        """Queue progress reports; they are sent soon."""
        if self._connected:
            self._words |= words
            self._news.set()

    async def run(self) -> None:
        """Connect and reconnect until it is finished."""
        self._loop = asyncio.get_running_loop()
        wait_s = WORKER_RECONNECT_S
        while True:
            began_s = self._loop.time()
            try:
                reason = await self._connection()
            except (OSError, grpc.aio.AioRpcError, grpc.aio.UsageError, TimeoutError) as error:
                reason = repr(error)
            finally:
                self._down()
            if self._over.is_set():
                return
            if self._loop.time() - began_s > WORKER_RECONNECT_S_MAX:
                wait_s = WORKER_RECONNECT_S
            await self._log.failed(reason)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s * random.uniform(0.7, 1.3)):
                    await self._over.wait()
                    return
            wait_s = min(2 * wait_s, WORKER_RECONNECT_S_MAX)

    def drain(self) -> None:
        """Ask for no more deliveries."""
        self._drain = True
        self._news.set()

    async def finish(self, within_s: float, *, stay: bool = False) -> None:
        """Send the remaining messages, await their confirmation, and disconnect; or stay to the end."""
        self._ending, self._stay = True, stay
        self._over.set()
        self._news.set()
        if self._connected:
            self._left.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._left.wait()

    async def _connection(self) -> str:
        """Run one connection to its end. Returns the status of the server."""
        scheme, _, place = self.address.partition("://")
        if scheme == "grpcs":
            channel = grpc.aio.secure_channel(place, grpc.ssl_channel_credentials(), _OPTIONS)
        else:
            channel = grpc.aio.insecure_channel(place, _OPTIONS)
        async with channel:
            metadata = () if self._token is None else (("x-duetime-token", self._token),)
            call: Any = DuetimeStub(channel).Deliveries(metadata=metadata)
            hello = _hello(self._options)
            if self._earlier:
                self._name_earlier(hello)
            writer: asyncio.Task[None] | None = None
            try:
                async with asyncio.timeout(WELCOME_S):
                    await call.write(pb.ClientMessage(hello=hello))
                    first = await call.read()
                if first is not grpc.aio.EOF:
                    self._welcome(first.welcome)
                    writer = asyncio.ensure_future(self._write(call))
                    await self._read(call)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                pass  # the status of the call has the reason
            finally:
                if writer is not None:
                    writer.cancel()
                    await asyncio.gather(writer, return_exceptions=True)
            code, details = await call.code(), await call.details()
            self._check(code, details)
            return "" if code is grpc.StatusCode.OK else f"{code.name.lower()}: {details}"

    def _name_earlier(self, hello: pb.Hello) -> None:
        """Add the names of this link's earlier connections, and the deliveries that are left of them."""
        hello.earlier.extend(self._earlier)
        number, held = self.holding
        if number != self._ends:
            return
        waiting = tuple(self._outbox)  # in one step: another thread adds to it
        outcomes = [*self._unanswered.values(), *(settlements for settlements, _ in waiting)]
        places = {*held, *((each.id, each.delivery) for part in outcomes for each in part)}
        hello.holding.SetInParent()
        for id, delivery in sorted(places):
            hello.holding.held.add(intent_id=id, delivery=delivery)

    def _check(self, code: grpc.StatusCode, details: str) -> None:
        """Raise if the server refuses the token: a retry would not help."""
        if self._ever or code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
            return
        kind = NoToken if code is grpc.StatusCode.UNAUTHENTICATED else Forbidden
        self._over.set()
        self._taker.refused(self, kind(f"{self.address} refuses this worker: {details}"))

    def _welcome(self, welcome: pb.Welcome) -> None:
        self._log.connected(welcome.consumer)
        self._earlier.append(welcome.consumer)
        self._ever = self._connected = True
        self._drain_said = False
        self._beat_ms = welcome.heartbeat_ms
        self._arm()
        # Unconfirmed outcomes are sent again, before anything else.
        again = [each for part in self._unanswered.values() for each in part]
        self._unanswered.clear()
        while self._outbox:  # another thread may add to it in the meantime
            again += self._outbox.popleft()[0]
        self._outbox.appendleft((again, {}))
        self._news.set()
        self._taker.opened(self, welcome.credits_max)

    def _down(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        if self._connected:
            self._connected = False
            self._words.clear()
            self._ends += 1
            self._taker.closed(self, self._ends)
        self._left.set()

    async def _read(self, call: Any) -> None:
        while (message := await call.read()) is not grpc.aio.EOF:
            match message.WhichOneof("message"):
                case "deliveries":
                    lease_ms = self._unpacker.lease_ms
                    self._taker.arrived(self, self._unpacker.unpack(message.deliveries))
                    if self._unpacker.lease_ms != lease_ms:
                        self._arm()
                case "ack_results":
                    self._answered(message.ack_results)
                case "aborts":
                    aborts = [
                        (Abort(each.intent_id, each.delivery, ""), each.reason)
                        for each in message.aborts.aborts
                    ]
                    self._taker.aborted(self, aborts)
                case "going_away":
                    _logger.info("%s is stopping; it still accepts outcomes for a while.", self.address)

    def _answered(self, results: pb.AckResults) -> None:
        self._unanswered.pop(results.number, None)
        for each in results.stale:
            _logger.warning(
                "The outcome of intent %s, delivery %d, came too late and was refused: "
                "the delivery had been taken back.",
                each.intent_id,
                each.delivery,
            )
        if self._ending and not self._unanswered:
            self._news.set()

    async def _write(self, call: Any) -> None:
        try:
            await self._write_all(call)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # the connection is lost, and the reader gets the reason
        except Exception:
            _logger.exception("The connection to %s is closed after an error.", self.address)
            call.cancel()

    async def _write_all(self, call: Any) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            self._nudged = False
            if self._beat_due:
                self._beat_due = False
                await call.write(pb.ClientMessage(heartbeat=pb.Heartbeat()))
            if self._outbox:
                await self._empty(call)
            if self._words:
                words, self._words = self._words, {}
                for message in reports(words):
                    await call.write(message)
            if self._drain and not self._drain_said:
                self._drain_said = True
                await call.write(pb.ClientMessage(drain=pb.Drain()))
            if self._ending and not self._unanswered and not self._outbox:
                if not self._stay:
                    await call.done_writing()
                    return
                self._left.set()

    async def _empty(self, call: Any) -> None:
        settlements: list[Settlement] = []
        credits: dict[str, int] = {}
        while self._outbox:
            some, more = self._outbox.popleft()
            settlements += some
            for queue, count in more.items():
                credits[queue] = credits.get(queue, 0) + count
        parts = list(chunks(settlements))
        first = self._number + 1
        self._number += len(parts)
        # All are recorded before the first is written, so that a broken connection loses none.
        self._unanswered.update(enumerate(parts, first))
        for number, part in enumerate(parts, first):
            message = pack(part)
            message.acks.number = number
            if part[-1] is settlements[-1]:
                message.acks.credits.extend(_credits(credits))
            await call.write(message)
        if not settlements and credits and not self._drain:
            await call.write(pb.ClientMessage(credits=pb.Credits(credits=_credits(credits))))

    def _nudge(self) -> None:
        self._nudged = False
        self._news.set()

    # Heartbeats: three within the shortest lease.

    def _arm(self) -> None:
        assert self._loop is not None
        if self._beat is not None:
            self._beat.cancel()
        lease_ms = self._unpacker.lease_ms
        every_ms = min(self._beat_ms, max(1, lease_ms // 3)) if lease_ms else self._beat_ms
        self._beat = self._loop.call_later(every_ms / 1000, self._alive)

    def _alive(self) -> None:
        self._beat_due = True
        self._news.set()
        self._arm()


def _credits(credits: dict[str, int]) -> list[pb.Credit]:
    return [pb.Credit(source=_source(lane), credits=count) for lane, count in credits.items() if count]


def _source(lane: str) -> pb.Source:
    kind, _, name = lane.partition(":")
    return pb.Source(queue=name) if kind == "task" else pb.Source(entity=name)


def _hello(options: WorkerOptions) -> pb.Hello:
    hello = pb.Hello(consumer=options.name, ack_mode=pb.ACK_MODE_MANUAL)
    hello.credits.extend(pb.Credit(source=_source(lane)) for lane in options.sources)
    for each in options.functions:
        function = pb.Function(name=each.name, signature=each.signature, schema=each.schema.decode())
        if each.entity is not None:
            function.entity = each.entity
        else:
            function.queue = each.queue or ""
        hello.functions.append(function)
    return hello


def address_of(url: str, grpc_port: int | None) -> str:
    """The gRPC address of a server: as given (grpc://), or from its HTTP address."""
    hint = "Write it as http://localhost:7928 or grpc://localhost:7929."
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadConfig(f"{url!r} is not the address of a server: {error}.", hint=hint) from error
    host = parts.hostname
    if not host or parts.scheme not in ("http", "https", "grpc", "grpcs"):
        if (meant := meant_url(url)) is not None:
            hint = f"Write {meant}."
        raise BadConfig(f"{url!r} is not the address of a server.", hint=hint)
    host = f"[{host}]" if ":" in host else host
    if parts.scheme.startswith("grpc"):
        if port is None:
            raise BadConfig(f"{url!r} has no port.", hint=hint)
        return f"{parts.scheme}://{host}:{port}"
    number = grpc_port if grpc_port is not None else GRPC_PORT if port is None else port + 1
    return f"{'grpcs' if parts.scheme == 'https' else 'grpc'}://{host}:{number}"
