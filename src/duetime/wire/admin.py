"""Requests and responses for operators: queues, tiers, dead letters."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from duetime import limits
from duetime.wire.intent import KnownId, Name, Rate, Tags, TierName
from duetime.wire.shapes import In, Out, Time

OrderName = Literal["FIFO", "EXPECTED", "SHADOW"]


class FilterIn(In, frozen=True):
    """A filter with the same names as the query of a list."""

    status: str | None = None
    tier: TierName | None = None
    queue: Name | None = None
    task: Name | None = None
    entity: Annotated[str, Meta(description="TYPE, or TYPE/ID")] | None = None
    tags: Tags | None = None
    from_: Time | None = field(default=None, name="from")
    to: Time | None = None


class ManyDeadLetters(In, frozen=True):
    """Dead letters by id, or by a filter."""

    intent_ids: Annotated[list[KnownId], Meta(max_length=limits.BATCH_CREATE_MAX)] | None = None
    filter: FilterIn | None = None
    limit: Annotated[int, Meta(ge=1, le=limits.BATCH_CREATE_MAX)] = 1_000


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


class TierPatch(In, frozen=True):
    """New limits of a tier, effective immediately."""

    concurrency: Annotated[
        int, Meta(ge=1, le=limits.PERMITS_MAX, description="Maximum concurrent deliveries.")
    ]


class Failure(Out, frozen=True):
    intent_id: str
    error_code: int
    message: str


class Bulk(Out, frozen=True):
    """The result of a bulk operation."""

    matched: int
    done: int
    failed: list[Failure]


class TierSize(Out, frozen=True):
    tier: str
    concurrency: int


class Lane(Out, frozen=True):
    """Figures and limits of a lane."""

    name: str
    paused: bool
    pushed: bool
    pending: int
    ready: int
    running: int
    consumers: int
    concurrency: int | None = None
    rate: str | None = None
    burst: int = 1
    pending_max: int | None = None
    priority: int = 0
    order: OrderName = "FIFO"
