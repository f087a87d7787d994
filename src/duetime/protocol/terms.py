"""The terms of an intent: its target, punctuality and retry policy.

These Structs are written on the log. Rules for changes: fields are only appended, each with a
default; a type, a tag or the number of an enum member never changes. The golden logs test this.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from duetime import limits


class Tier(IntEnum):
    """Punctuality, from 10 ms to 1 s. `limits` has the window and the permits of each tier."""

    ULTRA = 0
    FAST = 1
    HIGH = 2
    STANDARD = 3
    ECONOMY = 4


class AckLevel(IntEnum):
    """How durable a write must be before the caller gets its answer."""

    ASYNC = 0
    BATCH_DEFERRED = 1
    DURABLE = 2
    REPLICATED = 3


ACK_BY_TIER = (
    AckLevel.ASYNC,
    AckLevel.ASYNC,
    AckLevel.BATCH_DEFERRED,
    AckLevel.DURABLE,
    AckLevel.DURABLE,
)


class Guarantee(IntEnum):
    """The delivery guarantee: retried until acknowledged, or never run twice."""

    AT_LEAST_ONCE = 0
    AT_MOST_ONCE = 1


class ExpiredAction(IntEnum):
    """What happens to an intent at its deadline."""

    DISCARD = 0
    DEAD_LETTER = 1


class OnInterrupt(IntEnum):
    """What happens to an attempt that was interrupted (its process or worker died)."""

    RETRY = 0
    DEAD_LETTER = 1


class OnDuplicate(IntEnum):
    """The answer to a repeated idempotency key: the live intent; also a finished one; or a refusal."""

    LIVE = 0
    RETURN = 1
    REJECT = 2


class AfterOn(IntEnum):
    """When an intent that waits for others is released: all succeed, all have ended, or one fails."""

    SUCCESS = 0
    END = 1
    FAILURE = 2
    """Released by the first dependency that fails. Cancelled if all succeed: it is not needed then."""


class Backoff(IntEnum):
    """How the delay between attempts grows."""

    EXPONENTIAL = 0
    FIXED = 1


class Callback(Struct, frozen=True, array_like=True, tag="callback", gc=False):
    """A webhook."""

    url: str
    method: str = "POST"
    headers: dict[str, str] | None = None
    body: bytes | None = None
    batch: bool = False
    parents: bool = False
    """The body contains the dependencies with their results."""
    on_end: str = ""
    """A URL that is called if the intent is cancelled, dead-lettered or expires."""


class Task(Struct, frozen=True, array_like=True, tag="task", gc=False):
    """A function, by name, in a queue."""

    name: str
    queue: str = "default"


class Entity(Struct, frozen=True, array_like=True, tag="entity", gc=False):
    """A message to one entity: its messages run one at a time, in the order they were accepted."""

    kind: str
    id: str
    message: str


class Stream(Struct, frozen=True, array_like=True, tag="stream", gc=False):
    """Subscribers of a named stream; each intent goes to one of them."""

    name: str


class Bare(Struct, frozen=True, array_like=True, tag="bare", gc=False):
    """No target: delivered to the default handler of the embedding program."""


Target = Callback | Task | Entity | Stream | Bare


# The ending of lanes whose callbacks may be sent together: several of them share one delivery permit.
PACKED_LANE = "#batch"
_TYPE_LANE = "entities:"


def lane_of(target: Target) -> str:
    """The lane in which an intent with this target waits once it is due."""
    match target:
        case Task(_, queue):
            return f"task:{queue}"
        case Entity(kind, name, _):
            return f"entity:{kind}/{name}"
        case Callback(url):
            # One lane per host, so that a slow host delays no other.
            host = url.split("/", 3)[2] if url.count("/") > 1 else ""
            return f"callback:{host}{PACKED_LANE if target.batch else ''}"
        case Stream(name):
            return f"stream:{name}"
        case Bare():
            return "bare:"


def title_of(target: Target) -> str:
    """The name of the function that a target calls; empty if it calls none."""
    match target:
        case Task(name):
            return name
        case Entity(kind, _, message):
            return f"{kind}.{message}"
        case _:
            return ""


def type_lane(kind: str) -> str:
    """The lane through which a worker asks for messages of any entity of a type. It holds no intents."""
    return f"{_TYPE_LANE}{kind}"


def is_type_lane(name: str) -> bool:
    """Whether this is the lane of an entity type."""
    return name.startswith(_TYPE_LANE)


class Redelivery(Struct, frozen=True, array_like=True, gc=False):
    """The number of attempts, and the delay between them."""

    max_attempts: int = limits.ATTEMPTS_DEFAULT
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay_ms: int = limits.RETRY_INITIAL_MS
    max_delay_ms: int = limits.RETRY_MAX_MS
    multiplier_percent: int = 100 * limits.RETRY_MULTIPLIER
    """The multiplier in hundredths, because the kernel has no floats."""
    jitter: bool = True


def interval_ns(rate: int, period_ms: int) -> int:
    """The time from one token of a bucket to the next; rounded up, so that the rate is never exceeded."""
    return -(-period_ms * limits.MS_NS // rate)


class Limit(Struct, frozen=True, array_like=True, gc=False):
    """Caps starts per period and concurrent runs per key. 0: no such limit."""

    key: str
    rate: int = 0
    """Maximum starts per period: a token bucket."""
    period_ms: int = 1_000
    burst: int = 1
    """Maximum starts at once after a pause."""
    concurrency: int = 0

    @property
    def interval_ns(self) -> int:
        """The time from one token to the next; rounded up, so that the rate is never exceeded."""
        return interval_ns(self.rate, self.period_ms)


class Until(IntEnum):
    """How long an intent keeps others with its key out, or is itself replaced by them."""

    START = 0
    """No other intent until it starts."""
    END = 1
    """No other intent until it has ended."""
    TIME = 2
    """No other intent for a time from its creation, however it ends."""
    DEBOUNCE = 3
    """The next one replaces it while it waits, and keeps its own due time."""
    THROTTLE = 4
    """The next one replaces it while it waits, at the due time of the first."""


class Claim(Struct, frozen=True, array_like=True, gc=False):
    """A key that one intent at a time may hold: while it waits, until it ends, or for a time."""

    key: str
    until: Until
    for_ms: int = 0

    @property
    def collapses(self) -> bool:
        """Whether the next one replaces it, instead of being kept out."""
        return self.until >= Until.DEBOUNCE

    @property
    def name(self) -> str:
        """The name by which the store finds it. Claims that end with the intent, claims that end with a time,
        and claims that are replaced have separate names: of the first and the last kind there is never more
        than one holder."""
        kind = "collapse" if self.collapses else "time" if self.until is Until.TIME else "unique"
        return f"{kind}:{self.key}"


class Terms(Struct, frozen=True, array_like=True, gc=False):
    """What many intents may share: target, tier, guarantee, retry. One object serves all of them."""

    target: Target
    lane: str
    tier: Tier = Tier.STANDARD
    ack: AckLevel = AckLevel.DURABLE
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    on_interrupt: OnInterrupt = OnInterrupt.RETRY
    redelivery: Redelivery = Redelivery()
    priority: int = 0
    timeout_ms: int = limits.TIMEOUT_MS
    lease_ms: int = limits.LEASE_MS
    expired_action: ExpiredAction = ExpiredAction.DISCARD
    tags: dict[str, str] | None = None
    shard_key: str | None = None
    slo_ms: int = 0
    """The requested lateness, given instead of a tier. 0: a tier was named, or the default applies."""
    limits: tuple[Limit, ...] | None = None
    fairness_key: str | None = None
    """The party that shares a lane with others, such as a tenant: each key gets turns by weight, however
    many intents it sends."""
    fairness_weight: int = 1
    after_on: AfterOn = AfterOn.SUCCESS
    result_ttl_ms: int = 0
    """How long a result is shown after the end. 0: as long as the intent is kept."""
    expires_ms: int = 0
    """The deadline of an intent without its own, counted from its time of execution. 0: none."""

    @property
    def scope_lane(self) -> str:
        """The lane that a caller must be allowed to use: the intent's lane, or that of its entity type."""
        return type_lane(self.target.kind) if type(self.target) is Entity else self.lane

    @property
    def serial(self) -> bool:
        """Whether its lane runs one intent at a time."""
        return type(self.target) is Entity
