"""A state transition of an intent, for observers and streams of events."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime.wire.intent import Status, TierName
from duetime.wire.shapes import Moment, Out


class EventBody(Out, frozen=True):
    """One change of an intent's status, as the data of a server-sent event."""

    intent_id: str
    status: Status
    previous_status: Status | None = None
    at: Moment | None = None
    delivery: int = 0
    attempts: int = 0
    precision_tier: TierName = ""
    lane: str = ""
    late_ms: int | None = None
    limited_ms: int = 0
    error: str | None = None


class Transition(EventBody, frozen=True):
    """One change of an intent's status, and its event id."""

    event_id: Annotated[str, Meta(description="A stream of events can be resumed after this id.")] = ""
    gap: Annotated[
        bool, Meta(description="Not a transition: events before this one were not kept, so some are missing.")
    ] = False
