"""What of the engine's shell a simulation does by hand: the clock, and the look at the calendar."""

from __future__ import annotations

from random import Random

from duetime.engine import calendar
from duetime.engine.planner import due
from duetime.protocol.command import Cancel, DropSchedule
from duetime.protocol.terms import AckLevel
from duetime.testing.life import Life
from duetime.testing.outside import Outside, Sent

BEGIN_MS = 1_700_000_000_000


class SimulatedClock:
    """The time the engine is told."""

    def __init__(self) -> None:
        self.ms = BEGIN_MS
        self.passed_ms = 0

    def now_ms(self) -> int:
        return self.ms

    def move(self, ms: int) -> None:
        self.ms += ms
        self.passed_ms += max(0, ms)


def offer_ticks(life: Life, outside: Outside, now_ms: int, random: Random | None = None) -> None:
    """What the engine does when a tick's time has come; with a `random`, not always at once."""
    for table in due(life.state, now_ms):
        if random is None or random.random() < 0.7:
            life.offer(Sent(outside, calendar.tick(table, now_ms), table.schedule.terms.ack))


def end_groups(life: Life, outside: Outside, unfilled: list[str]) -> None:
    """Nobody will send the members that some groups still wait for."""
    for id in unfilled:
        life.offer(Sent(outside, Cancel(id), AckLevel.ASYNC))


def end_schedules(life: Life, outside: Outside, now_ms: int) -> None:
    """With nothing in the way, no tick is owed; then there are to be no more of them."""
    life.turn()
    offer_ticks(life, outside, now_ms)
    life.turn()
    owed = [table.id for table in due(life.state, now_ms)]
    assert not owed, f"ticks are owed: {owed}"
    for id in life.state.timetables.all:
        life.offer(Sent(outside, DropSchedule(id), AckLevel.ASYNC))
