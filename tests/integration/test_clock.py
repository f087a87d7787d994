"""A clock that is set back or leaps: nothing fires early by it, and nothing waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from duetime import App, Retry, Status, current, errors
from duetime.testing.time import EPOCH_MS
from tests.integration.rig import SOON, engine_of

HOUR_MS = 3_600_000


class SteppingClock:
    """A wall clock that an operator sets. Its alarm behaves like the system's: it rings when its moment has
    come, and whenever the clock is set."""

    def __init__(self) -> None:
        self._now_ms = EPOCH_MS
        self._at_ms: int | None = None
        self._ring: Callable[[], None] = lambda: None

    def now_ms(self) -> int:
        return self._now_ms

    def alarm(self, ring: Callable[[], None]) -> SteppingClock:
        self._ring = ring
        return self

    def set(self, at_ms: int | None) -> None:
        self._at_ms = at_ms
        self._look()

    def close(self) -> None:
        self._at_ms = None

    def step(self, by_ms: int) -> None:
        self._now_ms += by_ms
        armed, self._at_ms = self._at_ms, None
        if armed is not None:
            self._ring()

    def _look(self) -> None:
        if self._at_ms is not None and self._at_ms <= self._now_ms:
            self._at_ms = None
            asyncio.get_running_loop().call_soon(self._ring)


@pytest.fixture
def clock():
    return SteppingClock()


@pytest.fixture
def runs():
    return []


@pytest.fixture
def app(tmp_path, clock, runs):
    app = App(str(tmp_path / "data"), clock=clock)

    @app.task(
        name="work",
        tier="ULTRA",
        retry=Retry(max_attempts=3, initial_delay="10m", max_delay="1h", jitter=False),
    )
    async def work(name: str, fail: bool = False) -> None:
        runs.append((name, clock.now_ms() - current().execute_at_ms))
        if fail and current().attempt == 1:
            raise ConnectionError

    app.work = work  # type: ignore[attr-defined]
    return app


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def test_a_leap_fires_what_it_passed(app, clock, runs):
    async def main():
        async with app:
            handles = [await app.work.delay(f"{n}m").schedule(str(n)) for n in (1, 30, 90)]
            clock.step(HOUR_MS)
            for handle in handles[:2]:
                await handle.result(SOON)
            assert await handles[2].status() is Status.SCHEDULED
            assert [name for name, _ in runs] == ["1", "30"] and all(late >= 0 for _, late in runs)

    run(main())


def test_set_back_nothing_is_early_and_nothing_stalls(app, clock, runs):
    async def main():
        async with app:
            soon = await app.work.delay("1m").schedule("soon")
            clock.step(-HOUR_MS)
            now = await app.work.schedule("now")
            await now.result(SOON)
            assert runs == [("now", 0)], "work handed in after the step is measured by the new time"
            await engine_of(app).quiet()
            clock.step(HOUR_MS)
            await engine_of(app).quiet()
            assert await soon.status() is Status.SCHEDULED, "the same minute as before is still to come"
            clock.step(60_000)
            await soon.result(SOON)
            assert runs[1:] == [("soon", 0)]

    run(main())


def test_a_ready_intent_waits_again_when_the_clock_is_set_back(app, clock, runs):
    from duetime.protocol.command import Pause, Resume

    async def main():
        async with app:
            await app.ask(Pause("task:default"))
            handle = await app.work.delay("1m").schedule("ready")
            clock.step(2 * 60_000)
            await engine_of(app).quiet()
            assert await handle.status() is Status.DUE
            clock.step(-HOUR_MS)
            await app.ask(Resume("task:default"))
            await engine_of(app).quiet()
            assert runs == [], "by the clock on the wall its moment has not come"
            clock.step(HOUR_MS)
            await handle.result(SOON)
            assert runs == [("ready", 60_000)]

    run(main())


def test_a_retry_survives_steps(app, clock, runs):
    async def main():
        async with app:
            handle = await app.work.schedule("again", True)
            await engine_of(app).quiet()
            assert len(runs) == 1
            clock.step(-HOUR_MS)
            await engine_of(app).quiet()
            assert len(runs) == 1
            clock.step(HOUR_MS + 9 * 60_000)
            await engine_of(app).quiet()
            assert len(runs) == 1, "nine of ten minutes"
            clock.step(61_000)
            await handle.result(SOON)
            assert len(runs) == 2

    run(main())


def test_a_restart_with_an_earlier_clock(app, clock, runs):
    async def main():
        async with app:
            await (await app.work.schedule("before")).result(SOON)
            later = await app.work.delay("1m").schedule("later")
        clock.step(-24 * HOUR_MS)
        async with app:
            await (await app.work.schedule("after")).result(SOON)
            assert [name for name, _ in runs] == ["before", "after"]
            with pytest.raises(errors.WaitTimedOut):
                await later.result("50ms")
            clock.step(24 * HOUR_MS + 60_000)
            await later.result(SOON)
        assert all(late >= 0 for _, late in runs)

    run(main())
