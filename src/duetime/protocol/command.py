"""Everything that may be written on the log.

Each command is a frozen, tagged Struct; tags are short and never change. A command that names an
intent may say which revision it expects; 0 means any.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from duetime import limits
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Settlement
from duetime.protocol.schedule import Schedule
from duetime.protocol.terms import ExpiredAction, Redelivery, Target, Terms


class Settings(Struct, frozen=True, array_like=True, gc=False):
    """What the kernel must know of the configuration. On the log, so that a replay decides alike."""

    pending_max: int = limits.PENDING_MAX
    lane_pending_max: int = limits.LANE_PENDING_MAX
    entity_pending_max: int = limits.ENTITY_PENDING_MAX
    entities_max: int = limits.ENTITIES_MAX
    past_tolerance_ms: int = limits.PAST_TOLERANCE_MS
    key_window_ms: int = limits.KEY_WINDOW_MS
    retention_ms: int = limits.RETENTION_MS
    dead_letter_retention_ms: int = limits.DEAD_LETTER_RETENTION_MS
    retention_count: int = limits.RETENTION_COUNT
    pushed: tuple[str, ...] = ("bare", "callback", "entity", "task")
    """Kinds of lanes this engine hands out by itself, limited by tier permits. The rest is pulled."""
    pack: int = limits.CALLBACK_BATCH_MAX
    """How many batched callbacks share one permit."""


# Which rules the kernel follows. A rule that would make an old log add up to something else is changed only
# together with this number: the kernel goes by what the newest `Start` on the log says.
# 2: what a clock that leaps, a lost worker and a full entity mean; who may settle a delivery.
RULES = 2


class Start(Struct, frozen=True, array_like=True, tag="start", gc=False):
    """A writer begins its epoch. What its predecessor was running in its own process is lost."""

    epoch: int
    rules: int = RULES


class Configure(Struct, frozen=True, array_like=True, tag="configure", gc=False):
    """New settings hold from here on."""

    settings: Settings


class Submit(Struct, frozen=True, array_like=True, tag="submit", gc=False):
    """New intents; many share their terms."""

    terms: tuple[Terms, ...]
    items: tuple[Item, ...]


class Patch(Struct, frozen=True, array_like=True, tag="patch", gc=False):
    """Change an intent that is neither final nor in flight. None leaves as it is; deadline 0 removes it."""

    id: str
    revision: int = 0
    execute_at_ms: int | None = None
    deadline_ms: int | None = None
    expired_action: ExpiredAction | None = None
    redelivery: Redelivery | None = None
    tags: dict[str, str] | None = None
    priority: int | None = None
    payload: bytes | None = None
    request: str | None = None
    """Names the caller's request: the same one again changes nothing and gets the same answer."""


class Cancel(Struct, frozen=True, array_like=True, tag="cancel", gc=False):
    """Stop an intent, also while it runs. `tree`: with everything that waits for it, and its members."""

    id: str
    revision: int = 0
    request: str | None = None
    tree: bool = False
    within: tuple[str, ...] | None = None
    """The lanes that the caller may use: a tree that reaches further is left alone. None: all."""


class FireNow(Struct, frozen=True, array_like=True, tag="fire", gc=False):
    """Make a scheduled intent due at once."""

    id: str
    revision: int = 0
    request: str | None = None


class Revive(Struct, frozen=True, array_like=True, tag="revive", gc=False):
    """Schedule a dead letter again; its attempts start anew. `execute_at_ms` 0: now."""

    id: str
    revision: int = 0
    execute_at_ms: int = 0
    deadline_ms: int | None = None
    target: Target | None = None
    redelivery: Redelivery | None = None
    payload: bytes | None = None
    request: str | None = None


class Purge(Struct, frozen=True, array_like=True, tag="purge", gc=False):
    """Forget these dead letters now, without waiting for their retention."""

    ids: tuple[str, ...]


class Settle(Struct, frozen=True, array_like=True, tag="settle", gc=False):
    """Outcomes came back."""

    settlements: tuple[Settlement, ...]


class Advance(Struct, frozen=True, array_like=True, tag="advance", gc=False):
    """Nothing but the passing of time: the record's stamp is the message."""


