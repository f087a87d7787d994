"""The webhook receiver of all tests, on a real socket.

`receiving` runs it on the loop of an asynchronous test, `receiving_in_thread` on its own loop in a thread.
`Hooks` is the receiver of synchronous tests: it keeps requests by path and answers each path as told.
"""

from __future__ import annotations

import asyncio
import queue
import ssl
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple

import msgspec

WAIT_S = 20


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
        self.host = "127.0.0.1"
        self.port = 0
        self.loop: asyncio.AbstractEventLoop
        """The loop it runs on, once it listens."""
        self._more = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return self.url_of("hook")

    def url_of(self, path: str) -> str:
        return f"http://{self.host}:{self.port}/{path}"

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
async def receiving(
    answer: Answer, tls: ssl.SSLContext | None = None, address: tuple[str, int] = ("127.0.0.1", 0)
) -> AsyncIterator[Receiver]:
    """A receiver that answers like this."""
    receiver = Receiver(answer)
    receiver.loop = asyncio.get_running_loop()
    server = await asyncio.start_server(receiver.serve, *address, ssl=tls)
    receiver.host, receiver.port = server.sockets[0].getsockname()
    try:
        yield receiver
    finally:
        server.close()
        await receiver.stop()


@contextmanager
def receiving_in_thread(answer: Answer, address: tuple[str, int] = ("127.0.0.1", 0)) -> Iterator[Receiver]:
    """A receiver that answers like this, for tests without a loop."""
    up: Future[tuple[Receiver, asyncio.Event]] = Future()

    async def run() -> None:
        async with receiving(answer, address=address) as receiver:
            stop = asyncio.Event()
            up.set_result((receiver, stop))
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    receiver, stop = up.result(WAIT_S)
    try:
        yield receiver
    finally:
        receiver.loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT_S)


class Say(NamedTuple):
    """An answer of one path."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Hooks:
    """Answers 200 unless `says` names other answers for a path (the last one stays), or the path is held."""

    def __init__(self, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self._address = address
        self._got: dict[str, queue.Queue[Request]] = defaultdict(queue.Queue)
        self._says: dict[str, list[Say]] = {}
        self._held: dict[str, asyncio.Event] = {}
        self._stack = ExitStack()
        self._receiver: Receiver

    def url(self, path: str) -> str:
        return self._receiver.url_of(path)

    def says(self, path: str, *answers: Say) -> str:
        """Give these answers, one after the other; returns the URL."""
        self._says[path] = list(answers)
        return self.url(path)

    def hold(self, path: str) -> str:
        """Answer only when `let_go` is called; returns the URL."""
        self._held[path] = asyncio.Event()
        return self.url(path)

    def let_go(self, path: str) -> None:
        self._receiver.loop.call_soon_threadsafe(self._held[path].set)

    def take(self, path: str, within_s: float = WAIT_S) -> Request:
        """The next request on this path."""
        return self._got[path].get(timeout=within_s)

    def count(self, path: str) -> int:
        """Requests on this path that were not taken yet."""
        return self._got[path].qsize()

    def __enter__(self) -> Hooks:
        self._receiver = self._stack.enter_context(receiving_in_thread(self._answer, self._address))
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        path = request.path.lstrip("/")
        self._got[path].put(request)
        held = self._held.get(path)
        if held is not None:
            await held.wait()
        says = self._says.get(path) or [Say()]
        say = says.pop(0) if len(says) > 1 else says[0]
        headers = [f"{name}: {value}" for name, value in say.headers.items()]
        await http(say.status, say.body, *headers)(request, writer)
