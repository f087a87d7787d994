"""Tiers: their number of delivery permits."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime import limits
from duetime.wire.shapes import In, Out


class TierPatch(In, frozen=True):
    """New limits of a tier, effective immediately."""

    concurrency: Annotated[
        int, Meta(ge=1, le=limits.PERMITS_MAX, description="Maximum concurrent deliveries.")
    ]


class TierSize(Out, frozen=True):
    """The current limits of a tier."""

    tier: str
    concurrency: int
