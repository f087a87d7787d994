"""An intent: as its creator describes it (`Item`) and as the kernel keeps it (`Intent`).

`Item` is written on the log; `Intent` is what the kernel changes and the store keeps. The same rule as in
`terms` applies to changes: fields are only appended, with a default.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from duetime.protocol.first_argument import FirstArgument
from duetime.protocol.terms import Claim, OnDuplicate, Terms


class Status(IntEnum):
    """The status of an intent. `kernel.transitions` defines the allowed changes."""

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


# The members as module names: an attribute of an enum class is slow to read on paths taken for every intent.
SCHEDULED, DUE, DISPATCHING, BLOCKED, ACKED, DEAD_LETTERED, EXPIRED, CANCELED = Status


class Ties(Struct, frozen=True, array_like=True, gc=False):
    """A new intent's relations to others, besides those it waits for (`after`)."""

    claim: Claim | None = None
    group: str | None = None
    """The group's callback, an intent that waits for this one and the other members."""
    members: int = 0
    """The number of members that a group's callback waits for. 0: it is not a callback."""
    within: tuple[str, ...] | None = None
    """The lanes that the caller may use: the intent replaces nothing and joins no group in other lanes. None:
    all. Not kept with the intent."""
    delay_ms: int = 0
    """The delay from the end of what it waits for to its execution."""
    first: FirstArgument = FirstArgument.NONE


def member_id(group: str, number: int) -> str:
    """The id of a group's member, numbered from 0 in the order of joining."""
    return f"{group}.{number}"


class Item(Struct, frozen=True, array_like=True, gc=False):
    """One new intent inside a `Submit`. `terms` is an index into that command's list."""

    id: str
    terms: int
    execute_at_ms: int
    payload: bytes = b""
    """JSON, or empty."""
    deadline_ms: int = 0
    key: str | None = None
    fingerprint: int = 0
    """A hash of the whole request, so that a reused key with another body is noticed."""
    on_duplicate: OnDuplicate = OnDuplicate.LIVE
    after: tuple[str, ...] = ()
    traceparent: str | None = None
    fresh: bool = False
    """The engine made the id itself, so there is no need to check whether it exists."""
    relative: bool = False
    """The time was relative to the request: a delay before the record is written does not make it too old."""
    request: str | None = None
    """The id of the caller's request: a repeat makes no second intent with this id."""
    ties: Ties | None = None
    expected_ms: int = 0
    """The run time predicted at creation. Moves the intent back in its lane accordingly."""
    headers: dict[str, str] | None = None
    """Metadata of the caller for the code that runs the intent."""


class Error(Struct, frozen=True, array_like=True, gc=False):
    """The last error, or the final one."""

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
    """Fields that most intents never need, kept apart so that those intents do not pay for them."""

    key: str | None = None
    fingerprint: int = 0
    after: tuple[str, ...] = ()
    waiting: int = 0
    """How many of `after` have not ended yet; for a group's callback, how many members have not ended."""
    dependents: dict[str, int] | None = None
    """Intents that wait for this one, each with its seq, because its id may be reused later."""
    traceparent: str | None = None
    last_error: Error | None = None
    result: bytes | None = None
    history: list[Entry] | None = None
    """Closed steps only; the open steps are in the intent's own fields (see `kernel.history`)."""
    requests: tuple[str, ...] = ()
    """The newest requests that created or changed it, so that a repeat is recognised."""
    ties: Ties | None = None
    joined: int = 0
    """The number of members created so far, if it is a group's callback."""
    log: str | None = None
    """The log output of its newest attempt."""
    headers: dict[str, str] | None = None
    handed: bytes | None = None
    """The results of its dependencies, if it wants them: JSON, copied when it was released."""


class Intent(Struct, array_like=True, gc=False):
    """A durable piece of future work. Only the kernel changes it, through `kernel.transitions`."""

    seq: int
    """Its number in the order of acceptance: grows by one with each intent."""
    id: str
    terms: Terms
    payload: bytes
    status: Status
    execute_at_ms: int
    wake_at_ms: int
    """When to look at it again: its due time, a retry, its deadline, the end of a lease. 0: never."""
    created_at_ms: int
    updated_at_ms: int
    deadline_ms: int = 0
    revision: int = 1
    delivery: int = 0
    """The number of its newest delivery. Only grows: the fence."""
    attempt: int = 0
    """Deliveries counted against the retry budget."""
    due_at_ms: int = 0
    """The planned moment from which it waits in its lane; a late wake-up does not change it."""
    first_dispatch_at_ms: int = 0
    dispatched_at_ms: int = 0
    finished_at_ms: int = 0
    ended: int = 0
    """Its number in the order of finishing, for retention by count."""
    late_ms: int = -1
    permit: int = -1
    """The tier whose delivery permit it holds while it is in flight; -1: none."""
    consumer: str = ""
    """The consumer that pulled the current delivery."""
    holds: bool = False
    """Its serial lane waits for it: it was handed out before and has not ended."""
    rare: Rare | None = None
    waits: str = ""
    """The limiter it is parked at, while it is due."""
    expected_ms: int = 0
    armed: int = 0
    """The timer slot that holds it; not meaningful on disk."""
    cycle: int = 0
    """The store's cycle in which it was last touched; not meaningful on disk."""
    limited_ms: int = 0
    """How long it waited for a limit before its first call. Negative while it is parked: the time when it was
    parked is subtracted."""
    late_from_ms: int = 0
    """When it was first due, if it was handed out but not called yet; 0: count from `due_at_ms`."""

    def __lt__(self, other: Intent) -> bool:
        """In a lane's heap a stale entry may meet a newer one with the same rank and seq, whose object was
        read from disk later: either may go first, because only one of them is valid."""
        return False


# The end time of a dead letter that is to be forgotten at once: below every retention mark.
PURGED_MS = -1
FINAL = frozenset({ACKED, DEAD_LETTERED, EXPIRED, CANCELED})
