"""Large payloads in memory, by the intents that have them. Owns their number of bytes."""

from __future__ import annotations

from duetime.protocol.intent import Intent


class Large:
    """What was noted of an intent is what is taken off again: a payload may be patched meanwhile."""

    __slots__ = ("_sizes", "bytes")

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def note(self, intent: Intent) -> None:
        """This intent is in memory."""
        size = len(intent.payload)
        self.bytes += size - self._sizes.get(intent.id, 0)
        self._sizes[intent.id] = size

    def drop(self, id: str) -> None:
        """It is not any more."""
        self.bytes -= self._sizes.pop(id, 0)
