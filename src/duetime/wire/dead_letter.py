"""Dead letters: which of them an operation concerns."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime import limits
from duetime.wire.bulk import FilterIn, ManyCursor, ManyLimit
from duetime.wire.intent import KnownId
from duetime.wire.shapes import In


class ManyDeadLetters(In, frozen=True):
    """Dead letters by id, or by a filter."""

    intent_ids: Annotated[list[KnownId], Meta(max_length=limits.BATCH_CREATE_MAX)] | None = None
    filter: FilterIn | None = None
    limit: ManyLimit = limits.BULK_SLICE
    cursor: ManyCursor | None = None
