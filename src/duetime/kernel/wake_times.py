"""Wake times by name, for schedules and limiters. Owns the heap and the stale entries in it."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class WakeTimes(list[tuple[int, str]]):
    """A heap of (time, name). An entry is valid while `counts` says so; stale entries are dropped later."""

    __slots__ = ("_counts",)

    def __init__(self, counts: Callable[[int, str], bool]) -> None:
        super().__init__()
        self._counts = counts

    def add(self, at_ms: int, name: str) -> None:
        heappush(self, (at_ms, name))

    def first_ms(self) -> int | None:
        """The earliest valid time."""
        while self and not self._counts(*self[0]):
            heappop(self)
        return self[0][0] if self else None

    def take(self) -> str:
        """Remove the entry that `first_ms` has found, and return its name."""
        return heappop(self)[1]
