"""What the benchmarks of the server share: the server in a process, clients that cost little, a receiver."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)(?: and grpc://127\.0\.0\.1:(\d+))?")


class Server:
    """`duetime serve` on a folder that goes away afterwards."""

    def __init__(self, **settings: object) -> None:
        self._settings = {f"DUETIME_{name.upper()}": str(value) for name, value in settings.items()}

    def __enter__(self) -> Server:
        self._folder = tempfile.TemporaryDirectory(prefix="duetime-bench-", dir=Path.cwd())
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "duetime",
                "serve",
                "--data",
                self._folder.name,
                "--port",
                "0",
                "--grpc-port",
                "0",
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self._settings},
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = _LISTENS.search(line)
            if found:
                self.port, self.grpc_port = int(found.group(1)), int(found.group(2) or 0)
                break
        else:
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.communicate()
        self._folder.cleanup()

    def cpu_s(self) -> float:
        """Seconds of CPU it has used so far."""
        return cpu_s(self._process.pid)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def in_process(target: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    """A function in a process of its own, and the pipe to talk to it."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=target, args=(theirs, *arguments), daemon=True
    )
    process.start()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


# Clients.


def request(method: str, path: str, body: bytes, **headers: str) -> bytes:
    """The bytes of a request."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class _Client(asyncio.Protocol):
    """Sends a request whenever the one before is answered."""

    def __init__(self, next_request: Callable[[], bytes | None], done: Callable[[bytes], None]) -> None:
        self._next = next_request
        self._done = done
        self._buffer = bytearray()
        self._end = 0
        """Where the answer ends that is being read, once its head is there."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = self._next()
        if request is None:
            self._transport.close()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        if not self._end:
            head = buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            found = _LENGTH.search(buffer, 0, head)
            self._end = head + 4 + (int(found.group(1)) if found else 0)
        if len(buffer) < self._end:
            return
        answer = bytes(buffer[: self._end])
        del buffer[: self._end]
        self._end = 0
        self._done(answer)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def load(port: int, connections: int, requests: Iterator[bytes]) -> tuple[int, float]:
    """All requests over so many connections; how many were answered with 2xx, and the seconds it took."""
    good = 0

    def done(answer: bytes) -> None:
        nonlocal good
        good += answer[9:10] == b"2"

    loop = asyncio.get_running_loop()
    began_s = time.perf_counter()
    clients = []
    for _ in range(connections):
        _, client = await loop.create_connection(
            lambda: _Client(lambda: next(requests, None), done), "127.0.0.1", port
        )
        clients.append(client.closed)
    await asyncio.gather(*clients)
    return good, time.perf_counter() - began_s


# A receiver.


class _Receiver(asyncio.Protocol):
    """Answers each request after the delay that its path asks for (/5 waits 5 ms), and notes when it came."""

    def __init__(self, note: Callable[[float, bytes, bytes], None]) -> None:
        self._note = note
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (head := self._buffer.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._buffer, 0, head)
            end = head + 4 + (int(found.group(1)) if found else 0)
            if len(self._buffer) < end:
                return
            top, body = self._buffer[:head], self._buffer[head + 4 : end]
            self._buffer = self._buffer[end:]
            self._note(time.time(), top, body)
            delay_ms = int(top.split(b" ", 2)[1].rpartition(b"/")[2] or 0)
            if delay_ms:
                asyncio.get_running_loop().call_later(delay_ms / 1000, self._answer)
            else:
                self._answer()

    def _answer(self) -> None:
        self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def listen(note: Callable[[float, bytes, bytes], None]) -> int:
    """Start a receiver in this process; its port."""
    server = await asyncio.get_running_loop().create_server(lambda: _Receiver(note), "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    return port
