"""The terms of an intent: where it goes, how punctually, how often it is tried.

These Structs are written on the log. Rules of change: fields are only appended, each new one with a
default; a type, a tag or the number behind an enum's name never changes. The golden logs hold this.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from duetime import limits


class Tier(IntEnum):
    """How punctual, from 10 ms to 1 s. The window and the permits of each stand in `limits`."""

    ULTRA = 0
    FAST = 1
    HIGH = 2
    STANDARD = 3
    ECONOMY = 4


class AckLevel(IntEnum):
    """How durable a write is before its caller is answered."""

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
    """What is promised about running: until acknowledged, or never twice."""

    AT_LEAST_ONCE = 0
    AT_MOST_ONCE = 1


class ExpiredAction(IntEnum):
    """What an intent becomes at its deadline."""

    DISCARD = 0
    DEAD_LETTER = 1


class OnInterrupt(IntEnum):
    """What becomes of an attempt that was cut off (its process or worker died)."""

    RETRY = 0
    DEAD_LETTER = 1


class OnDuplicate(IntEnum):
    """What a repeated idempotency key gets: a live twin; even a finished one; or nothing."""

    LIVE = 0
    RETURN = 1
    REJECT = 2


class AfterOn(IntEnum):
    """Which end of those an intent waits for lets it go: only success, or any."""

    SUCCESS = 0
    END = 1


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
    """No target: the default handler of the embedding program takes it."""


Target = Callback | Task | Entity | Stream | Bare


# How the lanes end whose callbacks may go together: many of them share one delivery permit.
PACKED_LANE = "#batch"
_TYPE_LANE = "entities:"


def lane_of(target: Target) -> str:
    """The lane an intent with this target waits in, once it is due."""
    match target:
        case Task(_, queue):
            return f"task:{queue}"
        case Entity(kind, name, _):
            return f"entity:{kind}/{name}"
        case Callback(url):
            # A lane for each host, so that a slow one is in nobody else's way.
            host = url.split("/", 3)[2] if url.count("/") > 1 else ""
            return f"callback:{host}{PACKED_LANE if target.batch else ''}"
        case Stream(name):
            return f"stream:{name}"
        case Bare():
            return "bare:"


def type_lane(kind: str) -> str:
    """The lane by which a worker asks for the messages of every entity of a type. No intent is in it."""
    return f"{_TYPE_LANE}{kind}"


def is_type_lane(name: str) -> bool:
    """Whether this is the lane of a type of entities."""
    return name.startswith(_TYPE_LANE)


class Redelivery(Struct, frozen=True, array_like=True, gc=False):
    """How often to try, and how long to wait in between."""

    max_attempts: int = limits.ATTEMPTS_DEFAULT
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay_ms: int = limits.RETRY_INITIAL_MS
    max_delay_ms: int = limits.RETRY_MAX_MS
    multiplier_percent: int = 100 * limits.RETRY_MULTIPLIER
    """The multiplier in hundredths: the kernel has no floats."""
    jitter: bool = True


class Limit(Struct, frozen=True, array_like=True, gc=False):
    """How many intents with this key may go in a time, and be out at one time. 0: no such limit."""

    key: str
    rate: int = 0
    """So many in a period: a token bucket."""
    period_ms: int = 1_000
    burst: int = 1
    """How many may go at once after a pause."""
    concurrency: int = 0

    @property
    def interval_ns(self) -> int:
        """From one token to the next; rounded up, so that the rate is never exceeded."""
        return -(-self.period_ms * 1_000_000 // self.rate)


class Until(IntEnum):
    """How long an intent keeps others with its key away, or is itself replaced by them."""

    START = 0
    """Nobody else until it starts."""
    END = 1
    """Nobody else until it has ended."""
    TIME = 2
    """Nobody else for a time from its making, whatever becomes of it."""
    DEBOUNCE = 3
    """The next one takes its place while it waits, and its own time."""
    THROTTLE = 4
    """The next one takes its place while it waits, at the time of the first."""


class Claim(Struct, frozen=True, array_like=True, gc=False):
    """A key of which one intent at a time has the right to wait (or run, or have been)."""

    key: str
    until: Until
    for_ms: int = 0

    @property
    def collapses(self) -> bool:
        """Whether the next one takes its place, instead of being kept away."""
        return self.until >= Until.DEBOUNCE

    @property
    def name(self) -> str:
        """What it is found by. Those that end with the intent, those that end with a time, and those that are
        replaced have names of their own: of the first and the last kind there is never more than one."""
        kind = "collapse" if self.collapses else "time" if self.until is Until.TIME else "unique"
        return f"{kind}:{self.key}"


class Terms(Struct, frozen=True, array_like=True, gc=False):
    """What many intents may share: target, tier, guarantee, retry. One object for all of them."""

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
    """The lateness that was asked for instead of a tier. 0: a tier was named, or the default."""
    limits: tuple[Limit, ...] | None = None
    fairness_key: str | None = None
    """Who shares a lane with others, such as a tenant: each gets turns by weight, however many it sends."""
    fairness_weight: int = 1
    after_on: AfterOn = AfterOn.SUCCESS
    result_ttl_ms: int = 0
    """How long a result is shown after the end. 0: as long as the intent is kept."""

    @property
    def scope_lane(self) -> str:
        """The lane that a caller must be allowed to use: its own, or that of its entity's type."""
        return type_lane(self.target.kind) if type(self.target) is Entity else self.lane

    @property
    def serial(self) -> bool:
        """Whether its lane runs one at a time."""
        return type(self.target) is Entity
