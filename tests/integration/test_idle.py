"""An idle engine does nothing: its loop waits until the next intent is due, however much is pending."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

import pytest

from duetime import App
from duetime.config import Config
from duetime.engine.reads.gauges import gauges
from duetime.settings import LogSettings, StoreSettings
from tests.integration.rig import SOON, engine_of

LONG_S = 10


class Watch(selectors.DefaultSelector):
    """The selector of a loop. A loop that has nothing to do for `LONG_S` is told so, and need not wait."""

    def __init__(self) -> None:
        super().__init__()
        self._idle: asyncio.Future[float] | None = None

    def select(self, timeout: float | None = None) -> list[Any]:
        idle_s = float("inf") if timeout is None else timeout
        if self._idle is None or self._idle.done() or idle_s < LONG_S:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self._idle.set_result(idle_s)
        return ready

    def idle(self) -> asyncio.Future[float]:
        """How long the loop would wait, as soon as it would wait for long."""
        self._idle = asyncio.get_running_loop().create_future()
        return self._idle


def run_on(watch: Watch, main: Any) -> None:
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watch)) as runner:
        runner.run(asyncio.wait_for(main, 60))


@pytest.mark.parametrize("delay", ["20s", "1h", "40d"])
def test_with_much_pending_nothing_happens(tmp_path, delay):
    config = Config(store=StoreSettings(checkpoint_ms=100), log=LogSettings(flush_ms=10))
    app = App(str(tmp_path / "data"), config=config)
    watch = Watch()

    @app.task
    async def work(number: int) -> None: ...

    async def main():
        async with app:
            await work.options(delay=delay).schedule_many((n,) for n in range(2_000))
            await (await work.schedule(1)).result(SOON)
            engine = engine_of(app)
            while (store := gauges(engine).store).unwritten or store.checkpoint_lag_bytes:
                await engine.checkpoint()
            position, wakeups = engine.position, engine.wakeups
            assert await watch.idle() >= LONG_S
            assert (engine.position, engine.wakeups) == (position, wakeups), "nothing is done or written"

    run_on(watch, main())


def test_the_watch_sees_a_loop_that_polls():
    watch = Watch()

    async def main():
        idle = watch.idle()
        for _ in range(20):
            await asyncio.sleep(0.01)  # tidy: it polls
        assert not idle.done()
        assert await idle >= LONG_S, "and one that does not"

    run_on(watch, main())
