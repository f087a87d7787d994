"""An intent: as its maker says it (`Item`) and as it lives (`Intent`).

`Item` is written on the log; `Intent` is what the kernel changes and the store keeps. The rules of
change of `terms` hold here too: fields are only appended, with a default.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from duetime.protocol.terms import Claim, OnDuplicate, Terms


class Status(IntEnum):
    """Where an intent is in its life. `kernel.transitions` says how it moves."""

    SCHEDULED = 0
    DUE = 1
    DISPATCHING = 2
    BLOCKED = 3
    ACKED = 4
    DEAD_LETTERED = 5
    EXPIRED = 6
    CANCELED = 7

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


# The members by name: reading an attribute of an enum class is slow where it is done for every intent.
SCHEDULED, DUE, DISPATCHING, BLOCKED, ACKED, DEAD_LETTERED, EXPIRED, CANCELED = Status


class Ties(Struct, frozen=True, array_like=True, gc=False):
    """What ties a new intent to others, besides those it comes after."""

    claim: Claim | None = None
    group: str | None = None
    """The intent that waits for this one among others, as their group's callback."""
    members: int = 0
    """How many members a group's callback waits for. 0: it is none."""
    within: tuple[str, ...] | None = None
    """The lanes that the caller may use: it takes no place and joins no group in others. None: all. Not kept
    with the intent."""


def member_id(group: str, number: int) -> str:
    """The id of a group's member, by the order of joining from 0."""
    return f"{group}.{number}"


class Item(Struct, frozen=True, array_like=True, gc=False):
    """One new intent inside a `Submit`. `terms` is an index into that command's list."""

    id: str
    terms: int
    execute_at_ms: int
    payload: bytes = b""
    """JSON, or nothing."""
    deadline_ms: int = 0
    key: str | None = None
    fingerprint: int = 0
    """A hash of everything the caller said, so that a key with another body is noticed."""
    on_duplicate: OnDuplicate = OnDuplicate.LIVE
    after: tuple[str, ...] = ()
    traceparent: str | None = None
    fresh: bool = False
    """The engine made the id itself, so there is no need to look whether it exists."""
    relative: bool = False
    """The time was counted from the moment of asking: waiting to be written does not make it too old."""
    request: str | None = None
    """Names the caller's request: the same one again makes no second intent of this id."""
    ties: Ties | None = None
    expected_ms: int = 0
    """How long it will run, as predicted when it was made. In its lane it stands that much further back."""


class Error(Struct, frozen=True, array_like=True, gc=False):
    """What went wrong last, or for good."""

    at_ms: int
    delivery: int
    kind: str
    message: str
    http_status: int = 0


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """One step in the history of an intent."""

    at_ms: int
    status: Status
    delivery: int = 0
    note: str = ""


class Rare(Struct, array_like=True, gc=False):
    """What most intents never need, kept apart so that they do not pay for it."""

    key: str | None = None
    fingerprint: int = 0
    after: tuple[str, ...] = ()
    waiting: int = 0
    """How many of `after` it still waits for; of a group's callback, how many members have not ended."""
    dependents: dict[str, int] | None = None
    """Intents that wait for this one, each with its number: its id may be another's one day."""
    traceparent: str | None = None
    last_error: Error | None = None
    result: bytes | None = None
    history: list[Entry] | None = None
    """Closed steps only; the open ones are in the intent's own fields (see `kernel.history`)."""
    requests: tuple[str, ...] = ()
    """The newest requests that made or changed it, so that a repeated one is known."""
    ties: Ties | None = None
    joined: int = 0
    """How many of its members were made so far, when it is a group's callback."""
    log: str | None = None
    """What its newest attempt wrote."""


class Intent(Struct, array_like=True, gc=False):
    """A durable piece of future work. Only the kernel changes it, through `kernel.transitions`."""

    seq: int
    """The order of acceptance: grows by one with each intent."""
    id: str
    terms: Terms
    payload: bytes
    status: Status
    execute_at_ms: int
    wake_at_ms: int
    """When to look at it again: its time, a retry, its deadline, the end of a lease. 0: never."""
    created_at_ms: int
    updated_at_ms: int
    deadline_ms: int = 0
    revision: int = 1
    delivery: int = 0
    """The number of the newest hand-over. Only grows: the fence."""
    attempt: int = 0
    """Deliveries counted against the budget."""
    due_at_ms: int = 0
    """The moment from which it waits in its lane, as planned; a late wake-up does not change it."""
    first_dispatch_at_ms: int = 0
    dispatched_at_ms: int = 0
    finished_at_ms: int = 0
    ended: int = 0
    """The order of finishing, for retention by count."""
    late_ms: int = -1
    permit: int = -1
    """The tier whose delivery permit it holds while it is out; -1: none."""
    consumer: str = ""
    """Who pulled the delivery that is out."""
    holds: bool = False
    """Its serial lane waits for it: it was handed out before and has not ended."""
    rare: Rare | None = None
    waits: str = ""
    """The limiter it is parked with, while it is due."""
    expected_ms: int = 0
    armed: int = 0
    """The timer slot that has it; means nothing on disk."""
    cycle: int = 0
    """The store's cycle in which it was last touched; means nothing on disk."""
    limited_ms: int = 0
    """How long it waited for a limit before its first call. Below 0: it is parked, less since when."""
    late_from_ms: int = 0
    """When it was first due, while it was handed out and not called; 0: count from `due_at_ms`."""

    def __lt__(self, other: Intent) -> bool:
        """In a lane's heap a stale entry may meet a newer one at the same place, with another object that
        was read from disk since: either may go first, for only one of them counts."""
        return False


# When a dead letter ended that is to be forgotten at once: before every mark of the retention.
PURGED_MS = -1
FINAL = frozenset({ACKED, DEAD_LETTERED, EXPIRED, CANCELED})
