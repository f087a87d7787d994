"""The large payloads in memory, by intent. Owns their total size."""

from __future__ import annotations

from duetime.protocol.intent import Intent


class Large:
    """Subtracts the size that was added for an intent, because a payload may be patched in between."""

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
        """This intent is no longer in memory."""
        self.bytes -= self._sizes.pop(id, 0)
