"""Schedules as callers know them, and the look at the calendar when a tick's time has come."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from duetime.engine import calendar
from duetime.engine.inbox import command_bytes
from duetime.engine.intake import Intake
from duetime.engine.pump import Turn
from duetime.errors import InvalidField, NoSuchSchedule
from duetime.kernel.kernel import Answer
from duetime.kernel.state import State
from duetime.protocol import bounds
from duetime.protocol.command import (
    Advance,
    DropSchedule,
    Leap,
    PauseSchedule,
    PutSchedule,
    ResumeSchedule,
    Start,
    Tick,
    Trigger,
)
from duetime.protocol.schedule import Schedule, Timetable
from duetime.protocol.terms import AckLevel
from duetime.protocol.view import View

_logger = logging.getLogger("duetime")


class Planner(Intake):
    """Keeps schedules. Rules become moments here, and the log has only those."""

    def __init__(self) -> None:
        self._ticking: set[tuple[str, int]] = set()
        """Ticks that are on their way to the log."""
        self._rewind = False
        """Whether schedules must be looked at as after a leap."""
        self.charge: Callable[[str, int], None] = lambda owner, count: None
        """Told of ticks whose schedule has an owner, and how many intents they make."""

    async def put_schedule(self, schedule: Schedule, revision: int = 0) -> Timetable:
        """A new schedule, or another rule for one. The same again changes nothing."""
        problem = bounds.unreadable(schedule, Schedule) or bounds.schedule(schedule)
        problem = problem or calendar.problem(schedule)
        if problem is not None:
            raise InvalidField(problem)
        next_ms = calendar.following(schedule, self.now_ms())
        table: Timetable = await self.ask(PutSchedule(schedule, next_ms, revision))
        return table

    async def drop_schedule(self, id: str, revision: int = 0) -> Timetable:
        """Forget it. What it made goes on."""
        table: Timetable = await self.ask(DropSchedule(id, revision))
        return table

    async def pause_schedule(self, id: str, revision: int = 0) -> Timetable:
        """No more ticks until it is resumed."""
        table: Timetable = await self.ask(PauseSchedule(id, revision))
        return table

    async def resume_schedule(self, id: str, revision: int = 0) -> Timetable:
        """Ticks again, from now on: those of the pause are gone."""
        seen = self._table(id)
        next_ms = calendar.following(seen.schedule, self.now_ms())
        # The moment belongs to this rule: who puts another one meanwhile is asked again.
        table: Timetable = await self.ask(ResumeSchedule(id, next_ms, revision or seen.revision))
        return table

    async def trigger_schedule(self, id: str, name: str | None = None) -> View:
        """Make an intent of it now, besides its ticks and whatever runs; once for each `name`."""
        view: View = await self.ask(Trigger(id, name))
        return view

    async def schedule(self, id: str) -> Timetable:
        return self._table(id)

    async def schedules(self) -> list[Timetable]:
        """All of them, by id."""
        return sorted(self._kernel().state.timetables.all.values(), key=lambda table: table.id)

    async def next_ticks(self, id: str, count: int) -> list[int]:
        """When it will tick next, the jitter left out. Nothing while it is paused."""
        table = self._table(id)
        if table.paused or not table.next_ms:
            return []
        return [table.next_ms, *calendar.ticks(table.schedule, table.next_ms, count - 1)]

    def _table(self, id: str) -> Timetable:
        table = self._kernel().state.timetables.all.get(id)
        if table is None:
            raise NoSuchSchedule(f"There is no schedule with the id {id[:128]!r}.")
        return table

    async def advance(self) -> None:
        """Write that time has passed, and wait until all that follows at once is done."""
        self.look()
        await self.ask(Advance(), AckLevel.ASYNC)

    def look(self) -> None:
        """Write down the ticks whose time has come."""
        for table in due(self._kernel().state, self.now_ms()):
            key = (table.id, table.next_ms)
            if key in self._ticking:
                continue
            self._ticking.add(key)
            self._write(table, key)

    def rewind(self, turn: Turn) -> None:
        """After a leap or a start: schedules that stand further ahead than their rule says go back."""
        first = turn.batch.commands[0]
        if type(first) is Leap:
            _tell(first)
        # To have stood still moves no schedule; and to look at all of them could itself take so long that it
        # counts as that.
        if not self._rewind and type(first) is not Start and not (type(first) is Leap and first.by_ms):
            return
        self._rewind = False

        def written(answer: Answer | Exception) -> None:
            self._rewind |= isinstance(answer, Exception)  # no room on the disk: again after the next turn

        for command in rewound(self._kernel().state, self.now_ms()):
            self.request(command, AckLevel.ASYNC, written, command_bytes(command))

    def _write(self, table: Timetable, key: tuple[str, int]) -> None:
        def written(answer: Answer | Exception) -> None:
            self._ticking.discard(key)
            owner = table.schedule.owner
            if owner and type(command) is Tick and type(answer) is Timetable:
                self.charge(owner, max(0, answer.made - table.made))

        command: Tick | PauseSchedule
        try:
            command = calendar.tick(table, self.now_ms())
        except Exception:  # a zone that the system does not know any more
            _logger.exception("The schedule %r is paused: its rule cannot be resolved.", table.id)
            command = PauseSchedule(table.id, table.revision)
        self.request(command, table.schedule.terms.ack, written, command_bytes(command))


def _tell(leap: Leap) -> None:
    if leap.by_ms:
        _logger.warning(
            "The clock was set %s by %d ms.", "ahead" if leap.by_ms > 0 else "back", abs(leap.by_ms)
        )
    if leap.still_ms:
        _logger.info("The event loop stood still for %d ms.", leap.still_ms)


def due(state: State, now_ms: int) -> Iterator[Timetable]:
    """The schedules whose time has come."""
    tables = state.timetables
    first_ms = tables.next_ms()
    if first_ms is None or first_ms > now_ms or state.draining:
        return
    for table in list(tables.all.values()):
        if table.wake_ms and table.wake_ms <= now_ms and not table.paused:
            yield table


def rewound(state: State, now_ms: int) -> Iterator[Tick]:
    """The clock was ahead and came back: ticks that make nothing, but let a schedule begin from now again.
    What it decided by a time that was believed stays decided."""
    for table in state.timetables.all.values():
        if table.next_ms <= now_ms or table.paused:
            continue
        with contextlib.suppress(Exception):  # a rule that cannot be resolved is found at its tick
            next_ms = calendar.following(table.schedule, max(now_ms, table.last_ms))
            if 0 < next_ms < table.next_ms:
                yield Tick(table.id, table.revision, table.next_ms, (), 0, next_ms)
