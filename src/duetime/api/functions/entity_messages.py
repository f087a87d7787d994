"""The messages that entities of a type accept, as announced by the connected workers.

A worker rejects a message that it does not accept. If that is known in advance, the server refuses the
message at submit. A worker that serves a type and lists none of its messages may accept any.
"""

from __future__ import annotations

from collections.abc import Iterable

from duetime.errors import InvalidField
from duetime.limits import MESSAGE_NAMES_SHOWN_MAX
from duetime.protocol.terms import Entity


class Messages:
    """By entity type: the messages that each connected worker accepts."""

    def __init__(self) -> None:
        self._types: dict[str, dict[str, frozenset[str]]] = {}

    def join(self, worker: str, listed: Iterable[tuple[str, str]], asked: Iterable[str]) -> None:
        """A worker has connected, with its messages (each with the entity type) and the types it serves."""
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
        """The error if no worker accepts this message; None if one does, or may."""
        workers = self._types.get(target.kind)
        if workers is None or any(not names or target.message in names for names in workers.values()):
            return None
        known = sorted(set[str]().union(*workers.values()))
        more = (
            f" and {len(known) - MESSAGE_NAMES_SHOWN_MAX} more"
            if len(known) > MESSAGE_NAMES_SHOWN_MAX
            else ""
        )
        return InvalidField(
            f"Entities of the type '{target.kind}' take no message '{target.message}', at $.entity.message.",
            hint=f"Its messages are: {', '.join(known[:MESSAGE_NAMES_SHOWN_MAX])}{more}.",
            path="$.entity.message",
        )
