"""What the kernel knows besides its intents, as the store keeps it with a position.

Everything else (timers, lanes, permits in use) is read off the intents.
"""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.command import LaneSettings, Settings
from duetime.protocol.schedule import Timetable


class Marks(Struct, frozen=True, array_like=True, gc=False):
    """Which finished intents are forgotten. They only move forward."""

    finished_before_ms: int = 0
    dead_before_ms: int = 0
    ended_to: int = 0
    key_before_ms: int = 0
    """An intent with an idempotency key is kept until its window has passed."""


class Consumer(Struct, array_like=True, gc=False):
    """A worker that pulls: when it was last heard of, and what it can still take."""

    name: str
    seen_at_ms: int
    credits: dict[str, int]
    """Per lane, in the order of the first demand."""


class Turns(Struct, frozen=True, array_like=True, gc=False):
    """The fairness keys of one track, by what each has had (see `kernel.shares`), as seen from its level."""

    lane: str
    tier: int
    """Whose track it is, in a lane that has one for each tier."""
    entry: int
    had: dict[str, int]


class Checkpoint(Struct, frozen=True, array_like=True):
    """The state at a position: all records below `position` are in it."""

    position: int
    records: int
    """How many records were applied: the sequence number of the last."""
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
    """Per pulled lane, whose turn comes in which order."""
    draining: bool = False
    tally: tuple[int, ...] = (0,) * 320
    """How often intents moved, by tier, old and new status."""
    lanes: dict[str, LaneSettings] = {}
    """Lanes with settings of their own."""
    buckets: dict[str, int] = {}
    """Limiters whose bucket is not full, and when it will be, in nanoseconds of the flow's own clock."""
    flow_ms: int = 0
    """That clock, which only goes forward."""
    schedules: tuple[Timetable, ...] = ()
    shares: tuple[Turns, ...] = ()
    """Where fairness keys take turns."""
    rules: int = 1
    """Which rules the newest `Start` asked for (see `command.RULES`)."""
    woken: int = 0
    """Intents that the records with the stamp `at_ms` have woken."""
    doubt_ms: int = 0
    """How far the clock leapt ahead without being believed yet (see `kernel.leap`)."""
    doubt_until_ms: int = 0
    """When it is believed, by the flow's own clock."""
    waiting: dict[str, int] | None = None
    """Messages of each entity that wait for their time or for others. None: not counted by who wrote this."""
    pauses: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    """The newest pauses of lanes, from when until when; 0: it goes on."""
    handed: int = 0
    """Ready intents that the records with the stamp `at_ms` have looked at to hand them out."""
