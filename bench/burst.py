"""100,000 intents, 20,000 a tier, all due at one instant: with a handler of 0 ms, and one that waits."""

from __future__ import annotations

import asyncio
import time

from bench.figure import Figure, folder
from duetime import App
from duetime.limits import TIER_NAMES

PER_TIER = 20_000
WAITS_S = (0.005, 0.010, 0.020, 0.030, 0.050)


def run() -> list[Figure]:
    figures = []
    for waits, name in (((0.0,) * 5, "0 ms"), (WAITS_S, "5/10/20/30/50 ms")):
        seconds, done, ended = asyncio.run(_burst(waits))
        figures.append(
            Figure(
                f"burst of 100 k at one instant, handler {name}: delivered",
                done,
                "intents",
                floor=5 * PER_TIER,
            )
        )
        by_tier = ", ".join(f"{tier} {at:.1f} s" for tier, at in zip(TIER_NAMES, ended, strict=True))
        figures.append(Figure("... rate", done / seconds, "intents/s", note=f"last of {by_tier}"))
    return figures


async def _burst(waits: tuple[float, ...]) -> tuple[float, int, list[float]]:
    with folder() as path:
        app = App(str(path))
        last = [0.0] * len(TIER_NAMES)

        def task(tier: int, name: str, wait_s: float):  # type: ignore[no-untyped-def]
            @app.task(name=name, tier=name, ack="ASYNC")
            async def work() -> None:
                if wait_s:
                    await asyncio.sleep(wait_s)
                last[tier] = time.perf_counter()

            return work

        tasks = [task(tier, name, waits[tier]) for tier, name in enumerate(TIER_NAMES)]
        async with app:
            due = app.backend.now_ms() / 1000 + 8
            for each in tasks:
                await each.at(due).schedule_many([()] * PER_TIER)
            start = time.perf_counter() + (due - app.backend.now_ms() / 1000)
            assert start > time.perf_counter(), "all of them were submitted before they are due"
            await asyncio.sleep(start - time.perf_counter())
            while (await app.overview()).counts["ACKED"] < 5 * PER_TIER:
                await asyncio.sleep(0.05)
                if time.perf_counter() - start > 120:
                    break
            done = (await app.overview()).counts["ACKED"]
        return max(last) - start, done, [at - start for at in last]
