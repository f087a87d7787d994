"""Replay: the history of an intent, and the state of the whole engine at a point in time."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime.wire.history import Entry
from duetime.wire.intent import Planned, Status
from duetime.wire.shapes import Moment, Out


class FieldsThen(Planned, frozen=True):
    """What callers had set, up to that time: target, options and payload."""

    execute_at: Moment | None = None
    deadline: Moment | None = None


class Life(Out, frozen=True):
    """The history of an intent; if a time was given, also its state at that time."""

    intent_id: str
    status: Annotated[Status, Meta(description="The current status.")]
    at: Annotated[Moment | None, Meta(description="The given time.")]
    status_at: Annotated[
        Status | None,
        Meta(
            description="Its status at that time; null: no time was given, or the intent did not exist yet."
        ),
    ]
    steps: Annotated[list[Entry], Meta(description="Up to the given time, if any.")]
    fields: Annotated[
        FieldsThen | None,
        Meta(
            description="Its fields and payload at that time, or now. Null: it did not exist yet, or it was "
            "changed later and the stored log does not reach back."
        ),
    ] = None


class LogPlace(Out, frozen=True):
    """A position on the log."""

    position: int
    record: int
    epoch: int
    written_at: Moment


class Past(Out, frozen=True):
    """The state of the engine at a time."""

    at: Moment
    counts: Annotated[dict[str, int], Meta(description="Number of intents by status.")]
    tiers: Annotated[dict[str, dict[str, int]], Meta(description="The same for each tier.")]
    exact: Annotated[
        bool, Meta(description="False if very many intents were open: some are then counted as DUE.")
    ]
    log: Annotated[LogPlace | None, Meta(description="Null: the stored log begins later, or is in memory.")]
