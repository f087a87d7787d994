"""What the kernel asks of the outside, as data. Never stored: after a crash it is derived from the state."""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.intent import Status
from duetime.protocol.terms import Terms

DeliveryKey = tuple[str, int]
"""The id of an intent, and its delivery number."""


class Deliver(Struct, frozen=True, gc=False):
    """Hand this intent over, once. The answer is a `Settlement` with the same id and delivery number."""

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
    """The consumer that pulled it; empty if the engine pushes it."""
    headers: dict[str, str] | None = None
    parents: bytes | None = None
    """For a webhook: its dependencies with their results, as members of a JSON object."""


class Abort(Struct, frozen=True, gc=False):
    """Stop this delivery if it still runs: the intent was cancelled."""

    id: str
    delivery: int
    consumer: str


class Change(Struct, frozen=True, gc=False):
    """An intent changed its status. For observers, waiters and metrics."""

    id: str
    old: Status | None
    new: Status
    at_ms: int
    delivery: int


class Voided(Struct, frozen=True, gc=False):
    """A consumer was silent for longer than its lease and lost these credits. If it still lives, its
    connection asks for them again."""

    consumer: str
    credits: dict[str, int]
    """By lane."""


Effect = Deliver | Abort
