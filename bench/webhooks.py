"""Webhooks over loopback: the channel against a bare aiohttp loop, one call each and in batches.

The receiver is another process that answers as fast as it can: it is not to be what is measured.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from statistics import median

import aiohttp

from bench.figure import Figure
from duetime.channels.webhook.channel import WebhookChannel, WebhookOptions
from duetime.clock import SystemClock
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.terms import Callback, Terms

COUNT = 20_000
BATCHED = 200_000
AT_A_TIME = 100
ROUNDS = 3
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def run() -> list[Figure]:
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=_receive, args=(theirs,), daemon=True)
    receiver.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/hook"
        bare, single, signed, batch = [], [], [], []
        for _ in range(ROUNDS):  # in turn, so that a busy machine is busy for all of them
            bare.append(asyncio.run(_bare(url)))
            single.append(asyncio.run(_channel(Callback(url), COUNT, AT_A_TIME)))
            signed.append(asyncio.run(_channel(Callback(url), COUNT, AT_A_TIME, "whsec_" + "A" * 32)))
            batch.append(asyncio.run(_channel(Callback(url, batch=True), BATCHED, 20_000)))
    finally:
        receiver.kill()
        receiver.join()
    note = f"{AT_A_TIME} at a time, median of {ROUNDS}"
    return [
        Figure("bare aiohttp loop", median(bare), "posts/s", note=note),
        Figure("webhooks, one call each", median(single), "intents/s", note=note),
        Figure("... against the bare loop", median(single) / median(bare), "ratio", floor=0.5),
        Figure("... signed", median(signed), "intents/s"),
        Figure("webhooks, batches of 200", median(batch), "intents/s", floor=30_000),
    ]


async def _bare(url: str) -> float:
    left = iter(range(COUNT))
    body = b'{"intentId":"i-123456","precisionTier":"STANDARD","delivery":1,"attempt":1,"payload":{"a":1}}'

    async def work(session: aiohttp.ClientSession) -> None:
        for _ in left:
            async with session.post(url, data=body, headers={"content-type": "application/json"}) as response:
                await response.read()

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        start = time.perf_counter()
        await asyncio.gather(*(work(session) for _ in range(AT_A_TIME)))
        return COUNT / (time.perf_counter() - start)


async def _channel(callback: Callback, count: int, at_a_time: int, secret: str = "") -> float:
    """Deliver so many; whenever some are answered, as many more, as the kernel's permits do."""
    terms = Terms(callback, "callback:")
    channel = WebhookChannel(WebhookOptions(secret=secret), SystemClock())
    finished = asyncio.Event()
    sent = done = 0

    def more(room: int) -> None:
        nonlocal sent
        for number in range(sent, min(sent + room, count)):
            channel.deliver(
                Deliver(f"i-{number}", 1, 1, terms, b'{"a":1}', 1_893_456_000_000, 3, 0, None, "")
            )
        sent = min(sent + room, count)
        channel.flush()

    def settle(settlements: list[Settlement]) -> None:
        nonlocal done
        assert all(type(each.outcome) is Done for each in settlements), settlements[0]
        done += len(settlements)
        more(len(settlements))
        if done == count:
            finished.set()

    channel.open(settle)
    start = time.perf_counter()
    more(at_a_time)
    await finished.wait()
    seconds = time.perf_counter() - start
    await channel.close()
    return count / seconds


class _Receiver(asyncio.Protocol):
    """Answers every request with an empty 200."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._write: Callable[[bytes], None] = transport.write
        self._text = b""

    def data_received(self, data: bytes) -> None:
        text = self._text + data if self._text else data
        while (end := text.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(text, 0, end)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(text) < size:
                break
            text = text[size:]
            self._write(_ANSWER)
        self._text = text


def _receive(pipe: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Receiver, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())
