"""What the kernel knows besides its intents; the store keeps it with a position.

Everything else (timers, lanes, permits in use) is derived from the intents.
"""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.command import LaneSettings, Settings
from duetime.protocol.schedule import Timetable


class Marks(Struct, frozen=True, array_like=True, gc=False):
    """Which finished intents are forgotten. The marks only move forward."""

    finished_before_ms: int = 0
    dead_before_ms: int = 0
    ended_to: int = 0
    key_before_ms: int = 0
    """An intent with an idempotency key is kept until the key's window has passed."""


class Consumer(Struct, array_like=True, gc=False):
    """A worker that pulls: when it last gave a sign of life, and how many deliveries it can still take."""

    name: str
    seen_at_ms: int
    credits: dict[str, int]
    """Credits per lane, in the order of the first demand."""


class Turns(Struct, frozen=True, array_like=True, gc=False):
    """The fairness keys of one track: the virtual time (`had`) of each, relative to the track's level. See
    `kernel.queues.fairness`."""

    lane: str
    tier: int
    """The track's tier, in a lane that has one track per tier."""
    entry: int
    had: dict[str, int]


class Checkpoint(Struct, frozen=True, array_like=True):
    """The state at a position: all records below `position` are in it."""

    position: int
    records: int
    """The number of records applied: the sequence number of the last."""
    at_ms: int
    latest_ms: int
    epoch: int
    seq: int
    ended: int
    settings: Settings
    marks: Marks
    permits: tuple[int, ...]
    counts: tuple[int, ...]
    """Intents by status."""
    pending: dict[str, int]
    """Live intents by lane, serial lanes excepted."""
    paused: tuple[str, ...]
    consumers: tuple[Consumer, ...]
    turns: dict[str, tuple[str, ...]]
    """Per pulled lane, the consumers in the order of their turns."""
    draining: bool = False
    tally: tuple[int, ...] = (0,) * 320
    """Number of transitions, by tier, old and new status."""
    lanes: dict[str, LaneSettings] = {}
    """Lanes with settings of their own."""
    buckets: dict[str, int] = {}
    """Limiters whose bucket is not full, and when it will be, in nanoseconds of the flow clock."""
    flow_ms: int = 0
    """The flow clock, which only goes forward."""
    schedules: tuple[Timetable, ...] = ()
    shares: tuple[Turns, ...] = ()
    """Tracks in which fairness keys take turns."""
    rules: int = 1
    """Which rules the newest `Start` asked for (see `command.RULES`)."""
    woken: int = 0
    """The number of intents woken by the records with timestamp `at_ms`."""
    doubt_ms: int = 0
    """How far the clock jumped ahead, while the jump is not trusted yet (see `kernel.commands.leap`)."""
    doubt_until_ms: int = 0
    """When the jump becomes trusted, by the flow clock."""
    waiting: dict[str, int] | None = None
    """Messages of each entity that wait for their time or for other intents. None: written by a version that
    did not count them."""
    pauses: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    """The newest pauses of lanes as (from, until); until 0: still paused."""
    handed: int = 0
    """The number of ready intents that the records with timestamp `at_ms` examined for hand-out."""
