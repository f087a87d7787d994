"""Every command that may be written on the log.

Each command is a frozen, tagged Struct; tags are short and never change. A command on an existing
intent may name the revision it expects; 0 means any.
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
    """The part of the configuration that the kernel needs. On the log, so that a replay decides the same."""

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
    """Kinds of lanes that this engine pushes, limited by tier permits. All other lanes are pulled."""
    pack: int = limits.CALLBACK_BATCH_MAX
    """The number of batched callbacks that share one permit."""


# The version of the kernel's rules. A change that would make an old log lead to another state must raise this
# number: the kernel follows the version named by the newest `Start` on the log.
# 2: clock jumps, lost workers, full entities, and which consumer may settle a delivery.
RULES = 2


class Start(Struct, frozen=True, array_like=True, tag="start", gc=False):
    """A writer begins its epoch. Deliveries that its predecessor ran in its own process are lost."""

    epoch: int
    rules: int = RULES


class Configure(Struct, frozen=True, array_like=True, tag="configure", gc=False):
    """New settings apply from here on."""

    settings: Settings


class Submit(Struct, frozen=True, array_like=True, tag="submit", gc=False):
    """New intents. Many of them share their terms."""

    terms: tuple[Terms, ...]
    items: tuple[Item, ...]


class Patch(Struct, frozen=True, array_like=True, tag="patch", gc=False):
    """Change an intent that is neither final nor in flight. None: unchanged; deadline 0: remove it."""

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
    """The id of the caller's request: a repeat changes nothing and gets the same answer."""


class Cancel(Struct, frozen=True, array_like=True, tag="cancel", gc=False):
    """Cancel an intent, also while it runs. `tree`: also its dependents and its members."""

    id: str
    revision: int = 0
    request: str | None = None
    tree: bool = False
    within: tuple[str, ...] | None = None
    """The lanes that the caller may use: a tree that reaches beyond them is left unchanged. None: all."""


class FireNow(Struct, frozen=True, array_like=True, tag="fire", gc=False):
    """Make a scheduled intent due at once."""

    id: str
    revision: int = 0
    request: str | None = None


class Revive(Struct, frozen=True, array_like=True, tag="revive", gc=False):
    """Schedule a dead letter again, with a new retry budget. `execute_at_ms` 0: now."""

    id: str
    revision: int = 0
    execute_at_ms: int = 0
    deadline_ms: int | None = None
    target: Target | None = None
    redelivery: Redelivery | None = None
    payload: bytes | None = None
    request: str | None = None


class Purge(Struct, frozen=True, array_like=True, tag="purge", gc=False):
    """Forget these dead letters now, before their retention ends."""

    ids: tuple[str, ...]


class Settle(Struct, frozen=True, array_like=True, tag="settle", gc=False):
    """Outcomes of deliveries."""

    settlements: tuple[Settlement, ...]


class Advance(Struct, frozen=True, array_like=True, tag="advance", gc=False):
    """Time has passed, nothing else: the record's timestamp is the message."""


class Leap(Struct, frozen=True, array_like=True, tag="leap", gc=False):
    """Not all the time between the previous record and this one counts.

    Written first in a frame whose timestamp cannot be trusted as it is.
    """

    by_ms: int
    """The wall clock was set ahead by this much (negative: back), so this time never passed."""
    still_ms: int = 0
    """The part of the time in which the engine stood still and received no signs of life."""


class Demand(Struct, frozen=True, array_like=True, tag="demand", gc=False):
    """A consumer can take `credits` more deliveries of a lane.

    `standing`: later intents are handed over when they become ready. Otherwise this is a claim: take
    what is ready now, and no more.
    """

    consumer: str
    lane: str
    credits: int
    standing: bool = True


class Drain(Struct, frozen=True, array_like=True, tag="drain", gc=False):
    """This writer is about to stop: hand out nothing more. The next `Start` ends the drain."""


class Beat(Struct, frozen=True, array_like=True, tag="beat", gc=False):
    """A consumer is alive: every lease it holds restarts."""

    consumer: str


class Leave(Struct, frozen=True, array_like=True, tag="leave", gc=False):
    """A consumer has left: its credits are void and its deliveries are lost at once."""

    consumer: str


class Pause(Struct, frozen=True, array_like=True, tag="pause", gc=False):
    """Stop handing out this lane's intents."""

    lane: str


class Resume(Struct, frozen=True, array_like=True, tag="resume", gc=False):
    """Resume handing out this lane's intents."""

    lane: str


class Order(IntEnum):
    """The order in a lane among intents of equal priority."""

    FIFO = 0
    EXPECTED = 1
    """Shorter ones first, by predicted duration. Waiting outweighs length, so none waits for ever."""
    SHADOW = 2
    """As FIFO, but predictions are made, and the gain that EXPECTED would have brought is reported."""


class LaneSettings(Struct, frozen=True, array_like=True, gc=False):
    """The limits of a lane. 0: no such limit."""

    concurrency: int = 0
    rate: int = 0
    period_ms: int = 1_000
    burst: int = 1
    pending_max: int = 0
    priority: int = 0
    """The priority of an intent that names none. The caller that makes the intent writes it on the record."""
    order: Order = Order.FIFO
    """Whether the caller that makes an intent writes its predicted duration on the record."""


class SetLane(Struct, frozen=True, array_like=True, tag="lane", gc=False):
    """New limits for a lane from here on."""

    lane: str
    settings: LaneSettings


class Resize(Struct, frozen=True, array_like=True, tag="resize", gc=False):
    """Change a tier's number of delivery permits."""

    tier: int
    permits: int


class PutSchedule(Struct, frozen=True, array_like=True, tag="schedule", gc=False):
    """Create a schedule, or change its rule. `next_ms`: its first tick from now on; 0: none."""

    schedule: Schedule
    next_ms: int
    revision: int = 0


class DropSchedule(Struct, frozen=True, array_like=True, tag="unschedule", gc=False):
    """Delete a schedule. Its existing intents stay."""

    id: str
    revision: int = 0


class PauseSchedule(Struct, frozen=True, array_like=True, tag="hold", gc=False):
    """Stop a schedule's ticks."""

    id: str
    revision: int = 0


class ResumeSchedule(Struct, frozen=True, array_like=True, tag="unhold", gc=False):
    """Resume a schedule's ticks from `next_ms` on. Ticks during the pause are not made up."""

    id: str
    next_ms: int
    revision: int = 0


class Trigger(Struct, frozen=True, array_like=True, tag="trigger", gc=False):
    """Make an intent of this schedule now, besides its ticks. `name` ends its id, so it is made only once."""

    id: str
    name: str | None = None


class Tick(Struct, frozen=True, array_like=True, tag="tick", gc=False):
    """A schedule's tick has come. It applies only if the schedule is still where the calendar saw it."""

    id: str
    revision: int
    was_ms: int
    """The schedule's next tick when this command was written."""
    times: tuple[int, ...]
    """The ticks to make, oldest first."""
    missed: int
    """The number of ticks left out by the misfire policy."""
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
