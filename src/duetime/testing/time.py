"""Virtual time: a clock set by hand, and an app that runs on it. Days pass in milliseconds.

The engine is the real one, on memory storage: serialisation, retries, leases, deadlines and order are
those of production. Only the clock is replaced.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from duetime.client.app.app import App
from duetime.client.app.call import Call
from duetime.client.app.times import Delay, Moment, delay_ms, moment_ms
from duetime.config import Config
from duetime.engine.embedded import Embedded
from duetime.engine.engine import Engine

# The first of January 2030, 00:00 UTC: far from today, so that a leak of real time is noticed.
EPOCH_MS = 1_893_456_000_000


class SilentAlarm:
    """Never rings: with a clock set by hand, the code that sets the clock advances time."""

    def set(self, at_ms: int | None) -> None:
        pass

    def close(self) -> None:
        pass


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now_ms: int = EPOCH_MS) -> None:
        self._now_ms = now_ms
        self._steady_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def steady_ms(self) -> int:
        return self._steady_ms

    def set_ms(self, now_ms: int) -> None:
        """Time passes up to this moment."""
        self._steady_ms += max(0, now_ms - self._now_ms)
        self._now_ms = now_ms

    def leap(self, by_ms: int) -> None:
        """Set the clock ahead, or back: no time passes."""
        self._now_ms += by_ms

    def alarm(self, ring: Callable[[], None]) -> SilentAlarm:
        return SilentAlarm()


class VirtualTime:
    """An app's clock: moves forward and lets everything happen that is due on the way."""

    def __init__(self, app: App, clock: ManualClock) -> None:
        self._app = app
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def advance(self, delay: Delay) -> Call[None]:
        """Let this much time pass; every retry, deadline and delay on the way happens at its moment."""
        return self._app.call(self._pass(self._clock.now_ms() + delay_ms(delay)))

    def advance_to(self, moment: Moment) -> Call[None]:
        """Let time pass until this moment."""
        return self._app.call(self._pass(moment_ms(moment)))

    def drain(self) -> Call[None]:
        """Wait until nothing runs and nothing more is due now."""
        return self._app.call(self._pass(self._clock.now_ms()))

    async def _pass(self, until_ms: int) -> None:
        backend = self._app.backend
        assert isinstance(backend, Embedded), "virtual time needs the engine in this process"
        await pass_time(backend.engine, self._clock, until_ms, self._app.listeners.settle)


async def pass_time(
    engine: Engine, clock: ManualClock, until_ms: int, settle: Callable[[], Awaitable[bool]] | None = None
) -> None:
    """Let time pass for an engine on this clock: everything that is due on the way happens at its moment.

    `settle` waits for other work that the engine has caused, and returns whether there was any.
    """

    async def quiet() -> None:
        await engine.quiet()
        while settle is not None and await settle():
            await engine.quiet()

    await quiet()
    while True:
        next_ms = engine.reads.next_ms()
        if next_ms is None or next_ms > until_ms:
            break
        clock.set_ms(max(next_ms, clock.now_ms()))
        await engine.advance()
        await quiet()
    clock.set_ms(max(until_ms, clock.now_ms()))
    await engine.advance()
    await quiet()


@asynccontextmanager
async def virtual(app: App, config: Config | None = None) -> AsyncIterator[VirtualTime]:
    """Run an app, with all its functions, in memory and on virtual time.

    `async with virtual(app) as clock: await clock.advance("30d")`
    """
    clock = ManualClock()
    app.rewire(":memory:", config=config, clock=clock)
    async with app:
        yield VirtualTime(app, clock)
