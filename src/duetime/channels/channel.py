"""The `Channel` protocol: carries deliveries out, with exactly one outcome for each delivery.

A channel takes deliveries and answers each with one `Settlement` passed to `settle`, in any order, at
any later time, from the loop's thread; many in one call are welcome. It never raises from `deliver`, never
answers twice, and never forgets: a delivery that it cannot carry out gets an outcome that says so. It
knows nothing of the kernel or the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Settlement

Settler = Callable[[list[Settlement]], None]


class Channel(Protocol):
    """Carries deliveries out."""

    def open(self, settle: Settler) -> None:
        """Start. `settle` takes the outcomes."""

    def deliver(self, delivery: Deliver) -> None:
        """Take a delivery. It may start only at the next `flush`."""

    def flush(self) -> None:
        """A batch of deliveries is complete: start them."""

    def abort(self, abort: Abort) -> None:
        """Stop a delivery if it still runs. Its outcome is no longer needed, but may still come."""

    def running(self) -> int:
        """The number of deliveries that have no outcome yet."""

    async def close(self) -> None:
        """Stop running deliveries. They get no outcome here; the engine that starts next marks them Lost."""
