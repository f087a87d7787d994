"""The `Channel` protocol: carries deliveries out, with exactly one outcome for each delivery.

A channel takes deliveries and passes one `Settlement` for each to `settle`, in any order, at any later time,
from the event loop's thread; one call may contain many. `deliver` never raises. Each delivery gets exactly
one outcome, also if the channel cannot carry it out. A channel knows nothing of the kernel or the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from duetime.protocol.effect import Abort, Deliver, Voided
from duetime.protocol.outcome import Outcome, Settlement

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


@runtime_checkable
class PullChannel(Channel, Protocol):
    """Optional: a channel whose consumers ask for deliveries. The kernel keeps their credits."""

    def void(self, voided: Voided) -> None:
        """A consumer lost its credits."""


class Span(Protocol):
    """The span of one call in a trace."""

    @property
    def traceparent(self) -> str | None:
        """The `traceparent` to send with the delivery."""

    def end(self, outcome: Outcome) -> None:
        """End the span with the outcome."""


Tracer = Callable[[Deliver], Span]
"""Begins the span of a delivery. A batch of webhooks is one call, represented by its first delivery."""
