"""What time it is. The only module of the product that asks the operating system for the date.

Duetime follows the wall clock, because a moment named by a user is the moment on everybody's watch. When
the clock is set back, the engine's time goes back with it: what was not due yet waits for its moment, and
what is submitted meanwhile is measured by the new time. Nothing is early by the clock on the wall, and
nothing waits for the old time to come again, except what was already given that very time.

How long something took is another question: leases, rates and whether a leap is believed go by a clock that
nobody sets. The pump compares both, and writes a `Leap` where they part.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since 1970. A clock may have a `steady_ms`, too (see `SteadyClock`)."""

    def now_ms(self) -> int: ...


class SteadyClock(Clock, Protocol):
    """A clock that also says how much time has passed, whoever sets it meanwhile."""

    def steady_ms(self) -> int:
        """Milliseconds since some moment; they only grow, and never leap."""


def monotonic_ns() -> int:
    """Nanoseconds since some moment; whoever sets the clock does not change them."""
    return time.monotonic_ns()


class SystemClock:
    """The wall clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def ahead_of(clock: Clock) -> Callable[[], int]:
    """How far a clock is ahead of its steady one: a number that changes only when somebody sets the clock.
    Of a clock that has no steady one it never changes."""
    steady_ms: Callable[[], int] | None = getattr(clock, "steady_ms", None)
    if steady_ms is None:
        return lambda: 0
    return lambda: clock.now_ms() - steady_ms()
