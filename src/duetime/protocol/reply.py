"""What the kernel answers to a command. A refusal changes nothing; inside the kernel nothing is raised."""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.intent import Intent


class Refusal(Struct, frozen=True):
    """No, and why. `error` names the class of `duetime.errors` that the caller will see."""

    error: str
    message: str
    details: dict[str, object] = {}


class Existing(Struct, frozen=True, gc=False):
    """The idempotency key belongs to this intent already: nothing new was made."""

    intent: Intent


Reply = Intent | Existing | Refusal | None
