"""A server's answers as they are sent. Fields a newer server adds are ignored; times are aware datetimes.

These are the shapes of HTTP, in Python's names; what an `App` gives is in `duetime.protocol.view`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct


class Model(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """What all of them share."""


class Callback(Model, frozen=True):
    """A webhook."""

    url: str
    method: str = "POST"
    headers: dict[str, str] | None = None
    body: Any = None
    batch: bool = False


class TaskTarget(Model, frozen=True):
    """A function, by name, in a queue."""

    name: str
    queue: str = "default"


class EntityTarget(Model, frozen=True):
    """A message to one entity."""

    type: str
    id: str
    message: str


class StreamTarget(Model, frozen=True):
    """Subscribers of a named stream."""

    name: str


class Limit(Model, frozen=True):
    """Caps starts per period (`20/s`) and concurrent runs per key."""

    key: str
    rate: str | None = None
    burst: int = 1
    concurrency: int | None = None


class Redelivery(Model, frozen=True):
    """How often to try, and how long to wait in between."""

    max_attempts: int = 5
    backoff: str = "exponential"
    initial_delay_ms: int = 1000
    max_delay_ms: int = 60_000
    multiplier: float = 2
    jitter: bool = True


class Unique(Model, frozen=True):
    """No other intent with this key until this one starts (START), ends (END), or for a time (TIME)."""

    key: str
    until: str = "END"
    for_ms: int | None = None


class Slo(Model, frozen=True):
    """What is wanted of punctuality, instead of a tier's name."""

    max_tardiness_ms: int
    reliability: str = "AT_LEAST_ONCE"


class LastError(Model, frozen=True):
    """What went wrong last, or for good."""

    at: datetime
    kind: str
    message: str
    delivery: int = 0
    http_status: int | None = None


class Progress(Model, frozen=True):
    """The progress that a running function has reported."""

    done: float
    at: datetime
    total: float | None = None
    note: str = ""


class Planned(Model, frozen=True):
    """What a schedule makes: an intent without a time."""

    precision_tier: str = "STANDARD"
    expired_action: str = "DISCARD"
    ack_level: str = "DURABLE"
    guarantee: str = "AT_LEAST_ONCE"
    callback: Callback | None = None
    task: TaskTarget | None = None
    entity: EntityTarget | None = None
    stream: StreamTarget | None = None
    payload: Any = None
    priority: int = 0
    redelivery: Redelivery = Redelivery()
    timeout_ms: int = 30_000
    lease_ms: int = 30_000
    result_ttl_ms: int | None = None
    tags: dict[str, str] | None = None
    limits: list[Limit] | None = None
    fairness_key: str | None = None
    fairness_weight: int = 1
    shard_key: str | None = None
    after_on: str = "SUCCESS"


class Intent(Planned, frozen=True, kw_only=True):
    """An intent as shown."""

    intent_id: str
    status: str
    execute_at: datetime
    deadline: datetime | None = None
    after: list[str] | None = None
    group: str | None = None
    members: int | None = None
    joined: int | None = None
    left: int | None = None
    idempotency_key: str | None = None
    collapse_key: str | None = None
    collapse: str | None = None
    unique: Unique | None = None
    traceparent: str | None = None
    attempts: int = 0
    delivery: int = 0
    revision: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    due_at: datetime | None = None
    first_dispatch_at: datetime | None = None
    finished_at: datetime | None = None
    next_attempt_at: datetime | None = None
    late_ms: int | None = None
    limited_ms: int = 0
    """How long it waited for a limit, a paused queue or its entity before it started: not lateness."""
    last_error: LastError | None = None
    result: Any = None
    result_gone: bool = False
    progress: Progress | None = None


class Parent(Model, frozen=True):
    """How one of those ended that an intent came after. No status: it is forgotten."""

    intent_id: str
    status: str | None = None
    result: Any = None


class Parents(Model, frozen=True):
    """Some of them; `next_cursor` leads to the next ones."""

    items: list[Parent]
    next_cursor: str | None = None


class MemberError(Model, frozen=True):
    """A member that was refused."""

    intent_id: str
    status: int
    error: dict[str, Any]


class MadeGroup(Model, frozen=True):
    """What became of the members that were sent."""

    group_id: str
    then: Intent
    created: int
    existing: int
    failed: int
    errors: list[MemberError]


