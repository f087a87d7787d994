"""Parses server-sent events: takes lines, returns events. Knows nothing of connections."""

from __future__ import annotations

from msgspec import Struct


class Event(Struct, frozen=True):
    """One event."""

    id: str
    kind: str
    data: str


class Parser:
    """Collects lines until an event is complete. Remembers the last id, for resuming."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.restart()

    def restart(self) -> None:
        """A new connection: discard an incomplete event, which is sent again."""
        self._id = self.last_id
        self._kind = ""
        self._data: list[str] = []

    def line(self, raw: bytes) -> Event | None:
        """The event that this line completes, if any."""
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            return self._whole()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._kind = value
        elif field == "id" and "\0" not in value:
            self._id = value
        return None  # a comment, or a field that is not used

    def _whole(self) -> Event | None:
        self.last_id = self._id
        kind, data = self._kind or "message", self._data
        self._kind, self._data = "", []
        return Event(self._id, kind, "\n".join(data)) if data else None
