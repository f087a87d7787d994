"""Schedules as callers see them, and the calendar look-up when a tick is due."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator

from msgspec.structs import replace

from duetime.clock import Clock
from duetime.engine.admission.commands import Commands
from duetime.engine.phase import Phase
from duetime.engine.schedules import calendar
from duetime.engine.shell.inbox import command_bytes
from duetime.engine.shell.pump import Turn
from duetime.errors import InvalidField, NoSuchSchedule, RevisionMoved
from duetime.kernel.state import State
from duetime.protocol import bounds
from duetime.protocol.command import (
    DropSchedule,
    Leap,
    PauseSchedule,
    PutSchedule,
    ResumeSchedule,
    Start,
    Tick,
    Trigger,
)
from duetime.protocol.reply import Answer
from duetime.protocol.schedule import Schedule, Timetable
from duetime.protocol.terms import AckLevel
from duetime.protocol.view import View

_logger = logging.getLogger("duetime")


class Planner:
    """Keeps schedules. Rules are converted into times here; only times are on the log."""

    def __init__(self, state: State, phase: Phase, clock: Clock, commands: Commands) -> None:
        self._state = state
        self._phase = phase
        self._now_ms = clock.now_ms
        self._commands = commands
        self._ticking: set[tuple[str, int]] = set()
        """Ticks that are on their way to the log."""
        self._rewind = False
        """Whether schedules must be checked as after a clock jump."""
        self.charge: Callable[[str, int], None] = lambda owner, count: None
        """Called with the owner of a schedule and the number of intents that its ticks make."""

    async def put(self, schedule: Schedule, revision: int = 0) -> Timetable:
        """Create a schedule, or change its rule. The same again changes nothing."""
        problem = bounds.unreadable(schedule, Schedule) or bounds.schedule(schedule)
        problem = problem or calendar.problem(schedule)
        if problem is not None:
            raise InvalidField(problem)
        next_ms = calendar.following(schedule, self._now_ms())
        table: Timetable = await self._commands.ask(PutSchedule(schedule, next_ms, revision))
        return table

    async def own(self, source: str, ids: Collection[str], delete: bool = False) -> list[str]:
        """A program registered these schedules: mark others of its source as orphans, or delete them."""
        kept = set(ids)
        orphans = [table for table in self.all() if table.schedule.source == source and table.id not in kept]
        for table in orphans:
            # Another process of the program may do the same now.
            with contextlib.suppress(NoSuchSchedule, RevisionMoved):
                if delete:
                    await self.drop(table.id, table.revision)
                elif not table.schedule.orphan:
                    marked = replace(table.schedule, orphan=True)
                    await self._commands.ask(PutSchedule(marked, table.next_ms, table.revision))
        return [table.id for table in orphans]

    async def drop(self, id: str, revision: int = 0) -> Timetable:
        """Delete a schedule. Its existing intents stay."""
        table: Timetable = await self._commands.ask(DropSchedule(id, revision))
        return table

    async def pause(self, id: str, revision: int = 0) -> Timetable:
        """Stop its ticks until it is resumed."""
        table: Timetable = await self._commands.ask(PauseSchedule(id, revision))
        return table

    async def resume(self, id: str, revision: int = 0) -> Timetable:
        """Resume its ticks from now on. Ticks during the pause are not made up."""
        seen = self.get(id)
        next_ms = calendar.following(seen.schedule, self._now_ms())
        # The moment belongs to this rule: if another caller changes the rule meanwhile, this one is refused.
        table: Timetable = await self._commands.ask(ResumeSchedule(id, next_ms, revision or seen.revision))
        return table

    async def trigger(self, id: str, name: str | None = None) -> View:
        """Create an intent of it now, in addition to its ticks; once for each `name`."""
        view: View = await self._commands.ask(Trigger(id, name))
        return view

    def all(self) -> list[Timetable]:
        """All schedules, by id."""
        self._phase.check()
        return sorted(self._state.timetables.all.values(), key=lambda table: table.id)

    def next_ticks(self, id: str, count: int) -> list[int]:
        """Its next ticks, without jitter. None while it is paused."""
        table = self.get(id)
        if table.paused or not table.next_ms:
            return []
        return [table.next_ms, *calendar.ticks(table.schedule, table.next_ms, count - 1)]

    def get(self, id: str) -> Timetable:
        """One schedule; raises `NoSuchSchedule` if there is none."""
        self._phase.check()
        table = self._state.timetables.all.get(id)
        if table is None:
            raise NoSuchSchedule(f"There is no schedule with the id {id[:128]!r}.")
        return table

    def look(self) -> None:
        """Write the ticks that are due."""
        self._phase.check()
        for table in due(self._state, self._now_ms()):
            key = (table.id, table.next_ms)
            if key in self._ticking:
                continue
            self._ticking.add(key)
            self._write(table, key)

    def rewind(self, turn: Turn) -> None:
        """After a clock jump or a start: schedules that are further ahead than their rule says go back."""
        first = turn.batch.commands[0]
        if type(first) is Leap:
            _tell(first)
        # A stall moves no schedule; and checking all schedules could itself take long enough to count as one.
        if not self._rewind and type(first) is not Start and not (type(first) is Leap and first.by_ms):
            return
        self._rewind = False

        def written(answer: Answer | Exception) -> None:
            self._rewind |= isinstance(answer, Exception)  # no space on the disk: again after the next turn

        for command in rewound(self._state, self._now_ms()):
            self._commands.request(command, AckLevel.ASYNC, written, command_bytes(command))

    def _write(self, table: Timetable, key: tuple[str, int]) -> None:
        def written(answer: Answer | Exception) -> None:
            self._ticking.discard(key)
            owner = table.schedule.owner
            if owner and type(command) is Tick and type(answer) is Timetable:
                self.charge(owner, max(0, answer.made - table.made))

        command: Tick | PauseSchedule
        try:
            command = calendar.tick(table, self._now_ms())
        except Exception:  # a zone that the system no longer knows
            _logger.exception(
                "The schedule %r is paused: its cron expression or time zone cannot be resolved.", table.id
            )
            command = PauseSchedule(table.id, table.revision)
        self._commands.request(command, table.schedule.terms.ack, written, command_bytes(command))


def _tell(leap: Leap) -> None:
    if leap.by_ms:
        _logger.warning(
            "The clock was set %s by %d ms.", "ahead" if leap.by_ms > 0 else "back", abs(leap.by_ms)
        )
    if leap.still_ms:
        _logger.info("The event loop was blocked for %d ms.", leap.still_ms)


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
    """After a clock that was ahead was set back: ticks that create no intents and set a schedule back to now.
    Ticks at trusted times stay processed."""
    for table in state.timetables.all.values():
        if table.next_ms <= now_ms or table.paused:
            continue
        with contextlib.suppress(Exception):  # a rule that cannot be resolved is found at its tick
            next_ms = calendar.following(table.schedule, max(now_ms, table.last_ms))
            if 0 < next_ms < table.next_ms:
                yield Tick(table.id, table.revision, table.next_ms, (), 0, next_ms)
