"""What readers see: copies of the state, never the state itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from duetime.protocol.intent import ACKED, SCHEDULED, Error, Intent, Rare, Status
from duetime.protocol.terms import Claim, Terms


class Progress(Struct, frozen=True):
    """The progress of a running function, as it reports it."""

    done: float
    total: float | None
    note: str
    at_ms: int


class View(Struct, frozen=True):
    """An intent as shown to readers. Times are milliseconds since 1970; 0 or None: not yet."""

    seq: int
    """Its number in the order of acceptance."""
    id: str
    status: Status
    terms: Terms
    payload: bytes
    execute_at_ms: int
    deadline_ms: int
    created_at_ms: int
    updated_at_ms: int
    attempts: int
    delivery: int
    revision: int
    due_at_ms: int
    first_dispatch_at_ms: int
    finished_at_ms: int
    next_attempt_at_ms: int
    late_ms: int | None
    last_error: Error | None
    result: bytes | None
    key: str | None
    after: tuple[str, ...]
    traceparent: str | None
    headers: dict[str, str] | None = None
    progress: Progress | None = None
    """The progress of its running delivery, if the function reported any."""
    result_gone: bool = False
    """There may have been a result, but the time for which it is shown is over."""
    claim: Claim | None = None
    group: str | None = None
    """The group's callback, if it is a member of a group."""
    members: int = 0
    """The number of members it waits for, if it is a group's callback."""
    joined: int = 0
    left: int = 0
    """The number of members that have not ended, including those not created yet."""
    after_delay_ms: int = 0
    first_argument: str | None = None
    """The name of a `FirstArgument`; None: it gets none."""
    limited_ms: int = 0
    """How long it waited for a limit, a paused queue or its entity before it started: not lateness."""

    @property
    def final(self) -> bool:
        return self.status >= Status.ACKED


class Parent(Struct, frozen=True):
    """An intent that another one waited for, or a member of its group: its final status and its result."""

    id: str
    status: Status | None
    """None: it is forgotten."""
    result: bytes | None


class Why(Struct, frozen=True):
    """Why an intent has not run yet: a short code, one sentence, and the data behind it."""

    code: str
    sentence: str
    data: dict[str, object]


class TierView(Struct, frozen=True):
    """One tier's permits."""

    name: str
    permits_max: int
    used: int
    lent: int
    borrows: int


class LaneView(Struct, frozen=True):
    """One lane, as far as it is in memory."""

    name: str
    serial: bool
    pushed: bool
    paused: bool
    pending: int
    ready: int
    running: int
    consumers: int


class Overview(Struct, frozen=True):
    """The engine in numbers."""

    at_ms: int
    records: int
    epoch: int
    counts: dict[str, int]
    tiers: tuple[TierView, ...]
    lanes: int
    entities: int
    cohorts: int
    stale_outcomes: int
    next_ms: int | None


_NO_RARE = Rare()


def result_gone(intent: Intent, now_ms: int) -> bool:
    """Whether the time for which its result is shown is over."""
    ttl_ms = intent.terms.result_ttl_ms
    return 0 < ttl_ms <= now_ms - intent.finished_at_ms and intent.status is ACKED


def view_of(intent: Intent, now_ms: int = 0) -> View:
    """A copy for a reader, as of this moment."""
    rare = intent.rare if intent.rare is not None else _NO_RARE
    gone = result_gone(intent, now_ms)
    return View(
        seq=intent.seq,
        id=intent.id,
        status=intent.status,
        terms=intent.terms,
        payload=intent.payload,
        execute_at_ms=intent.execute_at_ms,
        deadline_ms=intent.deadline_ms,
        created_at_ms=intent.created_at_ms,
        updated_at_ms=intent.updated_at_ms,
        attempts=intent.attempt,
        delivery=intent.delivery,
        revision=intent.revision,
        due_at_ms=intent.due_at_ms,
        first_dispatch_at_ms=intent.first_dispatch_at_ms,
        finished_at_ms=intent.finished_at_ms,
        next_attempt_at_ms=intent.wake_at_ms if intent.status is SCHEDULED else 0,
        late_ms=intent.late_ms if intent.late_ms >= 0 else None,
        last_error=rare.last_error,
        result=None if gone else rare.result,
        key=rare.key,
        after=rare.after,
        traceparent=rare.traceparent,
        headers=rare.headers,
        result_gone=gone,
        limited_ms=limited_ms(intent, now_ms),
        claim=rare.ties.claim if rare.ties is not None else None,
        **_ties(rare),
    )


def limited_ms(intent: Intent, now_ms: int) -> int:
    """How long it waited for a limit; up to now if it still waits."""
    known_ms = intent.limited_ms
    return known_ms if known_ms >= 0 else max(0, known_ms + now_ms)


def _ties(rare: Rare) -> dict[str, Any]:
    ties = rare.ties
    if ties is None:
        return {}
    return {
        "after_delay_ms": ties.delay_ms,
        "first_argument": ties.first.name if ties.first else None,
        "group": ties.group,
        "members": ties.members,
        "joined": rare.joined,
        "left": rare.waiting if ties.members else 0,
    }
