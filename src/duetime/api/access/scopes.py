"""The scope of a restricted token: the queues and entity types that its holder may use."""

from __future__ import annotations

from msgspec import Struct

from duetime.errors import Forbidden
from duetime.protocol.terms import Entity, Target, Task, lane_of, type_lane


class Scope(Struct, frozen=True):
    """Queues and entity types. Other targets, such as callbacks, are outside every scope."""

    queues: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()

    def check(self, target: Target) -> None:
        """Raise unless intents may have this target."""
        if type(target) is Task:
            if target.queue not in self.queues:
                raise self._refusal(f"the queue {target.queue!r}")
        elif type(target) is Entity:
            if target.kind not in self.entity_types:
                raise self._refusal(f"the entity type {target.kind!r}")
        else:
            raise self._refusal(f"a {type(target).__name__.lower()}")

    def lanes(self) -> tuple[str, ...]:
        """The scope as lanes, from which deliveries are taken."""
        return (*(lane_of(Task("", queue)) for queue in self.queues), *map(type_lane, self.entity_types))

    def check_lane(self, lane: str) -> None:
        """Raise unless deliveries may be taken from this lane."""
        if lane not in self.lanes():
            raise self._refusal(repr(lane))

    def __str__(self) -> str:
        parts = []
        if self.queues:
            parts.append(f"the queues {', '.join(self.queues)}")
        if self.entity_types:
            parts.append(f"the entity types {', '.join(self.entity_types)}")
        return " and ".join(parts)

    def _refusal(self, what: str) -> Forbidden:
        return Forbidden(
            f"This token may not use {what}: it is bound to {self}.",
            hint="Use a token that is bound to it, or to nothing.",
            queues=list(self.queues),
            entityTypes=list(self.entity_types),
        )
