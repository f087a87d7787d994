"""The clock. The only module of the product that asks the operating system for the date.

Duetime follows the wall clock, because users give times of the wall clock. If the clock is set back, the
engine's time goes back too: due intents that are not delivered yet wait again, and new work uses the new
time. No intent is early by the wall clock. Times that were computed from the old clock stay as they are.

Elapsed time is measured by the monotonic clock: for leases, rates, and the time after which a leap is
accepted. The pump compares both clocks and writes a `Leap` record if they differ.

Every clock tells the time (`Clock`). Two abilities are optional, each a protocol that the engine checks with
`isinstance`:

- `SteadyClock` also measures elapsed time. Without it, leaps of the clock are not detected.
- `AlarmClock` also creates the engine's alarm. Such a clock is set by hand: its owner decides when time
passes, so
  the engine arms no system timer and does not check whether the event loop was blocked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable


class Clock(Protocol):
    """The wall clock. Every clock implements this."""

    def now_ms(self) -> int:
        """Milliseconds since 1970. May leap ahead or back."""


@runtime_checkable
class SteadyClock(Clock, Protocol):
    """Optional: a clock that also measures elapsed time, even if the wall clock is set."""

    def steady_ms(self) -> int:
        """Milliseconds since an arbitrary moment. Never decreases and never leaps."""


class Alarm(Protocol):
    """Calls back once, at or after a given time."""

    def set(self, at_ms: int | None) -> None:
        """Ring at this time instead of the time set before; None: do not ring."""

    def close(self) -> None:
        """Never ring again. May be called twice."""


@runtime_checkable
class AlarmClock(Clock, Protocol):
    """Optional: a clock set by hand, which creates its own alarm."""

    def alarm(self, ring: Callable[[], None]) -> Alarm:
        """An alarm by this clock that calls `ring` in the event loop's thread. It may never ring, if the
        owner of the clock calls `Engine.advance` instead."""


def monotonic_ns() -> int:
    """Nanoseconds since an arbitrary moment. Setting the wall clock does not change them."""
    return time.monotonic_ns()


class SystemClock:
    """The wall clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def ahead_of(clock: Clock) -> Callable[[], int]:
    """The difference between a clock and its steady time. It changes only when the clock is set. Always 0 for
    a clock that is no `SteadyClock`."""
    if not isinstance(clock, SteadyClock):
        return lambda: 0
    now_ms, steady_ms = clock.now_ms, clock.steady_ms
    return lambda: now_ms() - steady_ms()
