"""A receiver of webhooks that behaves as badly as it is told to, on a real socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from duetime.channels.webhook.channel import WebhookChannel, WebhookOptions
from duetime.channels.webhook.shares import host_share
from duetime.clock import Clock, SystemClock
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Outcome, Settlement
from duetime.protocol.terms import Callback, Terms, Tier


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    connection: int
    """Which connection it came over, counted from 1."""
    reader: asyncio.StreamReader

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def says(*parts: bytes) -> Answer:
    """Write these bytes."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return answer


def http(status: int = 200, body: bytes = b"", *headers: str) -> Answer:
    """A proper answer."""
    lines = [f"HTTP/1.1 {status} Whatever", f"content-length: {len(body)}", *headers]
    return says("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
    """No answer, until the other side gives up."""
    await request.reader.read()
    raise EOFError


async def hang_up(request: Request, writer: asyncio.StreamWriter) -> None:
    """No answer: the connection is closed."""
    raise EOFError


class Receiver:
    """Keeps the requests it got; `answer` decides what it does with each."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.connections = 0
        self.closed = 0
        """How many connections the other side, or we, have ended."""
        self.port = 0
        self._more = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def got(self, count: int) -> None:
        """Wait until so many requests came."""
        await self.until(lambda: len(self.requests) >= count)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._more:
            await asyncio.wait_for(self._more.wait_for(condition), 10)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while True:
                request = await _request(reader, number)
                async with self._more:
                    self.requests.append(request)
                    self._more.notify_all()
                await self.answer(request, writer)
                await writer.drain()
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            with suppress(OSError, RuntimeError):
                writer.close()
            async with self._more:
                self.closed += 1
                self._more.notify_all()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)


async def _request(reader: asyncio.StreamReader, number: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers: dict[str, str] = {}
    for line in head[1:]:
        if line:
            name, _, value = line.partition(":")
            assert name.lower() not in headers, f"{name} was sent twice"
            headers[name.lower()] = value.strip()
    assert "transfer-encoding" not in headers
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body, number, reader)


@asynccontextmanager
async def receiving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver that answers like this."""
    receiver = Receiver(answer)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await receiver.stop()


class Sending:
    """A channel whose outcomes are kept, and can be waited for."""

    def __init__(self, channel: WebhookChannel) -> None:
        self.channel = channel
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.waited_ms: dict[str, int] = {}
        self.order: list[str] = []
        self.turns = 0
        """How often outcomes were handed in."""
        self._more = asyncio.Event()
        channel.open(self._settle)

    def _settle(self, settlements: list[Settlement]) -> None:
        self.turns += 1
        for each in settlements:
            place = (each.id, each.delivery)
            assert place not in self.outcomes, f"{place} was answered twice"
            self.outcomes[place] = each.outcome
            self.waited_ms[each.id] = each.waited_ms
            self.order.append(each.id)
        self._more.set()

    def deliver(self, callback: Callback, *ids: str, **more: Any) -> None:
        """Deliver intents with these ids; `more` goes to `delivery`."""
        for id in ids:
            self.channel.deliver(delivery(callback, id, **more))
        self.channel.flush()

    async def send(self, callback: Callback, id: str = "i", **more: Any) -> Outcome:
        """Deliver one and wait for its outcome."""
        self.deliver(callback, id, **more)
        return await self.outcome(id, more.get("number", 1))

    async def outcome(self, id: str, number: int = 1) -> Outcome:
        await self.until(lambda: (id, number) in self.outcomes)
        return self.outcomes[id, number]

    async def answered(self, count: int) -> None:
        await self.until(lambda: len(self.outcomes) >= count)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._more.clear()
                await self._more.wait()


def delivery(
    callback: Callback,
    id: str = "i",
    *,
    number: int = 1,
    attempt: int = 1,
    payload: bytes = b'{"n":1}',
    timeout_ms: int = 10_000,
    deadline_ms: int = 0,
    tier: Tier = Tier.ULTRA,
    tags: dict[str, str] | None = None,
    traceparent: str | None = None,
) -> Deliver:
    terms = Terms(callback, "callback:", tier, timeout_ms=timeout_ms, tags=tags)
    return Deliver(id, number, attempt, terms, payload, 1_893_456_000_042, 7, deadline_ms, traceparent, "")


@asynccontextmanager
async def sending(
    clock: Clock | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    tracer: Any = None,
    on_call: Any = None,
    slots: Callable[[int], int] = host_share,
    **options: Any,
) -> AsyncIterator[Sending]:
    """A channel with these options, closed at the end with nothing left behind."""
    before = asyncio.all_tasks()
    channel = WebhookChannel(
        WebhookOptions(**options),
        clock or SystemClock(),
        tls=tls,
        tracer=tracer,
        on_call=on_call,
        slots=slots,
    )
    rig = Sending(channel)
    try:
        yield rig
    finally:
        await channel.close()
    assert channel.running() == 0
    ours = {task for task in asyncio.all_tasks() - before if "Host._run" in repr(task)}
    assert not ours, f"the channel left tasks behind: {ours}"
