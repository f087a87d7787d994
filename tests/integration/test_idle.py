"""An idle engine does nothing: no wake-ups, no CPU, however much it has pending."""

from __future__ import annotations

import asyncio
import time

import pytest

from duetime import App
from duetime.config import Config
from duetime.settings import LogSettings, StoreSettings
from tests.integration.rig import SOON, engine_of


class Watch:
    """Counts how often a loop looks at its selector."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.wakes = 0
        selector = loop._selector  # type: ignore[attr-defined]
        select = selector.select

        def counted(timeout=None):
            self.wakes += 1
            return select(timeout)

        selector.select = counted


async def a_second() -> None:
    """Let a real second pass."""
    await asyncio.sleep(1)  # tidy: what an idle process does is seen only in real time


@pytest.mark.parametrize("delay", ["20s", "1h", "40d"])
def test_with_much_pending_nothing_happens(tmp_path, delay, monkeypatch):
    config = Config(store=StoreSettings(checkpoint_ms=100), log=LogSettings(flush_ms=10))
    app = App(str(tmp_path / "data"), config=config)
    rings: list[int] = []

    @app.task
    async def work(number: int) -> None: ...

    async def main():
        async with app:
            await work.options(delay=delay).schedule_many((n,) for n in range(2_000))
            await (await work.schedule(1)).result(SOON)
            engine = engine_of(app)
            while engine._store.unwritten() or engine._checkpointer.position != engine.position:
                await engine.checkpoint()
            await a_second()  # what is left to be done after the work is done now
            monkeypatch.setattr(engine._alarm, "_ring", lambda: rings.append(1))
            watch, position = Watch(asyncio.get_running_loop()), engine.position
            cpu_s = time.process_time()
            await a_second()
            cpu_s = time.process_time() - cpu_s
            assert engine.position == position, "nothing is written"
            assert rings == [] and watch.wakes <= 3, f"the loop woke {watch.wakes} times"
            assert cpu_s < 0.05

    asyncio.run(main())


def test_the_watch_sees_a_loop_that_polls():
    async def poll():
        while True:
            await asyncio.sleep(0.01)  # tidy: it polls

    async def main():
        watch = Watch(asyncio.get_running_loop())
        task = asyncio.ensure_future(poll())
        await a_second()
        task.cancel()
        assert watch.wakes > 20

    asyncio.run(main())
