"""Notices that the event loop stood still: the process was stopped, the machine slept, a turn took long.

No heartbeat of a worker could arrive then, so that time does not count against leases. Active only while a
worker holds a lease; an idle engine has no pulse.
"""

from __future__ import annotations

import asyncio

from duetime.clock import AlarmClock, Clock, monotonic_ns
from duetime.engine.shell.pump import Pump
from duetime.limits import MS_NS, PULSE_MS, STALL_MS, STALL_RENEWS_MS


class Pulse:
    """Beats every `PULSE_MS` while deliveries are with workers; a late beat reveals a stall."""

    def __init__(self, pump: Pump, clock: Clock) -> None:
        self._state = pump.kernel.state
        self._beats_at_all = not isinstance(clock, AlarmClock)
        """A clock set by hand does not move with the event loop, so the loop is not watched."""
        pump.stood_still = self.stood_still
        self._beat: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._still_ms = 0
        self._stalled_at_ms: int | None = None

    def plan(self) -> None:
        """After a turn: a worker may hold a lease."""
        if self._beat is None and len(self._state.out) > 1 and self._beats_at_all:
            self._arm()

    def stood_still(self) -> int:
        """How long the loop stood still since the last call."""
        if self._beat is not None:
            self._look()
        still_ms, self._still_ms = self._still_ms, 0
        return still_ms

    def deaf(self, ms: int) -> None:
        """The loop ran, but the engine took nothing from its inbox for this long: heartbeats had to wait."""
        if ms >= STALL_MS and self._beats_at_all and len(self._state.out) > 1:
            self._still_ms = max(self._still_ms, ms)  # if the loop also stood still, that is known already

    def stalled_lately(self) -> bool:
        """Whether the loop stood still just now: connections may have broken for that reason alone."""
        if self._beat is not None:
            self._look()
        stalled_ms = self._stalled_at_ms
        return stalled_ms is not None and _now_ms() - stalled_ms < STALL_RENEWS_MS

    def close(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    def _arm(self) -> None:
        self._due_ms = _now_ms() + PULSE_MS
        self._beat = asyncio.get_running_loop().call_later(PULSE_MS / 1000, self._beats)

    def _beats(self) -> None:
        self._look()
        self._beat = None
        if any(held for name, held in self._state.out.items() if name):
            self._arm()

    def _look(self) -> None:
        """Called by a beat, or by a turn that comes before it."""
        now_ms = _now_ms()
        late_ms = now_ms - self._due_ms
        if late_ms >= STALL_MS:
            self._still_ms += late_ms
            self._stalled_at_ms = now_ms
            self._due_ms = now_ms  # the beat itself is still to come, and must not count it again


def _now_ms() -> int:
    return monotonic_ns() // MS_NS
