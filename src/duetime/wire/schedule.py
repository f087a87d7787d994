"""The JSON of schedules: what is sent in and what is shown. The rules of `wire` hold."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from duetime import limits
from duetime.wire.fairness import FairnessKey, FairnessWeight
from duetime.wire.intent import (
    CallbackIn,
    CallbackOut,
    EntityIn,
    EntityOut,
    ExpiredActionName,
    Json,
    LimitIn,
    LimitOut,
    Milliseconds,
    Name,
    Priority,
    RedeliveryIn,
    RedeliveryOut,
    SloIn,
    SloOut,
    StreamIn,
    StreamOut,
    Tags,
    TaskIn,
    TaskOut,
    TierName,
    Time,
)
from duetime.wire.shapes import In, Out

OverlapName = Literal["ALLOW", "SKIP", "QUEUE_ONE", "CANCEL_RUNNING"]
MisfireName = Literal["ONCE", "SKIP", "CATCH_UP"]


class PlannedIntent(In, frozen=True):
    """The intent that each tick creates, without a time: the tick is its time."""

    callback: CallbackIn | None = None
    task: TaskIn | None = None
    entity: EntityIn | None = None
    stream: StreamIn | None = None
    payload: Json | UnsetType = UNSET
    precision_tier: TierName | None = None
    slo: SloIn | None = None
    ack_level: Literal["ASYNC", "BATCH_DEFERRED", "DURABLE", "REPLICATED"] | None = None
    guarantee: Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"] | None = None
    expired_action: ExpiredActionName | None = None
    priority: Priority | None = None
    redelivery: RedeliveryIn | None = None
    timeout_ms: Milliseconds | None = None
    lease_ms: Milliseconds | None = None
    result_ttl_ms: Milliseconds | None = None
    tags: Tags | None = None
    limits: Annotated[list[LimitIn], Meta(max_length=limits.LIMITS_MAX)] | None = None
    fairness_key: FairnessKey | None = None
    fairness_weight: FairnessWeight | None = None
    shard_key: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] | None = None


class NewSchedule(In, frozen=True):
    """A recurrence (exactly one of cron and everyMs), and the intent that each tick creates."""

    intent: PlannedIntent
    cron: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=limits.CRON_CHARS_MAX,
                description="Five fields, or six with seconds first.",
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
                description="Counted from start, or from 1970.",
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
    start: Time | None = None
    end: Time | None = None
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


class PlannedOut(Out, frozen=True):
    """The intent that each tick creates."""

    callback: CallbackOut | None
    task: TaskOut | None
    entity: EntityOut | None
    stream: StreamOut | None
    payload: Any
    precision_tier: str
    slo: SloOut | None
    ack_level: str
    guarantee: str
    expired_action: ExpiredActionName
    priority: int
    redelivery: RedeliveryOut
    timeout_ms: int
    lease_ms: int
    result_ttl_ms: int | None
    tags: dict[str, str]
    limits: list[LimitOut]
    fairness_key: str | None
    fairness_weight: int
    shard_key: str | None


class ScheduleOut(Out, frozen=True):
    """The current state of a schedule."""

    id: str
    cron: str | None
    every_ms: int | None
    zone: str
    jitter_ms: int
    start: str | None
    end: str | None
    overlap: OverlapName
    misfire: MisfireName
    catch_up: int
    source: str
    intent: PlannedOut
    paused: bool
    next_at: Annotated[
        str | None, Meta(description="Time of the next tick without jitter; null if there is none.")
    ]
    last_at: Annotated[str | None, Meta(description="Time of the newest processed tick.")]
    last_intent_id: str | None
    queued_at: Annotated[str | None, Meta(description="A tick that waits for an earlier intent to end.")]
    made: int
    skipped: Annotated[int, Meta(description="Ticks skipped because an earlier intent had not ended.")]
    missed: Annotated[int, Meta(description="Ticks skipped because they were missed.")]
    refused: Annotated[str | None, Meta(description="Why the intent of the next tick was refused so far.")]
    revision: int
    created_at: str
    updated_at: str


class SchedulesOut(Out, frozen=True):
    """All schedules, by id."""

    schedules: list[ScheduleOut]


class NextOut(Out, frozen=True):
    """The next ticks, without their jitter."""

    times: list[str]
