"""An intent on the network: the one declaration of its fields.

Callers send `NewIntent` and receive `Intent`. OpenAPI, the options of Python and of the command line, the
mapping of gRPC and the reference are generated from these Structs. Decoding is strict: an unknown field, a
wrong type or a value out of range is refused with its path in the body. Rules that a Struct cannot express
(one of two fields, a time in the past) are checked by `api.codec.intent_decoder`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Raw, UnsetType

from duetime import limits
from duetime.wire import patterns
from duetime.wire.problem import Problem
from duetime.wire.progress import Progress
from duetime.wire.shapes import In, Moment, Out, Time


class Status(StrEnum):
    """The state of an intent."""

    SCHEDULED = "SCHEDULED"
    DUE = "DUE"
    DISPATCHING = "DISPATCHING"
    BLOCKED = "BLOCKED"
    ACKED = "ACKED"
    DEAD_LETTERED = "DEAD_LETTERED"
    EXPIRED = "EXPIRED"
    CANCELED = "CANCELED"

    @property
    def final(self) -> bool:
        """Whether the state is final: the intent does not change any more by itself."""
        return self in _FINAL


_FINAL = frozenset((Status.ACKED, Status.DEAD_LETTERED, Status.EXPIRED, Status.CANCELED))

# Values.

Id = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.ID_CHARS_MAX,
        pattern=patterns.ID,
        description="Intent id: 1 to 128 letters, digits or _ . : - (default: generated).",
    ),
]
KnownId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.ID_CHARS_MAX,
        pattern=patterns.KNOWN_ID,
        description="The id of an existing intent. Intents of schedules have ids like schedule@time.",
    ),
]
Name = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]
Key = Annotated[str, Meta(min_length=1, max_length=limits.KEY_CHARS_MAX)]
Milliseconds = Annotated[int, Meta(ge=1, le=limits.RETRY_DELAY_MS_MAX)]
Json = Annotated[Raw, Meta(description="Payload: any JSON.")]
Rate = Annotated[
    str,
    Meta(
        pattern=patterns.RATE,
        description="Maximum starts per period: 20/s, 100/m, 5/10s.",
        examples=["20/s"],
    ),
]

# Fields with their descriptions. A type that only one field uses is declared at that field.

TierName = Annotated[
    str,
    Meta(
        description="Punctuality: ULTRA (10 ms), FAST (50), HIGH (100), STANDARD (500) or ECONOMY (1000).",
        extra_json_schema={"enum": list(limits.TIER_NAMES)},
    ),
]
AckLevelName = Annotated[
    Literal["ASYNC", "BATCH_DEFERRED", "DURABLE", "REPLICATED"],
    Meta(description="How durable the intent must be before the request is answered."),
]
ACK_MEANINGS: Final[dict[str, str]] = {
    "ASYNC": "survives a crash of the process; a power loss may lose the last second (log.flush_ms)",
    "BATCH_DEFERRED": "survives a crash of the process; a power loss may lose the last 50 ms",
    "DURABLE": "survives a crash of the process and a power loss",
    "REPLICATED": "survives a crash of the process and a power loss (the log has one node)",
}
"""What an intent survives once the request is answered, by acknowledgement level."""
GuaranteeName = Annotated[
    Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"],
    Meta(description="Delivery guarantee: retried until acknowledged, or never run twice."),
]
ExpiredActionName = Annotated[
    Literal["DISCARD", "DEAD_LETTER"],
    Meta(description="At the deadline: DISCARD (the intent becomes EXPIRED) or DEAD_LETTER."),
]
AfterOnName = Annotated[
    Literal["SUCCESS", "END", "FAILURE"],
    Meta(
        description="Run if all dependencies succeed (SUCCESS), if all end (END), or if one fails (FAILURE)."
    ),
]
AfterDelayMs = Annotated[
    Milliseconds, Meta(description="Delay from the end of the dependencies, or of the group's members.")
]
FirstArgumentName = Annotated[
    Literal["RESULT", "RESULTS", "FAILURE"],
    Meta(description="First argument: the RESULT of the last dependency, all RESULTS, or the FAILURE."),
]
PRIORITIES: Final = {"HIGH": 300, "NORMAL": 0, "LOW": -300}
Priority = Annotated[
    Annotated[int, Meta(ge=-limits.PRIORITY_MAX, le=limits.PRIORITY_MAX)] | Literal["HIGH", "NORMAL", "LOW"],
    Meta(description="Head start in seconds, or HIGH (300), NORMAL (0), LOW (-300)."),
]
Tags = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=limits.TAG_CHARS_MAX)],
        Annotated[str, Meta(max_length=limits.TAG_CHARS_MAX)],
    ],
    Meta(max_length=limits.TAGS_MAX, description="Names and values to filter by."),
]
TimeoutMs = Annotated[Milliseconds, Meta(description="Maximum duration of one attempt.")]
LeaseMs = Annotated[
    Milliseconds, Meta(description="How long a worker may be silent before the attempt counts as lost.")
]
ResultTtlMs = Annotated[Milliseconds, Meta(description="How long the result can be read after the end.")]
FairnessKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.FAIRNESS_KEY_CHARS_MAX,
        description="Fairness key, such as the tenant: keys take turns in proportion to their weights.",
        examples=["tenant-42"],
    ),
]
FairnessWeight = Annotated[
    int, Meta(ge=1, le=limits.FAIRNESS_WEIGHT_MAX, description="Weight of the fairness key.")
]
ShardKey = Annotated[
    str,
    Meta(max_length=limits.NAME_CHARS_MAX, description="Stored with the intent; not interpreted yet."),
]
Traceparent = Annotated[
    str, Meta(max_length=limits.NAME_CHARS_MAX, description="W3C trace context to continue.")
]
Headers = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=limits.HEADER_NAME_CHARS_MAX, pattern=patterns.HEADER)],
        Annotated[str, Meta(max_length=limits.HEADER_CHARS_MAX)],
    ],
    Meta(max_length=limits.INTENT_HEADERS_MAX, description="Metadata for the function that runs the intent."),
]
ExpiresMs = Annotated[
    Milliseconds,
    Meta(description="Deadline, counted from the time of execution, or from the release of a dependent."),
]
ExecuteAt = Annotated[Time, Meta(description="When to run: ISO 8601 with any offset, or seconds since 1970.")]
Deadline = Annotated[Time, Meta(description="The intent does not run after this time.")]
NewDeadline = Annotated[
    Time | UnsetType | None,
    Meta(description="The intent does not run after this time; null removes the deadline."),
]
After = Annotated[
    list[KnownId],
    Meta(max_length=limits.AFTER_MAX, description="Dependencies: run after these intents."),
]
CollapseName = Annotated[
    Literal["DEBOUNCE", "THROTTLE"],
    Meta(description="Time of the new intent: its own (DEBOUNCE) or that of the replaced one (THROTTLE)."),
]

# Parts, in requests and responses. The strict variant of a part (`...In`) refuses unknown fields.


class Callback(Out, frozen=True):
    """A webhook."""

    url: Annotated[
        str, Meta(min_length=1, max_length=limits.URL_CHARS_MAX, examples=["http://localhost:9000/hook"])
    ]
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"],
        Meta(description="HTTP method."),
    ] = "POST"
    headers: Annotated[dict[str, str], Meta(description="Headers of the request.")] = {}
    body: Annotated[
        Any, Meta(description="Body of the request: a string is sent as text, any other value as JSON.")
    ] = None
    batch: Annotated[
        bool, Meta(description="Allow sending in one request with other callbacks to the same URL.")
    ] = False
    parents: Annotated[
        bool,
        Meta(description="Add the dependencies, or the group's members, with their results to the body."),
    ] = False
    on_end: (
        Annotated[
            str,
            Meta(
                max_length=limits.URL_CHARS_MAX,
                description="URL that is called if the intent is cancelled, dead-lettered or expires.",
                examples=["http://localhost:9000/ended"],
            ),
        ]
        | None
    ) = None


class CallbackIn(Callback, frozen=True, forbid_unknown_fields=True):
    """A webhook."""

    body: Annotated[
        Raw | UnsetType,
        Meta(description="Body of the request: a string is sent as text, any other value as JSON."),
    ] = UNSET


class TaskTarget(Out, frozen=True):
    """A function of a worker."""

    name: Name
    queue: Name = "default"


class TaskIn(TaskTarget, frozen=True, forbid_unknown_fields=True):
    """A function of a worker."""


class EntityTarget(Out, frozen=True):
    """A message to one entity: its messages run one at a time, in order."""

    type: Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX, pattern=patterns.TYPE)]
    id: Name
    message: Name


class EntityIn(EntityTarget, frozen=True, forbid_unknown_fields=True):
    """A message to one entity: its messages run one at a time, in order."""


class StreamTarget(Out, frozen=True):
    """Subscribers of a stream: each intent goes to one of them."""

    name: Name


class StreamIn(StreamTarget, frozen=True, forbid_unknown_fields=True):
    """Subscribers of a stream: each intent goes to one of them."""


class Slo(Out, frozen=True):
    """Lateness objective; a tier is chosen to meet it."""

    max_tardiness_ms: Annotated[int, Meta(ge=1, le=limits.DAY_MS, description="Maximum lateness.")]
    reliability: GuaranteeName = "AT_LEAST_ONCE"


class SloIn(Slo, frozen=True, forbid_unknown_fields=True):
    """Lateness objective; a tier is chosen to meet it."""


class ChosenSlo(Slo, frozen=True):
    """The lateness objective, and why this tier was chosen."""

    tier: str = ""
    reason: str = ""


class Redelivery(Out, frozen=True):
    """Retry policy: number of attempts and delays."""

    max_attempts: Annotated[
        int, Meta(ge=1, le=limits.ATTEMPTS_MAX, description="Total number of attempts.")
    ] = limits.ATTEMPTS_DEFAULT
    backoff: Annotated[
        Literal["exponential", "fixed"], Meta(description="How the delay grows from retry to retry.")
    ] = "exponential"
    initial_delay_ms: Annotated[
        int,
        Meta(ge=0, le=limits.RETRY_DELAY_MS_MAX, description="Delay after the first failed attempt."),
    ] = limits.RETRY_INITIAL_MS
    max_delay_ms: Annotated[
        int, Meta(ge=0, le=limits.RETRY_DELAY_MS_MAX, description="Longest delay between two attempts.")
    ] = limits.RETRY_MAX_MS
    multiplier: Annotated[int | float, Meta(description="Factor between two delays: 1 to 1000.")] = (
        limits.RETRY_MULTIPLIER
    )
    jitter: Annotated[bool, Meta(description="Vary the delays, so that retries do not come together.")] = True


class RedeliveryIn(Redelivery, frozen=True, forbid_unknown_fields=True):
    """Retry policy: number of attempts and delays."""


class Limit(Out, frozen=True):
    """Caps starts per period and concurrent runs per key, exactly, across all queues and workers."""

    key: Annotated[Key, Meta(examples=["tenant:42"])]
    rate: Rate | None = None
    burst: Annotated[
        int, Meta(ge=1, le=limits.RATE_MAX, description="Maximum starts at once after a pause.")
    ] = 1
    concurrency: (
        Annotated[int, Meta(ge=1, le=limits.RATE_MAX, description="Maximum concurrent runs.")] | None
    ) = None


class LimitIn(Limit, frozen=True, forbid_unknown_fields=True):
    """Caps starts per period and concurrent runs per key, exactly, across all queues and workers."""


class UniqueKey(Out, frozen=True):
    """No other intent with this key until this one starts, until it ends, or for a time."""

    key: Annotated[Key, Meta(examples=["report:42"])]
    until: Annotated[Literal["START", "END", "TIME"], Meta(description="How long the key is held.")] = "END"
    for_ms: (
        Annotated[int, Meta(ge=1, le=limits.RETRY_DELAY_MS_MAX, description="Duration; only with TIME.")]
        | None
    ) = None


class UniqueIn(UniqueKey, frozen=True, forbid_unknown_fields=True):
    """No other intent with this key until this one starts, until it ends, or for a time."""


Limits = Annotated[
    list[LimitIn],
    Meta(max_length=limits.LIMITS_MAX, description="Rate and concurrency limits that the intent is under."),
]

# Requests.


class PlannedIntent(In, frozen=True):
    """An intent without a time: each tick of a schedule creates one."""

    callback: CallbackIn | None = None
    task: TaskIn | None = None
    entity: EntityIn | None = None
    stream: StreamIn | None = None
    payload: Json | UnsetType = UNSET
    precision_tier: TierName | None = None
    slo: SloIn | None = None
    ack_level: AckLevelName | None = None
    guarantee: GuaranteeName | None = None
    expired_action: ExpiredActionName | None = None
    priority: Priority | None = None
    redelivery: RedeliveryIn | None = None
    timeout_ms: TimeoutMs | None = None
    lease_ms: LeaseMs | None = None
    result_ttl_ms: ResultTtlMs | None = None
    expires_ms: ExpiresMs | None = None
    tags: Tags | None = None
    limits: Limits | None = None
    fairness_key: FairnessKey | None = None
    fairness_weight: FairnessWeight | None = None
    shard_key: ShardKey | None = None


class NewIntent(PlannedIntent, frozen=True):
    """A new intent: a time, a target and options."""

    intent_id: Id | None = None
    execute_at: ExecuteAt | None = None
    delay_ms: (
        Annotated[
            int,
            Meta(ge=0, le=limits.TIME_MS_MAX, description="Delay from now, instead of a time."),
        ]
        | None
    ) = None
    deadline: Deadline | None = None
    after: After | None = None
    after_on: AfterOnName | None = None
    after_delay_ms: AfterDelayMs | None = None
    first_argument: FirstArgumentName | None = None
    group: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=limits.ID_CHARS_MAX,
                pattern=patterns.ID,
                description="The group to join (the id of its callback). The id of a member must be GROUP.n.",
            ),
        ]
        | None
    ) = None
    members: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=limits.GROUP_MEMBERS_MAX,
                description="Makes the intent the callback of a group with this number of members.",
            ),
        ]
        | None
    ) = None
    idempotency_key: (
        Annotated[Key, Meta(description="Idempotency key: a repeated request returns the same intent.")]
        | None
    ) = None
    on_duplicate: (
        Annotated[
            Literal["return", "reject"],
            Meta(description="If the key exists: return its intent even if it has ended, or reject."),
        ]
        | None
    ) = None
    collapse_key: Annotated[Key, Meta(description="Replaces a waiting intent with this key.")] | None = None
    collapse: CollapseName | None = None
    unique: UniqueIn | None = None
    traceparent: Traceparent | None = None
    headers: Headers | None = None


class PatchIntent(In, frozen=True):
    """Changes of an intent that is neither final nor running. Omitted fields stay."""

    execute_at: ExecuteAt | UnsetType = UNSET
    deadline: NewDeadline = UNSET
    expired_action: ExpiredActionName | UnsetType = UNSET
    redelivery: RedeliveryIn | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    payload: Json | UnsetType = UNSET


class ReviveIntent(In, frozen=True):
    """Changes of a dead letter when it is revived."""

    execute_at: ExecuteAt | None = None
    deadline: NewDeadline = UNSET
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


# Responses.


class LastError(Out, frozen=True):
    """The last error."""

    at: Moment
    kind: str
    message: str
    delivery: int = 0
    http_status: int | None = None


class SharedFields(Out, frozen=True, kw_only=True):
    """The target and the terms, which many intents may share.

    A server sends every field. The defaults are for responses of older servers that do not have a field yet.
    """

    callback: Callback | None = None
    task: TaskTarget | None = None
    entity: EntityTarget | None = None
    stream: StreamTarget | None = None
    precision_tier: TierName = "STANDARD"
    slo: ChosenSlo | None = None
    ack_level: AckLevelName = "DURABLE"
    ack_meaning: Annotated[str, Meta(description="What the intent survives from the response on.")] = ""
    guarantee: GuaranteeName = "AT_LEAST_ONCE"
    expired_action: ExpiredActionName = "DISCARD"
    priority: Annotated[int, Meta(description="Head start in seconds.")] = 0
    redelivery: Redelivery = Redelivery()
    timeout_ms: TimeoutMs = limits.TIMEOUT_MS
    lease_ms: LeaseMs = limits.LEASE_MS
    result_ttl_ms: ResultTtlMs | None = None
    expires_ms: ExpiresMs | None = None
    tags: Tags = {}
    limits: list[Limit] = []
    fairness_key: FairnessKey | None = None
    fairness_weight: FairnessWeight = 1
    shard_key: ShardKey | None = None


class Planned(SharedFields, frozen=True):
    """The intent that each tick of a schedule creates."""

    payload: Any = None


class Intent(SharedFields, frozen=True, kw_only=True):
    """The current state of an intent."""

    intent_id: str
    status: Status
    execute_at: Moment
    deadline: Moment | None = None
    payload: Any = None
    after: tuple[str, ...] = ()
    after_on: AfterOnName = "SUCCESS"
    after_delay_ms: AfterDelayMs | None = None
    first_argument: FirstArgumentName | None = None
    group: str | None = None
    members: int | None = None
    joined: Annotated[int | None, Meta(description="Number of members that the group has so far.")] = None
    left: Annotated[int | None, Meta(description="Number of members that have not ended.")] = None
    idempotency_key: str | None = None
    collapse_key: str | None = None
    collapse: CollapseName | None = None
    unique: UniqueKey | None = None
    traceparent: str | None = None
    headers: Headers = {}
    attempts: int = 0
    delivery: int = 0
    revision: int = 0
    created_at: Moment
    updated_at: Moment
    due_at: Moment | None = None
    first_dispatch_at: Moment | None = None
    finished_at: Moment | None = None
    next_attempt_at: Moment | None = None
    late_ms: Annotated[int | None, Meta(description="How late the first attempt began.")] = None
    limited_ms: Annotated[
        int,
        Meta(description="Time spent waiting for a limit, a paused queue or the entity: not lateness."),
    ] = 0
    last_error: LastError | None = None
    result: Any = None
    result_gone: Annotated[bool, Meta(description="The time for which the result can be read is over.")] = (
        False
    )
    progress: Progress | None = None


OWN = tuple(
    name
    for name in Intent.__struct_fields__
    if name not in SharedFields.__struct_fields__ and name != "after_on"
)
"""The fields of an intent that do not come from its terms."""


class Page(Out, frozen=True):
    """A page of results, with the cursor of the next page."""

    items: list[Intent]
    next_cursor: str | None = None
    partial: Annotated[
        bool,
        Meta(
            description="True: the page is not full, perhaps empty, and there may be more. One request"
            " searches a limited number of intents; continue with nextCursor."
        ),
    ] = False


class Created(Out, frozen=True, omit_defaults=True):
    """The result for one intent of a batch: `intent` or `error`."""

    status: int
    intent: Intent | None = None
    error: Problem | None = None


class Batch(Out, frozen=True):
    """The results in the order of the request."""

    items: list[Created]
    created: int
    existing: int
    failed: int


class BriefIntent(Out, frozen=True):
    """An intent in the response to a request with `Prefer: return=minimal`."""

    intent_id: str
    status: Status
    execute_at: Moment
    revision: int


class BriefCreated(Out, frozen=True, omit_defaults=True):
    """The result for one intent of a batch, with `Prefer: return=minimal`."""

    status: int
    intent: BriefIntent | None = None
    error: Problem | None = None


class BriefBatch(Out, frozen=True):
    """The results in the order of the request, with `Prefer: return=minimal`."""

    items: list[BriefCreated]
    created: int
    existing: int
    failed: int
