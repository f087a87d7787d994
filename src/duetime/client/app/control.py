"""Exceptions with which a function controls its outcome, and the context of a running function."""

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
    """Deliver again after this delay. The attempt does not count."""

    def __init__(self, delay: Delay) -> None:
        super().__init__(f"snooze for {delay}")
        self.delay = delay


class Reject(Exception):
    """It can never succeed: dead-letter it with this reason, without a retry."""


class RetryAfter(Exception):
    """It failed; retry after this delay instead of that of the retry policy."""

    def __init__(self, delay: Delay, message: str = "") -> None:
        super().__init__(message or f"retry after {delay}")
        self.delay = delay


class SoftTimeout(Exception):
    """The soft time limit of the running function has passed. Raised inside the function."""

    def __init__(self, message: str = "the soft time limit has passed") -> None:
        super().__init__(message)


class Context(Struct, frozen=True):
    """The delivery of a running function."""

    intent_id: str
    delivery: int
    """Increases with every delivery. Use it as a fencing token."""
    attempt: int
    max_attempts: int
    execute_at_ms: int
    late_ms: int
    tags: dict[str, str]
    traceparent: str | None
    task: str = ""
    """The name of the task, or `type.message` of an entity; empty for an intent without a target."""
    queue: str = ""
    """The queue of the task; empty for others."""
    headers: dict[str, str] = {}
    """The headers that the caller or its middleware gave to the intent. Do not change them."""

    def parents(self) -> Call[list[Parent]]:
        """The dependencies, or the members of its group, with their results, in order. Await it, or call
        `.wait()` in plain functions."""
        raise Closed("Parents are not available here.", hint="Call parents() inside the running task.")


current_context: ContextVar[Context] = ContextVar("duetime_context")


def current() -> Context:
    """The context of the running function."""
    try:
        return current_context.get()
    except LookupError:
        raise Closed("No intent is running here.", hint="Call current() inside a task.") from None
