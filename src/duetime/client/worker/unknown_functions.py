"""Deliveries of functions that this worker does not know: another worker may, so they go back for a while.

A worker gives each such intent back some times, with a growing delay that costs no attempt; in a rolling
deployment a newer worker takes it meanwhile. Then it is rejected, so that a misspelt name does not go round
for ever. A message of an entity is rejected at once: until it ends, the entity's next message cannot go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from duetime.client.execution.handlers import clean
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Failed, Outcome, Rejected, Snoozed
from duetime.protocol.terms import Entity, Task

# How often this worker gives one intent back, and how long it waits in between: about five minutes in all.
TIMES_MAX = 10
_FIRST_MS, _LONGEST_MS = 1_000, 60_000
# Of so many intents it is remembered.
_KEPT = 10_000
_logger = logging.getLogger("duetime.worker")


class Strangers:
    """A handler for what has none."""

    executor: Executor | None = None
    workers = 1

    def __init__(self, messages: Callable[[str], list[str]] = lambda kind: []) -> None:
        """`messages`: what entities of a type take."""
        self._messages = messages
        self._seen: dict[str, int] = {}

    async def run(self, delivery: Deliver) -> Outcome:
        target = delivery.terms.target
        if isinstance(target, Entity):
            return self._reject_message(delivery.id, target)
        name = target.name if isinstance(target, Task) else ""
        times = self._seen.pop(delivery.id, 0) + 1
        if times > TIMES_MAX:
            text = f"no worker that took it knows the function {name!r}; start one that does, then revive it"
            _logger.error("Intent %s: %s.", delivery.id, text)
            return Rejected("no-handler", text)
        while len(self._seen) >= _KEPT:
            del self._seen[next(iter(self._seen))]
        self._seen[delivery.id] = times
        delay_ms = min(_FIRST_MS << (times - 1), _LONGEST_MS)
        _logger.warning(
            "Intent %s is for the function %r, which this worker does not have: "
            "returned for %d s (%d of %d).",
            delivery.id,
            name,
            delay_ms // 1000,
            times,
            TIMES_MAX,
        )
        return Snoozed(delay_ms, f"the worker that took it does not know the function {name!r}")

    def _reject_message(self, id: str, target: Entity) -> Rejected:
        known = self._messages(target.kind)
        takes = f"it takes {', '.join(known)}" if known else "the worker that took it knows no such type"
        text = f"entities of the type '{target.kind}' take no message '{target.message}': {takes}"
        _logger.error("Intent %s: %s.", id, text)
        return Rejected("no-handler", clean(text))

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        raise AssertionError("it runs on the loop")

    def outcome(self, delivery: Deliver, value: Any, error: BaseException | None) -> Outcome:
        return Failed("no-handler", clean(str(error)))
