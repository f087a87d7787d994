"""The options of an intent in an App. Written by `make options`; do not edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msgspec import Struct

from duetime.client.app.policies import Retry, Unique
from duetime.client.app.times import Delay, Moment
from duetime.wire.intent import Limit

if TYPE_CHECKING:
    from duetime.client.app.handle import Handle


class OptionFields(TypedDict, total=False):
    """The options as keywords. None: the default."""

    id: str | None
    """Intent id: 1 to 128 letters, digits or _ . : - (default: generated)."""
    at: Moment | None
    """When to run: ISO 8601 with any offset, or seconds since 1970."""
    delay: Delay | None
    """Delay from now, instead of a time."""
    deadline: Moment | None
    """The intent does not run after this time."""
    tier: str | None
    """Punctuality: ULTRA (10 ms), FAST (50), HIGH (100), STANDARD (500) or ECONOMY (1000)."""
    slo: Delay | None
    """Lateness objective; a tier is chosen to meet it."""
    ack: str | None
    """How durable the intent must be before the request is answered."""
    guarantee: str | None
    """Delivery guarantee: retried until acknowledged, or never run twice."""
    expired_action: str | None
    """At the deadline: DISCARD (the intent becomes EXPIRED) or DEAD_LETTER."""
    priority: int | str | None
    """Head start in seconds, or HIGH (300), NORMAL (0), LOW (-300)."""
    retry: Retry | None
    """Retry policy: number of attempts and delays."""
    timeout: Delay | None
    """Maximum duration of one attempt."""
    lease: Delay | None
    """How long a worker may be silent before the attempt counts as lost."""
    result_ttl: Delay | None
    """How long the result can be read after the end."""
    expires: Delay | None
    """Deadline, counted from the time of execution, or from the release of a dependent."""
    tags: Mapping[str, str] | None
    """Names and values to filter by."""
    limits: Iterable[Limit | Mapping[str, object]] | None
    """Rate and concurrency limits that the intent is under."""
    fairness_key: str | None
    """Fairness key, such as the tenant: keys take turns in proportion to their weights."""
    fairness_weight: int | None
    """Weight of the fairness key."""
    shard_key: str | None
    """Stored with the intent; not interpreted yet."""
    after: Iterable[Handle[Any] | str] | None
    """Dependencies: run after these intents."""
    after_on: str | None
    """Run if all dependencies succeed (SUCCESS), if all end (END), or if one fails (FAILURE)."""
    after_delay: Delay | None
    """Delay from the end of the dependencies, or of the group's members."""
    key: str | None
    """Idempotency key: a repeated request returns the same intent."""
    on_duplicate: str | None
    """If the key exists: return its intent even if it has ended, or reject."""
    collapse_key: str | None
    """Replaces a waiting intent with this key."""
    collapse: str | None
    """Time of the new intent: its own (DEBOUNCE) or that of the replaced one (THROTTLE)."""
    unique: Unique | None
    """No other intent with this key until this one starts, until it ends, or for a time."""
    traceparent: str | None
    """W3C trace context to continue."""
    headers: Mapping[str, str] | None
    """Metadata for the function that runs the intent."""
    on_interrupt: str | None
    """What happens to an interrupted attempt: RETRY or DEAD_LETTER."""


class OptionValues(Struct, frozen=True, kw_only=True):
    """The options as values."""

    id: str | None = None
    at: Moment | None = None
    delay: Delay | None = None
    deadline: Moment | None = None
    tier: str | None = None
    slo: Delay | None = None
    ack: str | None = None
    guarantee: str | None = None
    expired_action: str | None = None
    priority: int | str | None = None
    retry: Retry | None = None
    timeout: Delay | None = None
    lease: Delay | None = None
    result_ttl: Delay | None = None
    expires: Delay | None = None
    tags: Mapping[str, str] | None = None
    limits: Iterable[Limit | Mapping[str, object]] | None = None
    fairness_key: str | None = None
    fairness_weight: int | None = None
    shard_key: str | None = None
    after: Iterable[Handle[Any] | str] | None = None
    after_on: str | None = None
    after_delay: Delay | None = None
    key: str | None = None
    on_duplicate: str | None = None
    collapse_key: str | None = None
    collapse: str | None = None
    unique: Unique | None = None
    traceparent: str | None = None
    headers: Mapping[str, str] | None = None
    on_interrupt: str | None = None


# Options of one intent; the others make its terms, which many share.
PER_INTENT: Final = frozenset(
    {
        "id",
        "at",
        "delay",
        "deadline",
        "after",
        "after_delay",
        "key",
        "on_duplicate",
        "collapse_key",
        "collapse",
        "unique",
        "traceparent",
        "headers",
    }
)


class Changes(TypedDict, total=False):
    """Changes of a waiting intent. Omitted fields stay; `deadline=None` removes the deadline."""

    at: Moment
    """When to run: ISO 8601 with any offset, or seconds since 1970."""
    deadline: Moment | None
    """The intent does not run after this time; null removes the deadline."""
    expired_action: str
    """At the deadline: DISCARD (the intent becomes EXPIRED) or DEAD_LETTER."""
    retry: Retry
    """Retry policy: number of attempts and delays."""
    tags: Mapping[str, str]
    """Names and values to filter by."""
    priority: int | str
    """Head start in seconds, or HIGH (300), NORMAL (0), LOW (-300)."""
    payload: object
    """Payload: any JSON."""


class RuleFields(TypedDict, total=False):
    """When a schedule ticks, and how ticks are treated that overlap or were missed."""

    id: str
    """Schedule id (default: the name of the function)."""
    cron: str
    """Cron expression: five fields, or six with seconds first."""
    every: Delay
    """Interval between ticks, counted from start or from 1970."""
    zone: str
    """Time zone of the cron expression."""
    jitter: Delay
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
    skip: Sequence[str | date]
    """Dates without ticks, in the time zone."""
