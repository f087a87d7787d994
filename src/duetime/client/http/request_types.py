"""The fields of requests as keywords of the HTTP client. Written by `make options`; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from duetime.client.app.times import Moment
from duetime.wire.intent import (
    Callback,
    EntityTarget,
    Limit,
    Redelivery,
    Slo,
    StreamTarget,
    TaskTarget,
    UniqueKey,
)

Fields = Mapping[str, object]
"""A part as a mapping, in the names of Python or of the API."""


class PlannedIntent(TypedDict, total=False):
    """An intent without a time: each tick of a schedule creates one."""

    callback: Callback | Fields
    """A webhook."""
    task: TaskTarget | Fields
    """A function of a worker."""
    entity: EntityTarget | Fields
    """A message to one entity: its messages run one at a time, in order."""
    stream: StreamTarget | Fields
    """Subscribers of a stream: each intent goes to one of them."""
    payload: object
    """Payload: any JSON."""
    precision_tier: str
    """Punctuality: ULTRA (10 ms), FAST (50), HIGH (100), STANDARD (500) or ECONOMY (1000)."""
    slo: Slo | Fields
    """Lateness objective; a tier is chosen to meet it."""
    ack_level: str
    """How durable the intent must be before the request is answered."""
    guarantee: str
    """Delivery guarantee: retried until acknowledged, or never run twice."""
    expired_action: str
    """At the deadline: DISCARD (the intent becomes EXPIRED) or DEAD_LETTER."""
    priority: int | str
    """Head start in seconds, or HIGH (300), NORMAL (0), LOW (-300)."""
    redelivery: Redelivery | Fields
    """Retry policy: number of attempts and delays."""
    timeout_ms: int
    """Maximum duration of one attempt."""
    lease_ms: int
    """How long a worker may be silent before the attempt counts as lost."""
    result_ttl_ms: int
    """How long the result can be read after the end."""
    expires_ms: int
    """Deadline, counted from the time of execution, or from the release of a dependent."""
    tags: Mapping[str, str]
    """Names and values to filter by."""
    limits: Sequence[Limit | Fields]
    """Rate and concurrency limits that the intent is under."""
    fairness_key: str
    """Fairness key, such as the tenant: keys take turns in proportion to their weights."""
    fairness_weight: int
    """Weight of the fairness key."""
    shard_key: str
    """Stored with the intent; not interpreted yet."""


class NewIntent(PlannedIntent, total=False):
    """A new intent: a time, a target and options."""

    intent_id: str
    """Intent id: 1 to 128 letters, digits or _ . : - (default: generated)."""
    execute_at: Moment
    """When to run: ISO 8601 with any offset, or seconds since 1970."""
    delay_ms: int
    """Delay from now, instead of a time."""
    deadline: Moment
    """The intent does not run after this time."""
    after: Sequence[str]
    """Dependencies: run after these intents."""
    after_on: str
    """Run if all dependencies succeed (SUCCESS), if all end (END), or if one fails (FAILURE)."""
    after_delay_ms: int
    """Delay from the end of the dependencies, or of the group's members."""
    first_argument: str
    """First argument: the RESULT of the last dependency, all RESULTS, or the FAILURE."""
    group: str
    """The group to join (the id of its callback). The id of a member must be GROUP.n."""
    members: int
    """Makes the intent the callback of a group with this number of members."""
    idempotency_key: str
    """Idempotency key: a repeated request returns the same intent."""
    on_duplicate: str
    """If the key exists: return its intent even if it has ended, or reject."""
    collapse_key: str
    """Replaces a waiting intent with this key."""
    collapse: str
    """Time of the new intent: its own (DEBOUNCE) or that of the replaced one (THROTTLE)."""
    unique: UniqueKey | Fields
    """No other intent with this key until this one starts, until it ends, or for a time."""
    traceparent: str
    """W3C trace context to continue."""
    headers: Mapping[str, str]
    """Metadata for the function that runs the intent."""


class Changes(TypedDict, total=False):
    """Changes of an intent that is neither final nor running. Omitted fields stay."""

    execute_at: Moment
    """When to run: ISO 8601 with any offset, or seconds since 1970."""
    deadline: Moment | None
    """The intent does not run after this time; null removes the deadline."""
    expired_action: str
    """At the deadline: DISCARD (the intent becomes EXPIRED) or DEAD_LETTER."""
    redelivery: Redelivery | Fields
    """Retry policy: number of attempts and delays."""
    tags: Mapping[str, str]
    """Names and values to filter by."""
    priority: int | str
    """Head start in seconds, or HIGH (300), NORMAL (0), LOW (-300)."""
    payload: object
    """Payload: any JSON."""


class Revival(TypedDict, total=False):
    """Changes of a dead letter when it is revived."""

    execute_at: Moment
    """When to run: ISO 8601 with any offset, or seconds since 1970."""
    deadline: Moment | None
    """The intent does not run after this time; null removes the deadline."""
    callback: Callback | Fields
    """A webhook."""
    redelivery: Redelivery | Fields
    """Retry policy: number of attempts and delays."""
    payload: object
    """Payload: any JSON."""


class NewRule(TypedDict, total=False):
    """A recurrence (exactly one of cron and everyMs), and the intent that each tick creates."""

    cron: str
    """Cron expression: five fields, or six with seconds first."""
    every_ms: int
    """Interval between ticks, counted from start or from 1970."""
    zone: str
    """Time zone of the cron expression."""
    jitter_ms: int
    """Maximum delay of each intent after its tick."""
    start: Moment
    """No tick before this time."""
    end: Moment
    """No tick after this time."""
    overlap: str
    """What happens to a tick while an earlier intent has not ended."""
    misfire: str
    """What happens to missed ticks."""
    catch_up: int
    """Maximum missed ticks to run with CATCH_UP."""
    source: str
    """Owner of the schedule; app for schedules of a program."""
    skip: Sequence[str]
    """Dates without ticks, in the time zone."""


class LaneChanges(TypedDict, total=False):
    """New limits of a lane. Omitted fields stay; null removes a limit."""

    concurrency: int | None
    """"""
    rate: str | None
    """Maximum starts per period: 20/s, 100/m, 5/10s."""
    burst: int
    """"""
    pending_max: int | None
    """"""
    priority: int
    """"""
    paused: bool
    """"""
    order: str
    """Order of arrival (FIFO), or shortest expected duration first."""
