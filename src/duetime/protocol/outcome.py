"""The outcome of a delivery. Exactly one of these ends each delivery."""

from __future__ import annotations

from msgspec import Struct


class Done(Struct, frozen=True, array_like=True, tag="done", gc=False):
    """Success. `result` is JSON, or empty."""

    result: bytes | None = None


class Failed(Struct, frozen=True, array_like=True, tag="failed", gc=False):
    """This attempt failed: retry if the budget allows."""

    kind: str
    message: str
    http_status: int = 0
    delay_ms: int = -1
    """Wait this long instead of the policy's delay (a custom retry decision). -1: the policy's."""
    not_before_ms: int = 0
    """The earliest moment for a retry (Retry-After). 0: none."""


class Snoozed(Struct, frozen=True, array_like=True, tag="snoozed", gc=False):
    """The handler asks to be called again later; the attempt is given back."""

    delay_ms: int
    reason: str = ""
    """The reason, for people; may be empty."""


class Rejected(Struct, frozen=True, array_like=True, tag="rejected", gc=False):
    """It can never succeed: dead-letter at once."""

    kind: str
    message: str
    http_status: int = 0


class Lost(Struct, frozen=True, array_like=True, tag="lost", gc=False):
    """Unknown: the worker or its process is gone. Counts as an attempt."""

    message: str


class Returned(Struct, frozen=True, array_like=True, tag="returned", gc=False):
    """Handed back on purpose: the worker or process was told to stop. Costs no attempt and no delay."""

    message: str


class Expired(Struct, frozen=True, array_like=True, tag="expired", gc=False):
    """Its deadline has passed: its `expired_action` applies."""

    message: str = ""


Outcome = Done | Failed | Snoozed | Rejected | Lost | Expired | Returned


class Settlement(Struct, frozen=True, array_like=True, gc=False):
    """The outcome of one delivery of one intent. A delivery number that is not the current one is stale."""

    id: str
    delivery: int
    outcome: Outcome
    log: str | None = None
    """The newest log lines of the attempt."""
    consumer: str = ""
    """The consumer that sends this outcome. Empty: the engine's own channels."""
    waited_ms: int = 0
    """How long the delivery waited in its channel before the call was made or the function began.
    -1: there was no call."""
