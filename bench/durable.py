"""DURABLE submits with 64 callers (group commit), against one record, one fdatasync."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from statistics import median

from bench.figure import Figure, folder
from duetime import App

CALLERS = 64
SECONDS = 2.0
ROUNDS = 3


def run() -> list[Figure]:
    alone, one_by_one, together = [], [], []
    for _ in range(ROUNDS):
        with folder() as path:
            alone.append(_one_by_one(path / "plain"))
        one_by_one.append(asyncio.run(_submits(1)))
        together.append(asyncio.run(_submits(CALLERS)))
    rate = median(together)
    return [
        Figure("one record, one fdatasync (plain file)", median(alone), "records/s"),
        Figure("DURABLE submits, 1 caller", median(one_by_one), "submits/s"),
        Figure(f"DURABLE submits, {CALLERS} callers", rate, "submits/s"),
        Figure("... against one record, one fdatasync", rate / median(alone), "ratio", floor=20),
        Figure("... against one caller", rate / median(one_by_one), "ratio"),
    ]


def _one_by_one(path: Path) -> float:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    record = b"x" * 140
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS / 2:
        os.write(file, record)
        os.fdatasync(file)
        count += 1
    seconds = time.perf_counter() - start
    os.close(file)
    return count / seconds


async def _submits(callers: int) -> float:
    with folder() as path:
        app = App(str(path))

        @app.task(ack="DURABLE")
        async def later(number: int) -> None: ...

        planned = later.delay("1d")
        async with app:
            stop = time.perf_counter() + SECONDS

            async def caller() -> int:
                count = 0
                while time.perf_counter() < stop:
                    await planned.schedule(count)
                    count += 1
                return count

            start = time.perf_counter()
            counts = await asyncio.gather(*(caller() for _ in range(callers)))
            return sum(counts) / (time.perf_counter() - start)
