"""Duetime's part: a server and a worker process, drained and timed by the same clock as the peers.

Beside it what only Duetime is asked for: results kept, the rate of submits, the cost of doing nothing.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.peers import gauge
from bench.peers.race import BURST, LATE_S, LEAD_S, SPREAD, START_S, Failed, Lateness, awaited, dues, lateness
from bench.peers.result import ECHO
from bench.serve import Server, in_process
from bench.worker import IDLE_S, SETTLE_S, cpu_s, worker_of
from duetime import App, Retry

DRAIN_S = 60.0
SUBMITS_S = 2.0
BULK = 20_000
ECHO_S = 20.0
PLACE = "bench.peers.ours:app"

app = App("http://127.0.0.1:1")


@app.task(name="job", ack="ASYNC", tier="FAST")
async def job(due_s: float) -> None:
    """The one function of every peer."""
    gauge.hit(due_s)


@app.task(name="kept", ack="ASYNC", tier="FAST", retry=Retry(max_attempts=5))
async def kept(number: int) -> dict[str, int]:
    """Its small result is kept, and it may be tried again."""
    gauge.hit()
    return {"number": number}


@app.task(name="durable", ack="DURABLE", tier="FAST", queue="later")
async def durable(number: int) -> None:
    """Only ever submitted."""


@app.task(name="quick", ack="ASYNC", tier="FAST", queue="later")
async def quick(number: int) -> None:
    """Only ever submitted."""


def drain(count: int, results: bool = False) -> tuple[float, float]:
    """Jobs a second by one worker process, queued before it starts: by the clock of the worker, as it is for
    every peer, and until the server has the last acknowledgement."""
    with Server() as server:
        asyncio.run(_fill(server, count, results))
        noted = _work(server, count, DRAIN_S, acked=True)
    return noted["jobs"] / noted["seconds"], noted["jobs"] / (noted["acked"] - noted["first"])


def late(tier: str = "FAST", spread: int = SPREAD, burst: int = BURST) -> Lateness:
    """How late delayed tasks of a tier begin."""
    with Server() as server:
        planned = dues(time.time() + LEAD_S, spread, burst)
        asyncio.run(_plan(server, planned, tier))
        if time.time() + START_S > planned[0]:
            raise Failed("planning took too long: the machine is busy")
        noted = _work(server, len(planned), LATE_S)
    return lateness(noted["late"], planned[-1])


def submits() -> dict[str, float]:
    """Submits a second by one client: one after the other, by 64 callers, and in bulk."""
    with Server() as server:
        return asyncio.run(_submits(server))


def idle() -> float:
    """Percent of a core that a server and a worker take together while there is nothing to do."""
    with Server() as server, worker_of(server, PLACE) as worker:
        time.sleep(SETTLE_S)
        used_s = server.cpu_s() + cpu_s(worker.pid)
        time.sleep(IDLE_S)
        return 100 * (server.cpu_s() + cpu_s(worker.pid) - used_s) / IDLE_S


def _work(server: Server, wanted: int, limit_s: float, acked: bool = False) -> Any:
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        out = Path(folder) / "noted.json"
        environment = {gauge.WANTED: str(wanted), gauge.OUT: str(out)}
        with worker_of(server, PLACE, environment) as worker:
            noted = awaited(worker, out, limit_s)
            if acked:
                noted["acked"] = asyncio.run(_acked(server, wanted))
            return noted


async def _fill(server: Server, count: int, results: bool) -> None:
    app.rewire(f"http://127.0.0.1:{server.port}")
    async with app:
        if results:
            await kept.schedule_many([(number,) for number in range(count)])
        else:
            await job.schedule_many([(0.0,)] * count)


async def _acked(server: Server, wanted: int) -> float:
    """When the server had all acknowledgements; the clock is the same in all processes of a machine."""
    async with App(f"http://127.0.0.1:{server.port}") as looking:
        until = time.perf_counter() + DRAIN_S
        while (await looking.overview()).counts.get("ACKED", 0) < wanted:
            if time.perf_counter() > until:
                raise Failed("some jobs were run and are not acknowledged")
            await asyncio.sleep(0.005)
        return time.perf_counter()


async def _plan(server: Server, planned: list[float], tier: str) -> None:
    app.rewire(f"http://127.0.0.1:{server.port}")
    instant, timed = planned[-1], job.options(tier=tier)
    async with app:
        steps = [each for each in planned if each != instant]
        for start in range(0, len(steps), 200):
            await asyncio.gather(*(timed.at(each).schedule(each) for each in steps[start : start + 200]))
        await timed.at(instant).schedule_many([(instant,)] * planned.count(instant))


async def _submits(server: Server) -> dict[str, float]:
    app.rewire(f"http://127.0.0.1:{server.port}")
    async with app:
        return {
            ECHO: await _echoes(),
            "one by one, ASYNC": await _rate(quick.delay("1d"), 1),
            "64 callers, DURABLE": await _rate(durable.delay("1d"), 64),
            "bulk": await _bulk(),
        }


async def _echoes() -> float:
    """A bare asyncio echo in another process, awaited one by one: what a machine can do at the most."""
    loop = asyncio.get_running_loop()
    with in_process(_echo) as pipe:
        if not await asyncio.to_thread(pipe.poll, ECHO_S):
            raise Failed("the echo did not start")
        port = pipe.recv()
        _, protocol = await loop.create_connection(_Asker, "127.0.0.1", port)
        began, count = time.perf_counter(), 0
        while time.perf_counter() < began + SUBMITS_S / 2:
            await protocol.ask()
            count += 1
        return count / (time.perf_counter() - began)


class _Asker(asyncio.Protocol):
    """Sends as many bytes as a small intent has, and awaits them."""

    _SAID = b"x" * 700

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    async def ask(self) -> None:
        self._came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport.write(self._SAID)
        await self._came

    def data_received(self, data: bytes) -> None:
        if not self._came.done():
            self._came.set_result(None)


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.data_received = transport.write  # type: ignore[method-assign]


def _echo(pipe: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Echo, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


async def _rate(planned: Any, callers: int) -> float:
    stop = time.perf_counter() + SUBMITS_S

    async def caller() -> int:
        count = 0
        while time.perf_counter() < stop:
            await planned.schedule(count)
            count += 1
        return count

    began = time.perf_counter()
    counts = await asyncio.gather(*(caller() for _ in range(callers)))
    return sum(counts) / (time.perf_counter() - began)


async def _bulk() -> float:
    calls = [(number,) for number in range(BULK)]
    began = time.perf_counter()
    await quick.delay("1d").schedule_many(calls)
    return BULK / (time.perf_counter() - began)