class Group(Model, frozen=True):
    """The progress of a group."""

    group_id: str
    status: str
    members: int
    joined: int
    ended: int
    left: int


class Schedule(Model, frozen=True):
    """The current state of a schedule."""

    id: str
    intent: Planned
    cron: str | None = None
    every_ms: int | None = None
    zone: str = "UTC"
    jitter_ms: int = 0
    start: datetime | None = None
    end: datetime | None = None
    overlap: str = "ALLOW"
    misfire: str = "ONCE"
    catch_up: int = 1
    source: str = ""
    paused: bool = False
    next_at: datetime | None = None
    last_at: datetime | None = None
    last_intent_id: str | None = None
    queued_at: datetime | None = None
    made: int = 0
    skipped: int = 0
    missed: int = 0
    refused: str | None = None
    revision: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Page(Model, frozen=True):
    """Some of many intents; `next_cursor` leads to the next ones."""

    items: list[Intent]
    next_cursor: str | None = None
    partial: bool = False
    """Not full, and there may be more: one request looks only so far. `Client.list` goes on by itself."""


class Trouble(Model, frozen=True):
    """Why one of many was refused."""

    error_code: int
    message: str = ""
    intent_id: str | None = None


class Created(Model, frozen=True):
    """What became of one intent of a batch: 201 new, 200 found by its key, else the error."""

    status: int
    intent: Intent | None = None
    error: Trouble | None = None


class Batch(Model, frozen=True):
    """What became of a batch, in the order it was sent."""

    items: list[Created]
    created: int = 0
    existing: int = 0
    failed: int = 0


class Entry(Model, frozen=True):
    """One step in an intent's life."""

    at: datetime
    status: str
    delivery: int = 0
    note: str | None = None


class History(Model, frozen=True):
    """Every step of an intent's life."""

    intent_id: str
    entries: list[Entry]


class Logs(Model, frozen=True):
    """What the newest attempt logged, its newest lines."""

    intent_id: str
    lines: list[str]


class Function(Model, frozen=True):
    """A function that workers have, with the JSON Schema of its payload."""

    name: str
    queue: str | None = None
    entity: str | None = None
    signature: str = ""
    parameters: Any = None
    workers: list[str] = []


class FunctionList(Model, frozen=True):
    functions: list[Function]


class Why(Model, frozen=True):
    """Why an intent has not run yet."""

    intent_id: str
    status: str
    code: str
    sentence: str
    data: dict[str, Any] = {}


class Bulk(Model, frozen=True):
    """What became of many dead letters."""

    matched: int = 0
    done: int = 0
    failed: list[Trouble] = []


class Transition(Model, frozen=True):
    """An intent moved: one event of `/v1/events`."""

    intent_id: str
    status: str
    at: datetime | None = None
    previous_status: str | None = None
    delivery: int = 0
    attempts: int = 0
    precision_tier: str = ""
    lane: str = ""
    late_ms: int | None = None
    limited_ms: int = 0
    error: Any = None
    event_id: str = ""
    """Its place: a stream of events can be resumed behind it."""
    gap: bool = False
    """Not a transition: events before this place were not kept, so some are missing here."""


class Lane(Model, frozen=True):
    """One lane in numbers."""

    name: str
    paused: bool = False
    serial: bool = False
    pushed: bool = False
    pending: int = 0
    ready: int = 0
    running: int = 0
    consumers: int = 0
    concurrency: int | None = None
    rate: str | None = None
    burst: int = 1
    pending_max: int | None = None
    priority: int = 0
    order: str = "FIFO"


class Anomaly(Model, frozen=True):
    """Something that is not as it should be, and what to do."""

    code: str
    severity: str = ""
    subject: str = ""
    since: datetime | None = None
    detail: str = ""
    meaning: str = ""
    advice: str = ""


class Health(Model, frozen=True):
    """Whether the server is on time."""

    status: str
    narrative: str = ""
    vitals: dict[str, Any] = {}
    anomalies: list[Anomaly] = []


class Segment(Model, frozen=True):
    """One segment of the log."""

    file: str
    bytes: int
    first_position: int = 0
    end_position: int = 0
    sealed: bool = False
    begins_at: str | None = None
    epoch: int | None = None
