"""Memory: a hot intent; a million cold ones (got, cancelled, found by key, restarted); and idling."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import time
from pathlib import Path

from bench.figure import Figure, folder
from duetime import App

HOT = 100_000
COLD = 1_000_000
CHUNK = 20_000


def run() -> list[Figure]:
    figures = asyncio.run(_hot())
    with folder() as path:
        figures += asyncio.run(_cold(path))
        figures += asyncio.run(_restart(path))
    return figures


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _app(path: Path) -> App:
    app = App(str(path))

    @app.task(name="later", ack="ASYNC")
    async def later(number: int) -> None: ...

    app.later = later  # type: ignore[attr-defined]
    return app


async def _hot() -> list[Figure]:
    with folder() as path:
        app = _app(path)
        async with app:
            for phase in range(2):  # the first fills allocator pools and caches, the second is measured
                await app.later.delay("200s").schedule_many((n,) for n in range(1_000))  # type: ignore[attr-defined]
                await app.backend.checkpoint()  # type: ignore[attr-defined]
                if phase == 0:
                    gc.collect()
                    before = rss_bytes()
            for start in range(0, HOT, CHUNK):
                await app.later.delay("200s").schedule_many((n,) for n in range(start, start + CHUNK))  # type: ignore[attr-defined]
            await app.backend.checkpoint()  # type: ignore[attr-defined]
            gc.collect()
            each = (rss_bytes() - before) / (HOT + 1_000)
            idle = await _idle()
    return [
        Figure("hot intent in memory", each, "bytes", ceiling=500, note="resident growth / intents"),
        Figure("idle with 100,000 pending: CPU", 100 * idle, "% of a core", ceiling=0.2),
    ]


async def _idle(seconds: float = 5.0) -> float:
    await asyncio.sleep(1.5)  # the last flush
    start = resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(seconds)
    end = resource.getrusage(resource.RUSAGE_SELF)
    return (end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime) / seconds


async def _cold(path: Path) -> list[Figure]:
    app = _app(path)
    async with app:
        await app.later.delay("2h").schedule(0)  # type: ignore[attr-defined]
        gc.collect()
        before = rss_bytes()
        start = time.perf_counter()
        for first in range(0, COLD, CHUNK):
            await app.later.delay("2h").schedule_many((n,) for n in range(first, first + CHUNK))  # type: ignore[attr-defined]
        seconds = time.perf_counter() - start
        one = await app.later.options(id="findme", key="k1", delay="3h").schedule(7)  # type: ignore[attr-defined]
        await app.backend.checkpoint()  # type: ignore[attr-defined]
        gc.collect()
        grown = rss_bytes() - before
        assert (await app.handle("findme").view()).key == "k1"
        again = await app.later.options(key="k1", delay="3h").schedule(7)  # type: ignore[attr-defined]
        assert again.id == one.id, "a cold intent is found by its key"
        await one.cancel()
    return [
        Figure("1 M cold intents: resident growth", grown / 2**20, "MiB", ceiling=100 * 10**6 / 2**20),
        Figure("1 M cold intents: submitted", COLD / seconds, "intents/s"),
    ]


async def _restart(path: Path) -> list[Figure]:
    app = _app(path)
    start = time.perf_counter()
    async with app:
        seconds = time.perf_counter() - start
        counts = (await app.overview()).counts
        assert counts["SCHEDULED"] == COLD + 1, counts
        assert counts["CANCELED"] == 1, counts
    return [Figure("restart with 1 M cold intents", seconds, "s", ceiling=3)]
