"""A schedule: a rule that creates intents repeatedly, and its current state.

The rule (cron or every) is text and numbers here; `engine.schedules.calendar` turns it into moments, and only
those reach the kernel. These Structs are on the log and in the checkpoint: fields are only appended.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from duetime.protocol.terms import Terms


class Overlap(IntEnum):
    """What happens at a tick while an intent of an earlier tick has not ended."""

    ALLOW = 0
    SKIP = 1
    QUEUE_ONE = 2
    """One tick waits until the running intent has ended; further ticks are skipped."""
    CANCEL_RUNNING = 3


class Misfire(IntEnum):
    """What happens to ticks that passed while the engine was not running or could not make them."""

    ONCE = 0
    """The newest of them is made late, the others are left out."""
    SKIP = 1
    CATCH_UP = 2
    """The newest `catch_up` of them are made late, oldest first."""


class Schedule(Struct, frozen=True, array_like=True, gc=False):
    """The rule of a schedule, as its caller gave it. Exactly one of `cron` and `every_ms` is given."""

    id: str
    terms: Terms
    payload: bytes = b""
    cron: str = ""
    every_ms: int = 0
    zone: str = "UTC"
    jitter_ms: int = 0
    """The maximum delay of a tick's intent after the tick; always the same delay for the same tick."""
    start_ms: int = 0
    end_ms: int = 0
    """No tick before the start or after the end. 0: none."""
    overlap: Overlap = Overlap.ALLOW
    misfire: Misfire = Misfire.ONCE
    catch_up: int = 1
    source: str = ""
    """What maintains it: empty for a person, "app" for a decorator in a program."""
    owner: str = ""
    """The hash of the token that registered it, if that has a rate: its intents count against that rate."""
    skip: tuple[str, ...] = ()
    """Dates without ticks, in its zone: 2030-12-25."""
    orphan: bool = False
    """The program that registered it has started without it since."""


class Timetable(Struct, frozen=True, array_like=True, gc=False):
    """A schedule and its current state."""

    schedule: Schedule
    next_ms: int
    """The next tick, as the calendar resolved it; 0: no more ticks."""
    wake_ms: int
    """When to look at it: at the next tick, or later if its intent could not be accepted. 0: never."""
    created_at_ms: int
    updated_at_ms: int
    revision: int = 1
    """Grows when a caller changes, pauses or resumes it; not with its ticks."""
    paused: bool = False
    last_ms: int = 0
    """The newest decided tick: no tick up to it is decided again."""
    last_id: str = ""
    """The intent that was created last."""
    live: tuple[str, ...] = ()
    """Its intents that have not ended, where the overlap policy needs them."""
    queued_ms: int = 0
    """A tick that waits until those intents have ended."""
    made: int = 0
    skipped: int = 0
    """Ticks left out because an earlier intent had not ended."""
    missed: int = 0
    """Ticks left out because their time had passed."""
    refused: str = ""
    """Why the next tick's intent could not be accepted at its time; it is tried again."""
    doubted_ms: int = 0
    """The newest tick, if it was decided during a clock jump that is not trusted yet."""

    @property
    def id(self) -> str:
        return self.schedule.id

    @property
    def newest_ms(self) -> int:
        """The newest decided tick, as shown to users: also one decided during an untrusted clock jump."""
        return self.doubted_ms or self.last_ms


def tick_id(schedule: str, time_ms: int) -> str:
    """The id of a tick's intent. No other intent can have it: ids of users contain no @."""
    return f"{schedule}@{time_ms}"