class Leap(Struct, frozen=True, array_like=True, tag="leap", gc=False):
    """The time between the record before and this one did not all count.

    Written first in a frame whose stamp cannot be taken at its word.
    """

    by_ms: int
    """So much of it never passed: the wall clock was set ahead (or, negative, back) by this."""
    still_ms: int = 0
    """So much of it passed while the engine stood still and heard nobody."""


class Demand(Struct, frozen=True, array_like=True, tag="demand", gc=False):
    """A consumer can take `credits` more deliveries of a lane.

    `standing`: what is not there yet is handed over when it comes. Otherwise this is a claim: take
    what is ready now, and no more.
    """

    consumer: str
    lane: str
    credits: int
    standing: bool = True


class Drain(Struct, frozen=True, array_like=True, tag="drain", gc=False):
    """This writer is about to stop: hand out nothing more. The next `Start` ends it."""


class Beat(Struct, frozen=True, array_like=True, tag="beat", gc=False):
    """A consumer is alive: every lease it holds begins anew."""

    consumer: str


class Leave(Struct, frozen=True, array_like=True, tag="leave", gc=False):
    """A consumer is gone: its credits are void and what it held is lost at once."""

    consumer: str


class Pause(Struct, frozen=True, array_like=True, tag="pause", gc=False):
    """Hand out nothing more of this lane."""

    lane: str


class Resume(Struct, frozen=True, array_like=True, tag="resume", gc=False):
    """Hand out this lane's intents again."""

    lane: str


class Order(IntEnum):
    """Who goes first in a lane among those of equal priority."""

    FIFO = 0
    EXPECTED = 1
    """The shorter first, as predicted; waiting makes up for length, so nobody waits for ever."""
    SHADOW = 2
    """As FIFO; but predictions are made, and what the other order would have gained is told."""


class LaneSettings(Struct, frozen=True, array_like=True, gc=False):
    """What a lane allows. 0: no such limit."""

    concurrency: int = 0
    rate: int = 0
    period_ms: int = 1_000
    burst: int = 1
    pending_max: int = 0
    priority: int = 0
    """What an intent gets that names no priority; put on the record by whoever makes it."""
    order: Order = Order.FIFO
    """Whether predictions are put on the record by whoever makes an intent."""


class SetLane(Struct, frozen=True, array_like=True, tag="lane", gc=False):
    """A lane allows something else from here on."""

    lane: str
    settings: LaneSettings


class Resize(Struct, frozen=True, array_like=True, tag="resize", gc=False):
    """Give a tier another number of delivery permits."""

    tier: int
    permits: int


class PutSchedule(Struct, frozen=True, array_like=True, tag="schedule", gc=False):
    """A new schedule, or another rule for one. `next_ms`: its first tick from now on; 0: none."""

    schedule: Schedule
    next_ms: int
    revision: int = 0


class DropSchedule(Struct, frozen=True, array_like=True, tag="unschedule", gc=False):
    """Forget a schedule. What it made goes on."""

    id: str
    revision: int = 0


class PauseSchedule(Struct, frozen=True, array_like=True, tag="hold", gc=False):
    """No more ticks."""

    id: str
    revision: int = 0


class ResumeSchedule(Struct, frozen=True, array_like=True, tag="unhold", gc=False):
    """Ticks again, from `next_ms` on. Those of the pause are gone."""

    id: str
    next_ms: int
    revision: int = 0


class Trigger(Struct, frozen=True, array_like=True, tag="trigger", gc=False):
    """Make an intent of this schedule now, besides its ticks. `name` ends its id, and makes it once."""

    id: str
    name: str | None = None


class Tick(Struct, frozen=True, array_like=True, tag="tick", gc=False):
    """A schedule's time has come. Means something only if it still stands where the calendar saw it."""

    id: str
    revision: int
    was_ms: int
    """The next tick as it was when this was written."""
    times: tuple[int, ...]
    """The ticks to be made, oldest first."""
    missed: int
    """How many are left out, by the misfire policy."""
    next_ms: int
    """The tick after them; 0: none."""


Command = (
    Start
    | Configure
    | Submit
    | Patch
    | Cancel
    | FireNow
    | Revive
    | Settle
    | Advance
    | Demand
    | Beat
    | Leave
    | Pause
    | Resume
    | Resize
    | Drain
    | Purge
    | SetLane
    | PutSchedule
    | DropSchedule
    | PauseSchedule
    | ResumeSchedule
    | Trigger
    | Tick
    | Leap
)
