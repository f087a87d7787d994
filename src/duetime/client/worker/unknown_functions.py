"""Deliveries for functions that this worker does not have: another worker may have them, so they are
returned.

A worker returns each such intent several times, with a growing delay and without counting an attempt; in a
rolling deployment a newer worker takes it in the meantime. Then the intent is rejected, so that a misspelt
name does not circulate for ever. A message to an entity is rejected immediately, because it blocks the next
message of its entity.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor

from duetime.client.execution.handlers import clean
from duetime.limits import UNKNOWN_DELAY_MS, UNKNOWN_DELAY_MS_MAX, UNKNOWN_KEPT, UNKNOWN_RETURNS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Failed, Outcome, Rejected, Snoozed
from duetime.protocol.terms import Entity, Task

_logger = logging.getLogger("duetime.worker")


class Strangers:
    """The handler for deliveries without a function."""

    executor: Executor | None = None
    workers = 1

    def __init__(self, messages: Callable[[str], list[str]] = lambda kind: []) -> None:
        """`messages`: the messages that entities of a type accept."""
        self._messages = messages
        self._seen: dict[str, int] = {}

    async def run(self, delivery: Deliver) -> Outcome:
        target = delivery.terms.target
        if isinstance(target, Entity):
            return self._reject_message(delivery.id, target)
        name = target.name if isinstance(target, Task) else ""
        times = self._seen.pop(delivery.id, 0) + 1
        if times > UNKNOWN_RETURNS_MAX:
            text = f"no worker that took it knows the function {name!r}; start one that does, then revive it"
            _logger.error("Intent %s: %s.", delivery.id, text)
            return Rejected("no-handler", text)
        while len(self._seen) >= UNKNOWN_KEPT:
            del self._seen[next(iter(self._seen))]
        self._seen[delivery.id] = times
        delay_ms = min(UNKNOWN_DELAY_MS << (times - 1), UNKNOWN_DELAY_MS_MAX)
        _logger.warning(
            "Intent %s is for the function %r, which this worker does not have: "
            "returned for %d s (%d of %d).",
            delivery.id,
            name,
            delay_ms // 1000,
            times,
            UNKNOWN_RETURNS_MAX,
        )
        return Snoozed(delay_ms, f"the worker that took it does not know the function {name!r}")

    def _reject_message(self, id: str, target: Entity) -> Rejected:
        known = self._messages(target.kind)
        takes = f"it takes {', '.join(known)}" if known else "the worker that took it knows no such type"
        text = f"entities of the type '{target.kind}' take no message '{target.message}': {takes}"
        _logger.error("Intent %s: %s.", id, text)
        return Rejected("no-handler", clean(text))

    def job(self, delivery: Deliver) -> tuple[Callable[..., object], tuple[object, ...]]:
        raise AssertionError("it runs on the loop")

    def outcome(self, delivery: Deliver, value: object, error: BaseException | None) -> Outcome:
        return Failed("no-handler", clean(str(error)))
