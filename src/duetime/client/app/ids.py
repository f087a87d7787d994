"""New intent ids: sorted by time, unique without coordination."""

from __future__ import annotations

import secrets
from itertools import count


class Ids:
    """Ids of a time, a random part for this process, and a counter: they sort by age and never repeat."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._next = count().__next__
        self._now_ms = -1
        self._begins = ""

    def new(self, now_ms: int) -> str:
        if now_ms != self._now_ms:  # many ids have the same millisecond
            self._now_ms, self._begins = now_ms, f"{now_ms:011x}-{self._process}-"
        return f"{self._begins}{self._next():06x}"  # with a fixed width, so that ids sort as text
