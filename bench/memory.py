"""Memory: a hot intent; many queues and entities; a million cold intents (got, cancelled, found by key,
restarted); and idling."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from bench.figure import Figure, folder
from duetime import App, Task
from duetime.clock import SystemClock
from duetime.kernel.kernel import Kernel
from duetime.protocol.command import Configure, Settings, Submit
from duetime.protocol.intent import Item
from duetime.protocol.record import Record
from duetime.protocol.terms import Entity, Target, Terms, lane_of
from duetime.protocol.terms import Task as Queued
from duetime.store.memory import MemoryStore
from duetime.testing.time import ManualClock, VirtualTime

HOT = 100_000
LANES = 20_000
NOW_MS = 1_800_000_000_000
COLD = 1_000_000
CHUNK = 20_000
SOONER = CHUNK


def run() -> list[Figure]:
    figures = asyncio.run(_hot())
    figures += [
        _lanes("queue", lambda number: Queued("work", f"q{number}")),
        _lanes("entity", lambda number: Entity("cart", f"c{number}", "add")),
    ]
    with folder() as path:
        figures += asyncio.run(_cold(path))
        figures += asyncio.run(_restart(path))
    return figures


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


RAN: list[int] = []


def _app(path: Path, clock: ManualClock | None = None) -> tuple[App, Task[[int], None]]:
    app = App(str(path), clock=clock)

    @app.task(name="later", ack="ASYNC")
    async def later(number: int) -> None:
        RAN.append(number)

    return app, later


async def _hot() -> list[Figure]:
    with folder() as path:
        app, later = _app(path)
        planned = later.delay("200s")
        async with app:
            # The first ones fill caches. Counted is what lives; the allocator's own slack is not an intent's.
            await planned.schedule_many((n,) for n in range(1_000))
            await app.backend.engine.checkpoint()  # type: ignore[attr-defined]
            gc.collect()
            tracemalloc.start()
            for start in range(0, HOT, CHUNK):
                await planned.schedule_many((n,) for n in range(start, start + CHUNK))
            await app.backend.engine.checkpoint()  # type: ignore[attr-defined]
            gc.collect()
            each = tracemalloc.get_traced_memory()[0] / HOT
            tracemalloc.stop()
            cpu, wakes = await _idle()
    return [
        Figure("hot intent in memory", each, "bytes", ceiling=500, note="living bytes / intents"),
        Figure("idle with 100,000 pending: CPU", 100 * cpu, "% of a core", ceiling=0.2),
        Figure("idle with 100,000 pending: wake-ups in 5 s", wakes, "", ceiling=5),
    ]


def _lanes(what: str, target: Callable[[int], Target]) -> Figure:
    """What a lane with one intent that waits takes, the intent with its terms included."""
    kernel = Kernel(MemoryStore())
    kernel.apply(Record(1, NOW_MS, Configure(Settings(pushed=()))))
    gc.collect()
    tracemalloc.start()
    for number in range(LANES):
        to = target(number)
        submit = Submit((Terms(to, lane_of(to)),), (Item(f"i{number}", 0, NOW_MS, b"{}", fresh=True),))
        kernel.apply(Record(number + 2, NOW_MS, submit))
    gc.collect()
    each = tracemalloc.get_traced_memory()[0] / LANES
    tracemalloc.stop()
    return Figure(f"{what} with one intent in memory", each, "bytes", ceiling=1_400)


async def _idle(seconds: float = 5.0) -> tuple[float, int]:
    """CPU used while nothing is due, and how often the process was woken."""
    await asyncio.sleep(7)  # the last flush and checkpoint
    start = resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(seconds)
    end = resource.getrusage(resource.RUSAGE_SELF)
    used = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    return used / seconds, end.ru_nvcsw - start.ru_nvcsw - 1  # one is this function's own timer


async def _cold(path: Path) -> list[Figure]:
    app, later = _app(path)
    async with app:
        await later.delay("2h").schedule(-1)
        gc.collect()
        before = rss_bytes()
        start = time.perf_counter()
        await later.delay("90m").schedule_many((n,) for n in range(SOONER))
        for first in range(SOONER, COLD, CHUNK):
            await later.delay("2h").schedule_many((n,) for n in range(first, first + CHUNK))
        seconds = time.perf_counter() - start
        one = await later.options(id="findme", key="k1", delay="3h").schedule(7)
        await app.backend.engine.checkpoint()  # type: ignore[attr-defined]
        gc.collect()
        grown = rss_bytes() - before
        assert (await app.handle("findme").view()).idempotency_key == "k1"
        again = await later.options(key="k1", delay="3h").schedule(7)
        assert again.id == one.id, "a cold intent is found by its key"
        await one.cancel()
    return [
        Figure("1 M cold intents: resident growth", grown / 2**20, "MiB", ceiling=100 * 10**6 / 2**20),
        Figure("1 M cold intents: submitted", COLD / seconds, "intents/s"),
    ]


async def _restart(path: Path) -> list[Figure]:
    clock = ManualClock(SystemClock().now_ms())
    app, _ = _app(path, clock)
    start = time.perf_counter()
    async with app:
        seconds = time.perf_counter() - start
        counts = (await app.overview()).counts
        assert (counts["SCHEDULED"], counts["CANCELED"]) == (COLD + 1, 1), counts
        virtual = VirtualTime(app, clock)
        await virtual.advance("80m")
        early = len(RAN)
        await virtual.advance("20m")
    right = early == 0 and sorted(RAN) == list(range(SOONER))
    return [
        Figure("restart with 1 M cold intents", seconds, "s", ceiling=3),
        Figure("of them, those due by virtual time fired, and no others", float(right), "yes = 1", floor=1),
    ]
