"""Dead letters: which of them an operation concerns, and its result."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from duetime import limits
from duetime.wire.intent import KnownId, Name, Tags, TierName
from duetime.wire.shapes import In, Out, Time


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


class Failure(Out, frozen=True):
    intent_id: str
    error_code: int
    message: str


class Bulk(Out, frozen=True):
    """The result of a bulk operation."""

    matched: int
    done: int
    failed: list[Failure]
