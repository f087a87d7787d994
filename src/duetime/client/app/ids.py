"""New intent ids: in the order of time, unique without asking anybody."""

from __future__ import annotations

import secrets
from itertools import count


class Ids:
    """Time, then a random part of this process, then a counter: sorts by age, never repeats."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._next = count().__next__
        self._now_ms = -1
        self._begins = ""

    def new(self, now_ms: int) -> str:
        if now_ms != self._now_ms:  # many are made in one millisecond
            self._now_ms, self._begins = now_ms, f"{now_ms:011x}-{self._process}-"
        return f"{self._begins}{self._next():06x}"  # in a width that sorts as text
