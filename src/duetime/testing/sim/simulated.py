"""The parts of the engine's shell that a simulation replaces: the clock, and the calendar's ticks."""

from __future__ import annotations

from random import Random

from duetime.engine.schedules import calendar
from duetime.engine.schedules.planner import due, rewound
from duetime.limits import DAY_MS, HOUR_MS, LEAP_MS
from duetime.protocol.command import Cancel, DropSchedule
from duetime.protocol.terms import AckLevel
from duetime.testing.sim.engine_run import EngineRun
from duetime.testing.sim.faults import Dice, Fault
from duetime.testing.sim.told import Sent, Told

BEGIN_MS = 1_700_000_000_000


class SimulatedClock:
    """The engine's clock."""

    def __init__(self) -> None:
        self.ms = BEGIN_MS
        self.passed_ms = 0
        self.leaps = 0
        """How often it was set."""

    def now_ms(self) -> int:
        return self.ms

    def steady_ms(self) -> int:
        return self.passed_ms

    def move(self, ms: int) -> None:
        """Time passes."""
        self.ms += ms
        self.passed_ms += ms

    def leap(self, ms: int) -> None:
        """Set the clock, ahead or back."""
        self.ms += ms
        self.leaps += 1


class Passing:
    """How time passes in a simulation, and the faults of the clock."""

    def __init__(self, clock: SimulatedClock, dice: Dice) -> None:
        self._clock = clock
        self._dice = dice
        self._moment_ms = 0
        """How far ahead the clock is, for a short time only."""
        self._began = (0, 0, 0)
        """At the start of this run: the kernel's steady clock, the true one, and how often it was set."""

    def time(self, engine: EngineRun, next_ms: int | None) -> str:
        """Let some time pass, or set the clock; returns a description of the fault."""
        clock, dice, random = self._clock, self._dice, self._dice.random
        if self._moment_ms and random.random() < 0.3:
            clock.leap(-self._moment_ms)
            self._moment_ms = 0
            return "the clock is right again"
        if dice.strikes(Fault.CLOCK_BACK):
            clock.leap(-random.choice((5, 900, 30_000, HOUR_MS, 2 * DAY_MS)))
            return "the clock is set back"
        if dice.strikes(Fault.CLOCK_FORWARD):
            clock.leap(random.choice((60_000, HOUR_MS, DAY_MS, 9 * DAY_MS)))
            return "the clock is set forward"
        if not self._moment_ms and dice.strikes(Fault.CLOCK_MOMENT):
            self._moment_ms = random.choice((35_000, 2 * HOUR_MS, 40 * DAY_MS))
            clock.leap(self._moment_ms)
            return "the clock is set forward for a moment"
        if dice.strikes(Fault.STALL):
            still_ms = random.choice((700, 4_000, 35_000, HOUR_MS))
            clock.move(still_ms + random.choice((0, 3)))
            engine.still_ms += still_ms
            return f"it stands still for {still_ms} ms"
        if random.random() < 0.01:
            clock.move(random.choice((HOUR_MS, DAY_MS, 9 * DAY_MS)))
        elif next_ms is not None and clock.ms < next_ms < clock.ms + HOUR_MS and random.random() < 0.4:
            clock.move(max(0, next_ms - clock.ms - random.choice((0, 0, 0, 1))))
        else:
            clock.move(random.choice((0, 0, 1, 4, 20, 75, 500, 2_000, 30_000)))
        return ""

    def begin(self, engine: EngineRun) -> None:
        """A new run has written its first frame."""
        self._began = (engine.state.flow.now_ms, self._clock.passed_ms, self._clock.leaps)

    def check(self, engine: EngineRun) -> None:
        """However the clock was set: the kernel's own clock, used for leases and rates, is the true one."""
        flow_ms, passed_ms, leaps = self._began
        wrong_ms = engine.state.flow.now_ms - flow_ms - (self._clock.passed_ms - passed_ms)
        allowed_ms = LEAP_MS * (self._clock.leaps - leaps)  # smaller jumps are not noticed
        assert abs(wrong_ms) <= allowed_ms, f"the kernel's steady clock is wrong by {wrong_ms} ms"


def offer_ticks(engine: EngineRun, told: Told, now_ms: int, random: Random | None = None) -> None:
    """What the engine does when a tick is due; with a `random`, not always at once."""
    for command in rewound(engine.state, now_ms):
        engine.offer(Sent(told, command, AckLevel.ASYNC))
    for table in due(engine.state, now_ms):
        if random is None or random.random() < 0.7:
            engine.offer(Sent(told, calendar.tick(table, now_ms), table.schedule.terms.ack))


def end_groups(engine: EngineRun, told: Told, unfilled: list[str]) -> None:
    """Cancel groups whose missing members will never be sent."""
    for id in unfilled:
        engine.offer(Sent(told, Cancel(id), AckLevel.ASYNC))


def end_schedules(engine: EngineRun, told: Told, now_ms: int) -> None:
    """Check that no tick is owed once faults have stopped, then drop the schedules."""
    engine.turn()
    offer_ticks(engine, told, now_ms)
    engine.turn()
    offer_ticks(engine, told, now_ms)  # those of schedules that were set back to now
    engine.turn()
    for table in engine.state.timetables.all.values():
        next_ms = calendar.following(table.schedule, max(now_ms, table.last_ms))
        assert table.paused or not table.next_ms or table.next_ms <= next_ms, f"{table.id!r} makes no ticks"
    owed = [table.id for table in due(engine.state, now_ms)]
    assert not owed, f"ticks are owed: {owed}"
    for id in engine.state.timetables.all:
        engine.offer(Sent(told, DropSchedule(id), AckLevel.ASYNC))
