"""Lateness at 1,000 intents/s, spread evenly over all tiers: never early, p99 within a quarter window."""

from __future__ import annotations

import asyncio

from bench.figure import Figure, folder
from duetime import App, current
from duetime.limits import TIER_NAMES, TIER_WINDOW_MS

SECONDS = 8
PER_SECOND = 1_000


def run() -> list[Figure]:
    late = asyncio.run(_run())
    figures = [
        Figure(
            "intents started early",
            sum(ms < 0 for tier in late.values() for ms in tier),
            "intents",
            ceiling=0,
        )
    ]
    for name, window_ms in zip(TIER_NAMES, TIER_WINDOW_MS, strict=True):
        tier = sorted(late[name])
        p50, p99 = tier[len(tier) // 2], tier[len(tier) * 99 // 100]
        note = f"n {len(tier)}, p50 {p50:.1f}, max {tier[-1]:.1f}"
        figures.append(Figure(f"lateness p99, {name}", p99, "ms", ceiling=window_ms / 4 + 2, note=note))
    return figures


async def _run() -> dict[str, list[float]]:
    late: dict[str, list[float]] = {name: [] for name in TIER_NAMES}
    with folder() as path:
        app = App(str(path))

        def task(name: str):  # type: ignore[no-untyped-def]
            @app.task(name=name, tier=name)
            async def work() -> None:
                late[name].append(app.backend.now_ms() - current().execute_at_ms)

            return work

        tasks = [task(name) for name in TIER_NAMES]
        async with app:
            begin_ms = app.backend.now_ms() + 6_000  # all of them are submitted before the first is due
            planned = []
            for number in range(SECONDS * PER_SECOND):
                each = tasks[number % len(tasks)]
                planned.append(each.at((begin_ms + number * 1000 // PER_SECOND) / 1000).schedule())
                if len(planned) == 500:
                    await asyncio.gather(*planned)
                    planned = []
            await asyncio.gather(*planned)
            assert app.backend.now_ms() < begin_ms
            while sum(map(len, late.values())) < SECONDS * PER_SECOND:
                await asyncio.sleep(0.1)
    return late
