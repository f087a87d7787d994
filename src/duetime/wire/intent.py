"""The JSON of the API: what is sent in and what is shown. OpenAPI is generated from these Structs.

Decoding is strict: an unknown field, a wrong type or a value out of range is refused with its place in the
body. Names are camelCase outside. What a Struct cannot say (one of two fields, a time in the past) is
checked by `compose`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, UnsetType

from duetime import limits
from duetime.wire import forms
from duetime.wire.claims import Collapse, Key, UniqueIn, UniqueOut
from duetime.wire.fairness import FairnessKey, FairnessWeight
from duetime.wire.problem import Problem
from duetime.wire.progress import ProgressOut
from duetime.wire.shapes import In, Out

Id = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.ID_CHARS_MAX,
        pattern=forms.ID,
        description="1 to 128 letters, digits or _ . : -",
    ),
]
KnownId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.ID_CHARS_MAX,
        pattern=forms.KNOWN_ID,
        description="The id of an existing intent. Intents of schedules have ids like schedule@time.",
    ),
]
Time = Annotated[
    str | int | float,
    Meta(
        description="ISO 8601 with any offset, or a number of seconds since 1970.",
        examples=["2030-01-31T09:00:00+01:00"],
    ),
]
Name = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]
TierName = Annotated[
    str,
    Meta(
        description="ULTRA (10 ms), FAST (50), HIGH (100), STANDARD (500) or ECONOMY (1000), in any case.",
        extra_json_schema={"enum": list(limits.TIER_NAMES)},
    ),
]
Tags = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=limits.TAG_CHARS_MAX)],
        Annotated[str, Meta(max_length=limits.TAG_CHARS_MAX)],
    ],
    Meta(max_length=limits.TAGS_MAX, description="Names and values to filter by."),
]
Milliseconds = Annotated[int, Meta(ge=1, le=limits.RETRY_DELAY_MS_MAX)]
Json = Annotated[Raw, Meta(description="Any JSON.")]
Priority = Annotated[
    Annotated[int, Meta(ge=-limits.PRIORITY_MAX, le=limits.PRIORITY_MAX)] | Literal["HIGH", "NORMAL", "LOW"],
    Meta(description="Seconds of head start, or HIGH (300), NORMAL (0), LOW (-300)."),
]
AfterOnName = Annotated[
    Literal["SUCCESS", "END"],
    Meta(description="SUCCESS: run if all dependencies succeed. END: run when all have ended."),
]
Members = Annotated[
    int,
    Meta(
        ge=1,
        le=limits.GROUP_MEMBERS_MAX,
        description="Makes the intent the callback of a group with this number of members.",
    ),
]
ExpiredActionName = Literal["DISCARD", "DEAD_LETTER"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
StatusName = Literal[
    "SCHEDULED", "DUE", "DISPATCHING", "BLOCKED", "ACKED", "DEAD_LETTERED", "EXPIRED", "CANCELED"
]


# What is sent in.


class CallbackIn(In, frozen=True):
    """A webhook."""

    url: Annotated[
        str, Meta(min_length=1, max_length=limits.URL_CHARS_MAX, examples=["http://localhost:9000/hook"])
    ]
    method: Method = "POST"
    headers: Annotated[dict[str, str], Meta(description="Headers of the request.")] = {}
    body: Annotated[
        Raw | UnsetType,
        Meta(description="Body of the request: a string is sent as text, any other value as JSON."),
    ] = UNSET
    batch: Annotated[
        bool, Meta(description="Allow sending in one request with other callbacks to the same URL.")
    ] = False


class TaskIn(In, frozen=True):
    """A function of a worker."""

    name: Name
    queue: Name = "default"


class EntityIn(In, frozen=True):
    """A message to one entity: its messages run one at a time, in order."""

    type: Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX, pattern=forms.TYPE)]
    id: Name
    message: Name


class StreamIn(In, frozen=True):
    """Subscribers of a stream: each intent goes to one of them."""

    name: Name


class SloIn(In, frozen=True):
    """Lateness objective; a tier is chosen to meet it."""

    max_tardiness_ms: Annotated[int, Meta(ge=1, le=limits.DAY_MS)]
    reliability: Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"] = "AT_LEAST_ONCE"


class RedeliveryIn(In, frozen=True):
    """Retry policy: number of attempts and delays."""

    max_attempts: Annotated[int, Meta(ge=1, le=limits.ATTEMPTS_MAX)] = limits.ATTEMPTS_DEFAULT
    backoff: Literal["exponential", "fixed"] = "exponential"
    initial_delay_ms: Annotated[int, Meta(ge=0, le=limits.RETRY_DELAY_MS_MAX)] = limits.RETRY_INITIAL_MS
    max_delay_ms: Annotated[int, Meta(ge=0, le=limits.RETRY_DELAY_MS_MAX)] = limits.RETRY_MAX_MS
    multiplier: Annotated[int | float, Meta(description="From 1 to 1000.")] = limits.RETRY_MULTIPLIER
    jitter: bool = True


Rate = Annotated[
    str,
    Meta(
        pattern=forms.RATE,
        description="Maximum starts per period: 20/s, 100/m, 5/10s.",
        examples=["20/s"],
    ),
]


class LimitIn(In, frozen=True):
    """Caps starts per period and concurrent runs per key, exactly, across all queues and workers."""

    key: Annotated[str, Meta(min_length=1, max_length=limits.KEY_CHARS_MAX, examples=["tenant:42"])]
    rate: Rate | None = None
    burst: Annotated[int, Meta(ge=1, le=limits.RATE_MAX)] = 1
    concurrency: Annotated[int, Meta(ge=1, le=limits.RATE_MAX)] | None = None


class NewIntent(In, frozen=True):
    """A new intent: a time, a target and options."""

    intent_id: Id | None = None
    execute_at: Time | None = None
    delay_ms: Annotated[int, Meta(ge=0, le=limits.TIME_MS_MAX)] | None = None
    deadline: Time | None = None
    expired_action: ExpiredActionName | None = None
    precision_tier: TierName | None = None
    slo: SloIn | None = None
    ack_level: Literal["ASYNC", "BATCH_DEFERRED", "DURABLE", "REPLICATED"] | None = None
    guarantee: Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"] | None = None
    callback: CallbackIn | None = None
    task: TaskIn | None = None
    entity: EntityIn | None = None
    stream: StreamIn | None = None
    payload: Json | UnsetType = UNSET
    priority: Priority | None = None
    redelivery: RedeliveryIn | None = None
    timeout_ms: Milliseconds | None = None
    lease_ms: Milliseconds | None = None
    result_ttl_ms: Milliseconds | None = None
    after: Annotated[list[KnownId], Meta(max_length=limits.AFTER_MAX)] | None = None
    after_on: AfterOnName | None = None
    group: (
        Annotated[Id, Meta(description="The group (the id of its callback). The member's id is GROUP.n.")]
        | None
    ) = None
    members: Members | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=limits.KEY_CHARS_MAX)] | None = None
    on_duplicate: Literal["return", "reject"] | None = None
    collapse_key: Key | None = None
    collapse: Collapse | None = None
    unique: UniqueIn | None = None
    tags: Tags | None = None
    limits: Annotated[list[LimitIn], Meta(max_length=limits.LIMITS_MAX)] | None = None
    fairness_key: FairnessKey | None = None
    fairness_weight: FairnessWeight | None = None
    shard_key: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] | None = None
    traceparent: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] | None = None


class PatchIntent(In, frozen=True):
    """Changes of an intent that is neither final nor running. Omitted fields stay."""

    execute_at: Time | UnsetType = UNSET
    deadline: Annotated[Time | UnsetType | None, Meta(description="null removes the deadline.")] = UNSET
    expired_action: ExpiredActionName | UnsetType = UNSET
    redelivery: RedeliveryIn | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    payload: Json | UnsetType = UNSET


class ReviveIntent(In, frozen=True):
    """Changes of a dead letter when it is revived."""

    execute_at: Time | None = None
    deadline: Annotated[Time | UnsetType | None, Meta(description="null removes the deadline.")] = UNSET
    callback: CallbackIn | None = None
    redelivery: RedeliveryIn | None = None
    payload: Json | UnsetType = UNSET


class CancelIntent(In, frozen=True):
    """What to cancel. Without a body: the intent alone."""

    tree: Annotated[
        bool,
        Meta(description="Also cancel the dependents and, for a group's callback, the members; recursively."),
    ] = False


class Nothing(In, frozen=True):
    """An empty object, or no body at all."""


# What is shown.


class CallbackOut(Out, frozen=True):
    url: str
    method: str
    headers: dict[str, str]
    body: Any
    batch: bool


class TaskOut(Out, frozen=True):
    name: str
    queue: str


class EntityOut(Out, frozen=True):
    type: str
    id: str
    message: str


class StreamOut(Out, frozen=True):
    name: str


class SloOut(Out, frozen=True):
    """The lateness objective, and why this tier was chosen."""

    max_tardiness_ms: int
    reliability: str
    tier: str
    reason: str


class RedeliveryOut(Out, frozen=True):
    max_attempts: int
    backoff: str
    initial_delay_ms: int
    max_delay_ms: int
    multiplier: float
    jitter: bool


class LimitOut(Out, frozen=True):
    key: str
    rate: str | None
    burst: int
    concurrency: int | None


class ErrorOut(Out, frozen=True):
    """The last error."""

    at: str
    delivery: int
    kind: str
    message: str
    http_status: int | None


class IntentOut(Out, frozen=True):
    """The current state of an intent."""

    intent_id: str
    status: StatusName
    execute_at: str
    deadline: str | None
    expired_action: ExpiredActionName
    precision_tier: str
    slo: SloOut | None
    ack_level: str
    guarantee: str
    callback: CallbackOut | None
    task: TaskOut | None
    entity: EntityOut | None
    stream: StreamOut | None
    payload: Any
    priority: int
    redelivery: RedeliveryOut
    timeout_ms: int
    lease_ms: int
    result_ttl_ms: int | None
    after: tuple[str, ...]
    after_on: str
    group: str | None
    members: int | None
    joined: int | None
    left: int | None
    idempotency_key: str | None
    collapse_key: str | None
    collapse: str | None
    unique: UniqueOut | None
    tags: dict[str, str]
    limits: list[LimitOut]
    fairness_key: str | None
    fairness_weight: int
    shard_key: str | None
    traceparent: str | None
    attempts: int
    delivery: int
    revision: int
    created_at: str
    updated_at: str
    due_at: str | None
    first_dispatch_at: str | None
    finished_at: str | None
    next_attempt_at: str | None
    late_ms: int | None
    limited_ms: int
    last_error: ErrorOut | None
    result: Any
    result_gone: bool
    progress: ProgressOut | None


class PageOut(Out, frozen=True):
    """A page of results, with the cursor of the next page."""

    items: list[IntentOut]
    next_cursor: str | None
    partial: Annotated[
        bool,
        Meta(
            description="True: the page is not full, perhaps empty, and there may be more. One request looks"
            " through a bounded number of intents; go on with nextCursor."
        ),
    ] = False


class BatchItemOut(Out, frozen=True, omit_defaults=True):
    """The result for one intent of a batch: `intent` or `error`."""

    status: int
    intent: IntentOut | None = None
    error: Problem | None = None


class BatchOut(Out, frozen=True):
    """The results in the order of the request."""

    items: list[BatchItemOut]
    created: int
    existing: int
    failed: int
