"""What a token is bound to: the queues and entity types that its holder may use, and no others."""

from __future__ import annotations

from msgspec import Struct

from duetime.errors import Forbidden
from duetime.protocol.terms import Entity, Target, Task, lane_of, type_lane


class Scope(Struct, frozen=True):
    """Queues and entity types. What is neither, such as a callback, is outside every scope."""

    queues: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()

    def check(self, target: Target) -> None:
        """Raise unless intents may go there."""
        if type(target) is Task:
            if target.queue not in self.queues:
                raise self._refusal(f"the queue {target.queue!r}")
        elif type(target) is Entity:
            if target.kind not in self.entity_types:
                raise self._refusal(f"the entity type {target.kind!r}")
        else:
            raise self._refusal(f"a {type(target).__name__.lower()}")

    def check_lane(self, lane: str) -> None:
        """Raise unless deliveries may be taken from this lane."""
        own = [lane_of(Task("", queue)) for queue in self.queues]
        own += [type_lane(kind) for kind in self.entity_types]
        if lane not in own:
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
