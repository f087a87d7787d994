"""Schedules: a recurrence, and the intent that each tick creates."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from duetime import limits
from duetime.wire import patterns
from duetime.wire.intent import Name, Planned, PlannedIntent
from duetime.wire.shapes import In, Moment, Out, Time

OverlapName = Literal["ALLOW", "SKIP", "QUEUE_ONE", "CANCEL_RUNNING"]
MisfireName = Literal["ONCE", "SKIP", "CATCH_UP"]


class NewSchedule(In, frozen=True):
    """A recurrence (exactly one of cron and everyMs), and the intent that each tick creates."""

    intent: PlannedIntent
    cron: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=limits.CRON_CHARS_MAX,
                description="Cron expression: five fields, or six with seconds first.",
                examples=["0 9 * * MON-FRI"],
            ),
        ]
        | None
    ) = None
    every_ms: (
        Annotated[
            int,
            Meta(
                ge=limits.EVERY_MS_MIN,
                le=limits.RETRY_DELAY_MS_MAX,
                description="Interval between ticks, counted from start or from 1970.",
                examples=[300_000],
            ),
        ]
        | None
    ) = None
    zone: Annotated[
        Name, Meta(description="Time zone of the cron expression.", examples=["Europe/Paris"])
    ] = "UTC"
    jitter_ms: Annotated[
        int, Meta(ge=0, le=limits.DAY_MS, description="Maximum delay of each intent after its tick.")
    ] = 0
    start: Annotated[Time, Meta(description="No tick before this time.")] | None = None
    end: Annotated[Time, Meta(description="No tick after this time.")] | None = None
    overlap: Annotated[
        OverlapName, Meta(description="What happens to a tick while an earlier intent has not ended.")
    ] = "ALLOW"
    misfire: Annotated[MisfireName, Meta(description="What happens to missed ticks.")] = "ONCE"
    catch_up: Annotated[
        int, Meta(ge=1, le=limits.CATCH_UP_MAX, description="Maximum missed ticks to run with CATCH_UP.")
    ] = 1
    source: Annotated[
        str, Meta(max_length=32, description="Owner of the schedule; app for schedules of a program.")
    ] = ""
    skip: Annotated[
        list[Annotated[str, Meta(pattern=patterns.DATE, examples=["2030-12-25"])]],
        Meta(max_length=limits.SKIP_DATES_MAX, description="Dates without ticks, in the time zone."),
    ] = []


class Schedule(Out, frozen=True):
    """The current state of a schedule."""

    id: str
    cron: str | None
    every_ms: int | None
    zone: str
    jitter_ms: int
    start: Moment | None
    end: Moment | None
    overlap: OverlapName
    misfire: MisfireName
    catch_up: int
    source: str
    intent: Planned
    paused: bool
    next_at: Annotated[
        Moment | None, Meta(description="Time of the next tick without jitter; null if there is none.")
    ]
    last_at: Annotated[Moment | None, Meta(description="Time of the newest processed tick.")]
    last_intent_id: str | None
    queued_at: Annotated[Moment | None, Meta(description="A tick that waits for an earlier intent to end.")]
    made: int
    skipped: Annotated[int, Meta(description="Ticks skipped because an earlier intent had not ended.")]
    missed: Annotated[int, Meta(description="Ticks skipped because they were missed.")]
    refused: Annotated[str | None, Meta(description="Why the intent of the next tick was refused so far.")]
    revision: int
    created_at: Moment
    updated_at: Moment
    skip: list[str] = []
    orphan: Annotated[
        bool, Meta(description="The program that registered it has started without it since.")
    ] = False


class Schedules(Out, frozen=True):
    """All schedules, by id."""

    schedules: list[Schedule]


class BackfillRange(In, frozen=True):
    """A range in the past."""

    from_: Annotated[Time, Meta(description="The first tick at or after this time.")] = field(name="from")
    to: Annotated[Time, Meta(description="Ticks before this time; not later than now.")]


class Backfill(Out, frozen=True):
    """The result of a backfill."""

    ticks: Annotated[int, Meta(description="Ticks in the range.")]
    created: int
    existing: Annotated[int, Meta(description="Ticks whose intent existed.")]


class OwnedSchedules(In, frozen=True):
    """The schedules that a program has. Others with its source are orphans."""

    source: Annotated[str, Meta(min_length=1, max_length=32)]
    ids: Annotated[list[Name], Meta(max_length=limits.SCHEDULES_MAX)]
    delete: Annotated[bool, Meta(description="Delete the orphans.")] = False


class Orphans(Out, frozen=True):
    """Schedules whose program has started without them."""

    ids: list[str]


class NextTicks(Out, frozen=True):
    """The next ticks, without their jitter."""

    times: list[Moment]
