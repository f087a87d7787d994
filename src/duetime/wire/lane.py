"""Lanes: their figures and limits."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from duetime import limits
from duetime.wire.intent import Rate
from duetime.wire.shapes import In, Out

OrderName = Literal["FIFO", "EXPECTED", "SHADOW"]


class LanePatch(In, frozen=True):
    """New limits of a lane. Omitted fields stay; null removes a limit."""

    concurrency: Annotated[int, Meta(ge=1, le=limits.RATE_MAX)] | UnsetType | None = UNSET
    rate: Rate | UnsetType | None = UNSET
    burst: Annotated[int, Meta(ge=1, le=limits.RATE_MAX)] | UnsetType = UNSET
    pending_max: Annotated[int, Meta(ge=1, le=10**12)] | UnsetType | None = UNSET
    priority: Annotated[int, Meta(ge=-limits.PRIORITY_MAX, le=limits.PRIORITY_MAX)] | UnsetType = UNSET
    paused: bool | UnsetType = UNSET
    order: (
        Annotated[
            OrderName,
            Meta(description="Order of arrival (FIFO), or shortest expected duration first."),
        ]
        | UnsetType
    ) = UNSET


class Lane(Out, frozen=True):
    """Figures and limits of a lane."""

    name: Annotated[str, Meta(description="Kind and name, such as task:default or stream:news.")]
    paused: bool
    pushed: Annotated[bool, Meta(description="The engine delivers; otherwise consumers ask for intents.")]
    pending: Annotated[int, Meta(description="Intents that have not ended.")]
    ready: Annotated[int, Meta(description="Due intents that wait for delivery.")]
    running: int
    consumers: Annotated[int, Meta(description="Connections that ask for intents of the lane.")]
    concurrency: int | None = None
    rate: str | None = None
    burst: int = 1
    pending_max: int | None = None
    priority: int = 0
    order: OrderName = "FIFO"


class Lanes(Out, frozen=True):
    """Lanes that have intents, consumers or settings, or are paused; by name."""

    lanes: list[Lane]
    next_cursor: Annotated[str | None, Meta(description="Cursor of the next page; null at the end.")] = None
