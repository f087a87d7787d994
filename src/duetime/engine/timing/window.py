"""Loads cold intents into memory before they are due: the next window, a slice at a time.

Only timing depends on it: an intent that is due and not in memory is loaded by the kernel itself. So
while large payloads fill half of their memory limit, intents are loaded at the last moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from duetime.clock import Clock, monotonic_ns
from duetime.kernel.timers import Timers
from duetime.limits import HORIZON_REST_S, HORIZON_ROWS_MAX, LARGE_HORIZON_MS, LARGE_PAYLOADS_BYTES_MAX, MS_NS
from duetime.store.store import ReadStore


async def reach(timers: Timers, at_ms: int) -> None:
    """Load what wakes up to a moment, a slice at a time. A record at that moment would otherwise load all of
    it at once."""
    while not timers.reaches(at_ms) and timers.extend(at_ms, HORIZON_ROWS_MAX):
        await asyncio.sleep(0)  # tidy: let others have their turn


class Window:
    """Keeps the intents that wake within the horizon in memory. Sleeps until there is something to load."""

    def __init__(
        self, timers: Timers, store: ReadStore, clock: Clock, horizon_ms: int, moved: Callable[[], None]
    ) -> None:
        self._timers = timers
        self._store = store
        self._clock = clock
        self._most_ms = horizon_ms
        self._moved = moved
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = 0
        self._closed = False

    @property
    def _horizon_ms(self) -> int:
        """How far ahead: less while large payloads fill the memory, so that there is room for new ones."""
        crowded = self._store.large_bytes() > LARGE_PAYLOADS_BYTES_MAX // 2
        return min(self._most_ms, LARGE_HORIZON_MS) if crowded else self._most_ms

    def extend(self) -> None:
        """Load the next slice; then rest, or sleep until half a horizon before the next is due."""
        self._cancel()
        if self._closed:
            return
        if self._timers.extend(self._clock.now_ms() + self._horizon_ms, HORIZON_ROWS_MAX):
            self._at_ms = 0
            self._timer = asyncio.get_running_loop().call_later(HORIZON_REST_S, self.extend)
            return
        self._moved()
        self.plan()

    async def reach(self) -> int:
        """Load everything up to now at once: the engine was down, or the clock jumped. Returns the
        milliseconds it took."""
        at_ms = self._clock.now_ms()
        if self._timers.reaches(at_ms):
            return 0
        began_ns = monotonic_ns()
        await reach(self._timers, at_ms)
        return (monotonic_ns() - began_ns) // MS_NS

    def plan(self) -> None:
        """Something may wake after the edge: plan to load it in time."""
        far_ms = self._timers.far_ms()
        if far_ms is None:
            return
        at_ms = far_ms - self._horizon_ms // 2
        if self._timer is not None:
            if self._at_ms <= at_ms:
                return
            self._timer.cancel()
        self._at_ms = at_ms
        delay_ms = max(at_ms - self._clock.now_ms(), 0)
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self.extend)

    def close(self) -> None:
        self._closed = True
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
