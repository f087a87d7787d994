"""The process that is killed: an app under load that says what it was promised and what it did.

`python killed.py FOLDER SIDE_FILE ROUND load|finish`. On stdout, a line for each acknowledged intent; in
the side file, a line before and after each run of a handler and one for each end that is on the log. Each
line is one unbuffered write, so it is there whole or not at all.
"""

from __future__ import annotations

import asyncio
import os
import sys
from random import Random
from typing import Any

from duetime import App, Retry, Transition, current
from duetime.clock import SystemClock
from duetime.config import Config
from duetime.settings import LogSettings, StoreSettings

TIERS = ("ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY")
PATIENT = Retry(max_attempts=1000, initial_delay="5ms", max_delay="20ms")
# Small segments and frequent checkpoints: a kill meets rotations, trims and half-written checkpoints.
CONFIG = Config(
    log=LogSettings(segment_bytes_max=1 << 20, history_bytes=0),
    store=StoreSettings(checkpoint_ms=100, horizon_ms=1_000),
)


class Child:
    """One life of the app."""

    def __init__(self, folder: str, side_file: str, round_number: int) -> None:
        self.side = os.open(side_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.round = round_number
        self.random = Random(round_number)
        self.clock = SystemClock()
        self.app = App(folder, config=CONFIG)
        self.messages = 0
        self.ended = asyncio.Event()
        self._register()

    def note(self, *words: object) -> None:
        os.write(self.side, (" ".join(map(str, (self.round, *words))) + "\n").encode())

    def began(self, kind: str) -> str:
        context = current()
        times = (context.execute_at_ms, self.clock.now_ms())
        self.note("run", kind, context.intent_id, context.delivery, *times)
        return context.intent_id

    def _register(self) -> None:
        app, child = self.app, self

        @app.task(name="least", retry=PATIENT)
        async def least(work_ms: int) -> None:
            id = child.began("least")
            await asyncio.sleep(work_ms / 1000)  # tidy: work that takes time, so that a kill finds some
            child.note("end", id)

        @app.task(name="thread", retry=PATIENT)
        def thread(work_ms: int) -> None:
            child.note("end", child.began("thread"))

        @app.task(name="flaky", retry=PATIENT)
        async def flaky(work_ms: int) -> None:
            id = child.began("flaky")
            child.note("end", id)
            if current().attempt == 1:
                raise ConnectionError("once")

        @app.task(name="most", guarantee="AT_MOST_ONCE")
        async def most(work_ms: int) -> None:
            id = child.began("most")
            await asyncio.sleep(work_ms / 1000)  # tidy: work that takes time, so that a kill finds some
            child.note("end", id)

        class Ordered:
            def __init__(self, id: str) -> None:
                self.id = id

            async def message(self, number: int) -> None:
                id = child.began(type(self).__name__.lower())
                child.note("message", id, type(self).__name__ + self.id, number)
                await asyncio.sleep(0.001)  # tidy: work that takes time, so that a kill finds some
                child.note("end", id)

        class Again(Ordered):
            """Interrupted messages run again, before those behind them."""

        self.tasks = {"least": least, "thread": thread, "flaky": flaky, "most": most}
        self.entities = {
            "ordered": app.entity(Ordered),
            "again": app.entity(guarantee="AT_LEAST_ONCE", retry=PATIENT)(Again),
        }
        app.observe(self._changed)

    def _changed(self, change: Transition) -> None:
        if change.status.final:
            self.note("final", change.intent_id, change.status.name)
            self.ended.set()

    async def load(self) -> None:
        """Hand in work until somebody puts an end to it."""
        while True:
            await asyncio.gather(*(self._one() for _ in range(10)), self._many())

    async def _one(self) -> None:
        random = self.random
        kind = random.choice(("least", "least", "thread", "flaky", "most", "ordered", "again"))
        options: dict[str, Any] = {
            "tier": random.choice(TIERS),
            "ack": random.choice(("DURABLE", "ASYNC", "BATCH_DEFERRED")),
        }
        if kind in self.entities:
            self.messages += 1
            entity = self.entities[kind](str(random.randrange(3)))
            planned = entity.message("message", **options)
            handle = await planned.schedule(self.round * 1_000_000 + self.messages)
        else:
            options["delay"] = random.choice((0, 0, 0.02, 0.3, 1.5))
            handle = await self.tasks[kind].options(**options).schedule(random.randrange(4))
        self.acknowledged(kind, [handle.id])

    async def _many(self) -> None:
        delay = self.random.choice((0, 0.1, 1.2))
        planned = self.tasks["least"].options(delay=delay, tier=self.random.choice(TIERS))
        handles = await planned.schedule_many((0,) for _ in range(20))
        self.acknowledged("least", [handle.id for handle in handles])

    def acknowledged(self, kind: str, ids: list[str]) -> None:
        os.write(1, "".join(f"ack {kind} {id}\n" for id in ids).encode())

    async def finish(self) -> None:
        """Wait until everything has ended, and say how."""
        while await self._live():
            await self.ended.wait()
            self.ended.clear()
        for view in await self.app.find(limit=1 << 30):
            error = view.last_error.kind if view.last_error is not None else "-"
            os.write(1, f"final {view.intent_id} {view.status} {error}\n".encode())

    async def _live(self) -> int:
        counts = (await self.app.overview()).counts
        return sum(counts[name] for name in ("SCHEDULED", "DUE", "DISPATCHING", "BLOCKED"))

    async def main(self, mode: str) -> None:
        os.write(1, b"begin\n")
        async with self.app:
            os.write(1, b"started\n")
            await (self.finish() if mode == "finish" else self.load())


if __name__ == "__main__":
    folder, side_file, round_number, mode = sys.argv[1:]
    asyncio.run(Child(folder, side_file, int(round_number)).main(mode))
