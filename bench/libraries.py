"""What we wrote ourselves against the library that could replace it: `python -m bench.libraries`.

In turn, so that a busy machine is busy for both. The figures stand in docs/dependencies.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from itertools import repeat
from multiprocessing.connection import Connection
from statistics import median

import aiohttp

from bench.serve import cpu_s, in_process, load, request
from duetime.client.http.transport import Request, Transport

ROUNDS = 5
ONE_BY_ONE, CALLERS, EACH = 3_000, 64, 150
POSTS = 8_000

INTENT = json.dumps(
    {
        "delayMs": 86_400_000,
        "ackLevel": "ASYNC",
        "callback": {"url": "http://localhost:9/hook"},
        "payload": {"order": 12345, "customer": "c-678"},
    }
).encode()
Send = Callable[[], Awaitable[object]]


def serve(pipe: Connection, fast: bool) -> None:
    """A server; without its fast path if told so."""
    from duetime import serving
    from duetime.api.http.connection import ServerConnection as HttpConnection
    from duetime.config import Config
    from duetime.settings import DataSettings, ServerSettings

    if not fast:
        HttpConnection._may_be_fast = lambda self: False  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
        config = Config(data=DataSettings(dir=folder), server=ServerSettings(port=0, grpc_port=0))
        server = serving.make(config)
        asyncio.run(server.run(lambda where: pipe.send((int(where.http.rpartition(":")[2]), os.getpid()))))


async def http_clients(port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    ours = Transport(url)
    await ours.open()
    one = Request("POST", "/v1/intents", body=INTENT, named=False)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    async with aiohttp.ClientSession(url, headers=headers) as session:

        async def theirs() -> bytes:
            async with session.post("/v1/intents", data=INTENT) as answer:
                assert answer.status == 201
                return await answer.read()

        sends: dict[str, Send] = {"ours": lambda: ours.send(one), "aiohttp": theirs}
        for callers, each in ((1, ONE_BY_ONE), (CALLERS, EACH)):
            rates: dict[str, list[float]] = {name: [] for name in sends}
            cpu: dict[str, list[float]] = {name: [] for name in sends}
            for _ in range(ROUNDS):
                for name, send in sends.items():
                    used_s = time.process_time()
                    rates[name].append(await _rate(send, callers, each))
                    cpu[name].append((time.process_time() - used_s) * 1e6 / (callers * each))
            for name in sends:
                _print(
                    f"HTTP client, {callers} callers, {name}",
                    rates[name],
                    f"{median(cpu[name]):.0f} us of CPU each",
                )
    await ours.close()


async def _rate(send: Send, callers: int, each: int) -> float:
    async def call() -> None:
        for _ in range(each):
            await send()

    began_s = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    return callers * each / (time.perf_counter() - began_s)


async def fast_path(servers: dict[str, tuple[int, int]]) -> None:
    """`servers`: port and process of each."""
    post = request("POST", "/v1/intents", INTENT)
    for connections, count in ((1, POSTS // 4), (32, POSTS)):
        rates: dict[str, list[float]] = {name: [] for name in servers}
        cpu: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(ROUNDS):
            for name, (port, pid) in servers.items():
                used_s = cpu_s(pid)
                good, seconds = await load(port, connections, repeat(post, count))
                assert good == count
                rates[name].append(good / seconds)
                cpu[name].append((cpu_s(pid) - used_s) * 1e6 / count)
        for name, found in rates.items():
            note = f"{median(cpu[name]):.0f} us of CPU each"
            _print(f"POST ASYNC, {connections} connections, {name}", found, note)


def _print(what: str, rates: list[float], note: str = "") -> None:
    print(f"{what:50} {median(rates):9,.0f}/s  ({min(rates):,.0f} .. {max(rates):,.0f})  {note}", flush=True)


def main() -> None:
    with ExitStack() as stack:
        pipes = {
            name: stack.enter_context(in_process(serve, name == "fast path"))
            for name in ("fast path", "router")
        }
        servers = {name: pipe.recv() for name, pipe in pipes.items()}
        asyncio.run(http_clients(servers["fast path"][0]))
        asyncio.run(fast_path(servers))


if __name__ == "__main__":
    sys.exit(main())
