"""The `Channel` protocol: out to the world and back, with exactly one outcome for each delivery.

A channel is given deliveries and answers each with one `Settlement` handed to `settle`, in any order, at
any later time, from the loop's thread; many at once are welcome. It never raises from `deliver`, never
answers twice, and never forgets: what it cannot carry out it answers with an outcome that says so. It
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
        """Begin. `settle` takes the outcomes."""

    def deliver(self, delivery: Deliver) -> None:
        """Take a delivery. Starting it may wait for `flush`."""

    def flush(self) -> None:
        """A batch of deliveries is complete: start them."""

    def abort(self, abort: Abort) -> None:
        """Stop a delivery if it still runs. Its outcome is not wanted any more, but may come."""

    def running(self) -> int:
        """Deliveries that have no outcome yet."""

    async def close(self) -> None:
        """Stop what still runs; those deliveries get no outcome (the engine that follows says Lost)."""
