"""Operations on many intents: which of them, and the result."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from duetime import limits
from duetime.wire.intent import Name, Tags, TierName
from duetime.wire.shapes import In, Out, Time

Verb = Literal["cancel", "revive", "purge"]
"""An operation on many intents."""
ManyLimit = Annotated[
    int, Meta(ge=1, le=limits.BATCH_CREATE_MAX, description="Maximum number of intents of this request.")
]
ManyCursor = Annotated[str, Meta(description="Continue here: nextCursor of the previous response.")]


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


class CancelMany(In, frozen=True):
    """The intents to cancel: those that match the filter and have not ended, newest first."""

    filter: FilterIn
    limit: ManyLimit = limits.BULK_SLICE
    cursor: ManyCursor | None = None


class Failure(Out, frozen=True):
    intent_id: str
    error_code: int
    message: str


class Bulk(Out, frozen=True):
    """The result of a bulk operation."""

    matched: int
    done: int
    failed: list[Failure]
    next_cursor: Annotated[
        str | None, Meta(description="More intents may match: send it as cursor. Null: there are no more.")
    ] = None
