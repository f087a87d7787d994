"""What time it is. The only module of the product that asks the operating system for the date.

Duetime follows the wall clock, because a moment named by a user is the moment on everybody's watch. When
the clock is set back, the engine's time goes back with it: what was not due yet waits for its moment, and
what is submitted meanwhile is measured by the new time. Nothing is early by the clock on the wall, and
nothing waits for the old time to come again, except what was already given that very time.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since 1970."""

    def now_ms(self) -> int: ...


def monotonic_ns() -> int:
    """Nanoseconds since some moment; whoever sets the clock does not change them."""
    return time.monotonic_ns()


class SystemClock:
    """The wall clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
