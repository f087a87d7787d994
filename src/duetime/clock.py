"""What time it is. The only module of the product that asks the operating system for the date.

Duetime follows the wall clock, because a moment named by a user is the moment on everybody's watch. When
the clock is set back, the engine's time goes back with it: what was not due yet waits for its moment, and
what is submitted meanwhile is measured by the new time. Nothing is early by the clock on the wall, and
nothing waits for the old time to come again, except what was already given that very time.

How long something took is another question: leases, rates and whether a leap is believed go by a clock that
nobody sets. The pump compares both, and writes a `Leap` where they part.

A clock must tell the time (`Clock`). Two abilities are optional, each a protocol of its own that the engine
checks with `isinstance`:

- `SteadyClock` also measures elapsed time. Without it, no leap of the clock is noticed.
- `AlarmClock` also makes the engine's alarm. Such a clock is set by hand: its owner decides when time passes,
  so the engine arms no timer of the system and does not watch whether the event loop stood still.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable


class Clock(Protocol):
    """The wall clock. What every clock must do."""

    def now_ms(self) -> int:
        """Milliseconds since 1970. May leap ahead or back."""


@runtime_checkable
class SteadyClock(Clock, Protocol):
    """Optional: a clock that also measures elapsed time, even while somebody sets the wall clock."""

    def steady_ms(self) -> int:
        """Milliseconds since an arbitrary moment. Never falls and never leaps."""


class Alarm(Protocol):
    """Calls back once, at or after a moment."""

    def set(self, at_ms: int | None) -> None:
        """Ring at this moment instead of the moment set before; None: do not ring."""

    def close(self) -> None:
        """Never ring again. Closing twice is fine."""


@runtime_checkable
class AlarmClock(Clock, Protocol):
    """Optional: a clock set by hand, which therefore makes the alarm that follows it."""

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
    """How far a clock is ahead of its steady time: a number that changes only when somebody sets the clock.
    Always 0 for a clock that is no `SteadyClock`."""
    if not isinstance(clock, SteadyClock):
        return lambda: 0
    now_ms, steady_ms = clock.now_ms, clock.steady_ms
    return lambda: now_ms() - steady_ms()
