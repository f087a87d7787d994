"""The law of schedules, written again: every tick is decided once; none is lost except by its policy.

The rules used in simulations are so simple that their ticks can be computed here: multiples of a period.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct

from duetime.limits import MINUTE_MS
from duetime.protocol.command import (
    Command,
    DropSchedule,
    PauseSchedule,
    PutSchedule,
    ResumeSchedule,
    Tick,
    Trigger,
)
from duetime.protocol.intent import DEAD_LETTERED, FINAL, Intent
from duetime.protocol.reply import Existing, Refusal
from duetime.protocol.schedule import Misfire, Overlap, Schedule, Timetable, tick_id
from duetime.protocol.terms import Terms
from duetime.testing.laws.leaps import Leaps
from duetime.testing.sim.observed import Seen

# The only cron rule of simulations.
MINUTE = "* * * * *"
# A revision that no schedule reaches.
_NEVER = 1 << 40


def plan(random: Random, now_ms: int, terms: Terms, kept: dict[str, Kept]) -> Command:
    """A caller's command on a schedule."""
    id = f"p{random.randint(0, 2)}"
    every_ms = random.choice((0, 400, 1_000, 7_000, 90_000))
    schedule = Schedule(
        id, terms, b"{}", "" if every_ms else MINUTE, every_ms, jitter_ms=random.choice((0, 0, 300)),
        overlap=random.choice(list(Overlap)), misfire=random.choice(list(Misfire)),
        catch_up=random.randint(1, 3),
    )  # fmt: skip
    period_ms = every_ms or MINUTE_MS
    next_ms = (now_ms // period_ms + 1) * period_ms
    revision = random.choice((0, 0, 0, 1, 2))
    match random.choice(("put", "put", "put", "drop", "pause", "resume", "resume", "trigger")):
        case "drop":
            return DropSchedule(id, revision)
        case "pause":
            return PauseSchedule(id, revision)
        case "resume":
            revision = _NEVER  # of one that was not seen, and may be created in this very batch
            if id in kept:  # a caller that resumes it has read its rule, and names the revision
                period_ms, revision = kept[id].schedule.every_ms or MINUTE_MS, kept[id].revision
                next_ms = (now_ms // period_ms + 1) * period_ms
            return ResumeSchedule(id, next_ms, revision)
        case "trigger":
            return Trigger(id, random.choice((None, None, "again")))
    return PutSchedule(schedule, next_ms, revision)


class Kept(Struct):
    """A schedule, as seen from outside."""

    schedule: Schedule
    next_ms: int
    paused: bool = False
    decided_ms: int = 0
    queued_ms: int = 0
    """The one tick that passed and is made when the running intent has ended."""
    revision: int = 1


class Ticks:
    """All schedules, and the laws of their ticks."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self.made: set[str] = set()
        """The ids of all intents of ticks that were ever made."""
        self.doubtful: dict[str, Seen] = {}
        """Those that were made by an untrusted clock: they are known while they are kept."""
        self.forgettable: set[str] = set()

    def observe(
        self,
        command: Command,
        answer: object,
        seen: dict[str, Seen],
        running: set[str],
        new: list[str],
        leaps: Leaps,
    ) -> None:
        """One more record: the intents of schedules that were live before, and those that it created."""
        for id, each in list(self.doubtful.items()):
            mark_ms = leaps.dead_mark_ms if each.status is DEAD_LETTERED else leaps.finished_mark_ms
            if each.status in FINAL and (each.purged or each.finished_at_ms < mark_ms):
                del self.doubtful[id]
                self.forgettable.add(id)
        if isinstance(answer, Refusal):
            return
        passed: list[int] = []
        match command:
            case PutSchedule(schedule, next_ms):
                kept = self.kept.get(schedule.id)
                if kept is None:
                    self.kept[schedule.id] = Kept(schedule, next_ms)
                elif kept.schedule != schedule:
                    kept.schedule, kept.next_ms = schedule, next_ms
            case DropSchedule(id):
                del self.kept[id]
                # Created again, it knows only those earlier ticks that are not forgotten yet.
                self.made = {each for each in self.made if not each.startswith(f"{id}@") or each in running}
            case PauseSchedule(id):
                self.kept[id].paused = True
            case ResumeSchedule(id, next_ms):
                kept = self.kept[id]
                if kept.paused:
                    kept.paused, kept.next_ms = False, next_ms
            case Trigger(id, name):
                known = isinstance(answer, Existing)
                intent = answer.intent if isinstance(answer, Existing) else answer
                assert isinstance(intent, Intent) and intent.id.startswith(f"{id}@now-{name or ''}")
                assert known != (intent.id in new), f"{intent.id!r} was made twice, or not at all"
            case Tick():
                assert isinstance(answer, Timetable)
                passed = self._ticked(command, answer, running, new, leaps)
        for id in new:
            if "@" in id and "@now-" not in id:
                ticked = isinstance(command, Tick) and id.startswith(f"{command.id}@")
                self._made(id, seen[id], passed if ticked else [], leaps)
        if isinstance(answer, Timetable) and answer.id in self.kept:
            self._stands(answer, passed, new)

    def _stands(self, table: Timetable, passed: list[int], new: list[str]) -> None:
        """The resulting state of a schedule; a tick it queued may have been made in the same record."""
        kept = self.kept[table.id]
        kept.revision = table.revision
        id = tick_id(table.id, table.queued_ms)
        if table.queued_ms not in (0, kept.queued_ms) and id not in new:
            queues = kept.schedule.overlap is Overlap.QUEUE_ONE and table.queued_ms in passed
            assert queues and not kept.queued_ms, f"{id!r} is queued"
        kept.queued_ms = 0 if id in new else table.queued_ms

    def _made(self, id: str, seen: Seen, passed: list[int], leaps: Leaps) -> None:
        name, _, time = id.partition("@")
        kept = self.kept[name]
        # A queued tick is made when the intent it waited for ends, in whatever record.
        assert int(time) in passed or int(time) == kept.queued_ms, f"{id!r} is no tick"
        if int(time) == kept.queued_ms:
            kept.queued_ms = 0
        assert id not in self.made or id in self.forgettable, f"{id!r} was made twice"
        self.made.add(id)
        self.forgettable.discard(id)
        if leaps.in_doubt:
            self.doubtful[id] = seen
        late_ms = seen.execute_at_ms - int(time)
        assert 0 <= late_ms <= kept.schedule.jitter_ms, f"{id!r} is {late_ms} ms after its tick"

    def _ticked(
        self, command: Tick, table: Timetable, running: set[str], new: list[str], leaps: Leaps
    ) -> list[int]:
        """Every tick between its former and its new position is made, or left out with a reason. Returns
        those that passed."""
        kept = self.kept[command.id]
        schedule, period_ms = kept.schedule, kept.schedule.every_ms or MINUTE_MS
        assert not kept.paused, f"{command.id!r} is paused and ticks"
        assert command.was_ms == kept.next_ms, f"a tick at {command.was_ms}, and {kept.next_ms} was next"
        if table.next_ms < kept.next_ms:  # the clock was ahead, and came back
            sure = not command.times and not command.missed and table.next_ms > table.last_ms
            assert sure, f"{command.id!r} went back"
            kept.decided_ms = min(kept.decided_ms, table.last_ms)
        assert (table.next_ms - kept.next_ms) % period_ms == 0, f"{command.id!r} left its rhythm"
        passed = list(range(kept.next_ms, table.next_ms, period_ms)) if table.next_ms else []
        kept.next_ms = table.next_ms
        if schedule.misfire is Misfire.ONCE:
            owed = passed[-1:]
        elif schedule.misfire is Misfire.CATCH_UP:
            owed = passed[-schedule.catch_up :]
        else:
            owed = []  # only the calendar knows how late it was
        if table.refused:  # from the tick that could not be accepted on, they are tried again
            owed = [time_ms for time_ms in owed if time_ms in command.times]
        for time_ms in owed:
            if time_ms <= kept.decided_ms:
                continue
            id = tick_id(command.id, time_ms)
            overlaps = schedule.overlap in (Overlap.SKIP, Overlap.QUEUE_ONE) and any(
                other.startswith(f"{command.id}@") for other in (*running, *new)
            )
            assert id in new or id in self.made or overlaps, f"the tick {id!r} is lost"
        if passed:
            # What was decided by an untrusted clock may be decided again when the clock comes back.
            sure_ms = min(passed[-1], leaps.believed_ms) if leaps.in_doubt else passed[-1]
            kept.decided_ms = max(kept.decided_ms, sure_ms)
        assert table.last_ms <= kept.decided_ms, f"{command.id!r} decided what is not believed"
        return passed
