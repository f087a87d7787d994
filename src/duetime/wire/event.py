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
    previous_status: Annotated[Status | None, Meta(description="None when the intent is created.")] = None
    at: Moment | None = None
    delivery: Annotated[int, Meta(description="The number of the newest delivery; 0 before the first.")] = 0
    attempts: Annotated[int, Meta(description="Attempts so far, including the current one.")] = 0
    precision_tier: TierName = ""
    lane: str = ""
    late_ms: int | None = None
    limited_ms: int = 0
    error: Annotated[
        str | None, Meta(description="The error that caused this transition, if an error did.")
    ] = None
    error_kind: Annotated[
        str | None,
        Meta(description="The kind of the error: the class of an exception, or timeout, lost, http ..."),
    ] = None
    task: Annotated[
        str, Meta(description="The name of the task, or type.message of an entity; empty for others.")
    ] = ""
    queue: Annotated[str, Meta(description="The queue of a task; empty for others.")] = ""
    tags: dict[str, str] = {}


class Transition(EventBody, frozen=True):
    """One change of an intent's status, and its event id."""

    event_id: Annotated[str, Meta(description="A stream of events can be resumed after this id.")] = ""
    gap: Annotated[
        bool, Meta(description="Not a transition: events before this one were not kept, so some are missing.")
    ] = False
