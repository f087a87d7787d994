"""An app whose functions take as long as they are told, for tests of predicted durations."""

from __future__ import annotations

import asyncio

from duetime import App

app = App("http://127.0.0.1:1")


@app.task(name="nap")
async def nap(ms: int) -> int:
    await asyncio.sleep(ms / 1000)  # tidy: a function that takes its time
    return ms


@app.task(name="blink")
async def blink() -> None:
    """Takes no time at all."""
