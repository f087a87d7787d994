"""What the kernel asks of the world, as data. Never stored: after a crash it is read off the state."""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.intent import Status
from duetime.protocol.terms import Terms


class Deliver(Struct, frozen=True, gc=False):
    """Hand this intent over, once. The answer is a `Settlement` with the same id and delivery."""

    id: str
    delivery: int
    attempt: int
    terms: Terms
    payload: bytes
    execute_at_ms: int
    late_ms: int
    deadline_ms: int
    traceparent: str | None
    consumer: str
    """Who pulled it; empty when the engine pushes it."""


class Abort(Struct, frozen=True, gc=False):
    """Stop this delivery if it still runs: the intent was cancelled."""

    id: str
    delivery: int
    consumer: str


class Change(Struct, frozen=True, gc=False):
    """An intent moved from one status to another. For observers, waiters and metrics."""

    id: str
    old: Status | None
    new: Status
    at_ms: int
    delivery: int


Effect = Deliver | Abort
