"""What a function may raise to say what should happen next, and what it may ask about itself."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from msgspec import Struct

from duetime.client.app.times import Delay
from duetime.errors import Closed

if TYPE_CHECKING:
    from duetime.client.app.call import Call
    from duetime.wire.history import Parent


class Snooze(Exception):
    """Call me again after this delay. The attempt is given back."""

    def __init__(self, delay: Delay) -> None:
        super().__init__(f"snooze for {delay}")
        self.delay = delay


class Reject(Exception):
    """This can never work: straight to the dead letters, with this reason."""


class RetryAfter(Exception):
    """It failed this time; try again after this delay instead of the policy's."""

    def __init__(self, delay: Delay, message: str = "") -> None:
        super().__init__(message or f"retry after {delay}")
        self.delay = delay


class Context(Struct, frozen=True):
    """The delivery a function is running for."""

    intent_id: str
    delivery: int
    """Grows with every hand-over: hand it on as a fencing number."""
    attempt: int
    max_attempts: int
    execute_at_ms: int
    late_ms: int
    tags: dict[str, str]
    traceparent: str | None

    def parents(self) -> Call[list[Parent]]:
        """How those ended that it came after, or the members of its group, in order. To be awaited, or waited
        for in plain functions."""
        raise Closed("Parents are not available here.", hint="Call parents() inside the running task.")


current_context: ContextVar[Context] = ContextVar("duetime_context")


def current() -> Context:
    """The context of the function that is running."""
    try:
        return current_context.get()
    except LookupError:
        raise Closed("No intent is running here.", hint="Call current() inside a task.") from None
