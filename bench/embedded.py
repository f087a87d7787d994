"""The whole embedded engine: schedule_many to an async no-op to ACKED, file log and SQLite store."""

from __future__ import annotations

import asyncio
import gc
import time
from statistics import median

from bench.figure import Figure, folder
from duetime import App

SMALL = 100_000
LARGE = 1_000_000


def run() -> list[Figure]:
    small = [asyncio.run(_run(SMALL)) for _ in range(3)]
    large = asyncio.run(_run(LARGE))
    rate = SMALL / median(small)
    slower = (large / LARGE) / (median(small) / SMALL)
    return [
        Figure(
            "embedded, ASYNC, 100 k intents to ACKED", rate, "intents/s", floor=50_000, note="aim 100,000"
        ),
        Figure("embedded, ASYNC, 1 M intents to ACKED", LARGE / large, "intents/s"),
        Figure("... time per intent against 100 k", slower, "ratio", ceiling=1.3),
    ]


async def _run(count: int) -> float:
    with folder() as path:
        app = App(str(path))

        @app.task(ack="ASYNC")
        async def nothing() -> None: ...

        async with app:
            gc.collect()
            start = time.perf_counter()
            await nothing.schedule_many([()] * count)
            await app.backend.quiet()
            seconds = time.perf_counter() - start
            counts = (await app.overview()).counts
            assert counts["ACKED"] == count, counts
        return seconds
