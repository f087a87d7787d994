"""Which intents a reader wants."""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.intent import Intent, Status
from duetime.protocol.terms import Entity, Task, Terms, Tier


class Filter(Struct, frozen=True):
    """Which intents to return. An omitted field matches everything; times refer to `execute_at_ms`."""

    statuses: tuple[Status, ...] = ()
    tier: Tier | None = None
    lane: str | None = None
    queue: str | None = None
    """A task queue."""
    task: str | None = None
    entity: str | None = None
    """A type, or `type/id`."""
    tags: dict[str, str] = {}
    from_ms: int | None = None
    to_ms: int | None = None
    """Up to this moment, exclusive."""

    def matches(self, intent: Intent) -> bool:
        if self.statuses and intent.status not in self.statuses:
            return False
        if self.from_ms is not None and intent.execute_at_ms < self.from_ms:
            return False
        if self.to_ms is not None and intent.execute_at_ms >= self.to_ms:
            return False
        return self._fits(intent.terms)

    def _fits(self, terms: Terms) -> bool:
        if self.tier is not None and terms.tier != self.tier:
            return False
        if self.lane is not None and terms.lane != self.lane:
            return False
        target = terms.target
        if self.queue is not None and not (type(target) is Task and target.queue == self.queue):
            return False
        if self.task is not None and not (type(target) is Task and target.name == self.task):
            return False
        if self.entity is not None and not (
            type(target) is Entity and self.entity in (target.kind, f"{target.kind}/{target.id}")
        ):
            return False
        tags = terms.tags or {}
        return all(tags.get(name) == value for name, value in self.tags.items())
