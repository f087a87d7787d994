"""The timeline: upcoming intents by time slot, the capacity, and the predicted lateness."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from duetime.wire.shapes import Moment, Out

RISKS: Final = ("NONE", "LOW", "HIGH")


class TimelineSlot(Out, frozen=True):
    """One slot of time."""

    at: Annotated[Moment, Meta(description="Start of the slot.")]
    count: int
    by_tier: dict[str, int]
    by_queue: dict[str, int]
    capacity: Annotated[int, Meta(description="Number of deliveries that all tiers together can do.")]
    predicted_lateness_ms: float


class Peak(Out, frozen=True):
    """The busiest slot."""

    at: Moment
    count: int
    per_second: float


class Capacity(Out, frozen=True):
    """The capacity of a group of deliveries that share permits or workers."""

    name: Annotated[
        str, Meta(description="The tier, if its permits are the limit; the queue, if its workers are.")
    ]
    per_second: float
    at_once: float
    delivery_ms: float
    measured: Annotated[
        bool, Meta(description="False while nothing was delivered: the duration of a delivery is assumed.")
    ]


class Timeline(Out, frozen=True):
    """The upcoming intents."""

    start: Moment
    end: Moment
    slot_ms: int
    total: int
    slots: list[TimelineSlot]
    peak: Peak | None
    capacity: list[Capacity]
    predicted_lateness_ms: Annotated[dict[str, float], Meta(description="The maximum of each tier.")]
    risk: Annotated[
        str,
        Meta(
            description="NONE, LOW (above half of a bound) or HIGH (above a bound).",
            extra_json_schema={"enum": list(RISKS)},
        ),
    ]
    narrative: str
