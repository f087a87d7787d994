"""All schedules and their state. Owns the index of their live intents, and the time of the next tick."""

from __future__ import annotations

from duetime.kernel.wake_times import WakeTimes
from duetime.protocol.schedule import Timetable


class Timetables:
    """Schedules by id."""

    def __init__(self) -> None:
        self.all: dict[str, Timetable] = {}
        self.runs: dict[str, str] = {}
        """Live intents that a later tick depends on, and their schedules."""
        self.over: list[str] = []
        """Those of them that ended in this record."""
        self._wakes = WakeTimes(self._counts)

    def keep(self, table: Timetable) -> None:
        """Store the new state of a schedule."""
        old = self.all.get(table.id)
        self.all[table.id] = table
        for id in table.live:
            self.runs[id] = table.id
        if table.wake_ms and (old is None or old.paused or old.wake_ms != table.wake_ms):
            self._wakes.add(table.wake_ms, table.id)

    def drop(self, table: Timetable) -> None:
        del self.all[table.id]
        for id in table.live:
            self.runs.pop(id, None)

    def next_ms(self) -> int | None:
        """The time of the next tick."""
        return self._wakes.first_ms() if self._wakes else None

    def _counts(self, wake_ms: int, id: str) -> bool:
        table = self.all.get(id)
        return table is not None and table.wake_ms == wake_ms and not table.paused
