"""Which messages entities of a type take, as the workers that are connected say.

A message that nobody takes would be rejected by the worker that meets it; where that is known beforehand, the
server refuses it at submit. A worker that asks for a type and lists none of its messages may take any.
"""

from __future__ import annotations

from collections.abc import Iterable

from duetime.errors import InvalidField
from duetime.protocol.terms import Entity

# Names in one refusal; a type rarely has more.
_NAMES_SHOWN = 20


class Messages:
    """By type of entity: what each worker that is connected takes."""

    def __init__(self) -> None:
        self._types: dict[str, dict[str, frozenset[str]]] = {}

    def join(self, worker: str, listed: Iterable[tuple[str, str]], asked: Iterable[str]) -> None:
        """A worker is connected: the messages it lists, each with its type, and the types it asks for."""
        types: dict[str, set[str]] = {kind: set() for kind in asked}
        for kind, message in listed:
            types.setdefault(kind, set()).add(message)
        for kind, names in types.items():
            self._types.setdefault(kind, {})[worker] = frozenset(names)

    def leave(self, worker: str) -> None:
        for kind, workers in list(self._types.items()):
            if workers.pop(worker, None) is not None and not workers:
                del self._types[kind]

    def refusal(self, target: Entity) -> InvalidField | None:
        """Why nobody would take this message; None: somebody does, or may."""
        workers = self._types.get(target.kind)
        if workers is None or any(not names or target.message in names for names in workers.values()):
            return None
        known = sorted(set[str]().union(*workers.values()))
        more = f" and {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
        return InvalidField(
            f"Entities of the type '{target.kind}' take no message '{target.message}', at $.entity.message.",
            hint=f"Its messages are: {', '.join(known[:_NAMES_SHOWN])}{more}.",
            path="$.entity.message",
        )
