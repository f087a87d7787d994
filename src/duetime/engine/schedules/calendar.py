"""Turns schedule rules into moments: the only user of dates and time zones in the engine.

Where clocks change (daylight saving time), these rules apply (they are Debian cron's):
- A rule for fixed times (neither minute nor hour begins with `*`) runs once for each of its local times. A
  skipped time runs at the first moment after the gap; a time that occurs twice runs the first time.
- Any other rule, and any with seconds, runs at every moment at which the local time matches: not at all in
  the hour that is skipped, and both times in the hour that occurs twice.
- `every` has no zone: it counts from the start, or from 1970, so that 5m falls on full five minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from duetime.limits import CALENDAR_DAYS_MAX, CALENDAR_TICKS_MAX, CATCH_UP_MAX, MISFIRE_MS, TIME_MS_MAX
from duetime.protocol.command import Tick
from duetime.protocol.schedule import Misfire, Schedule, Timetable
from duetime.timefmt import moment_of, ms_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
# No clock was ever changed at a moment that is not a multiple of this.
_BLOCK = timedelta(minutes=15)
# No clock is changed by more, except on the islands that skipped a day.
_MARGIN = timedelta(hours=3)
_NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class Cron:
    """A cron rule in a time zone."""

    def __init__(self, text: str, zone: tzinfo) -> None:
        text = _NAMES.get(text.strip().lower(), text)
        self._rule = CronSim(text, datetime(2000, 1, 1))
        self._zone = zone
        self._seconds = sorted(self._rule.seconds)
        fields = text.split()
        self._fixed = len(fields) == 5 and not fields[0].startswith("*") and not fields[1].startswith("*")
        hours, minutes = sorted(self._rule.hours), sorted(self._rule.minutes)
        self._times = [time(hour, minute) for hour in hours for minute in minutes]

    def after(self, moment: datetime) -> datetime | None:
        """The first moment of this rule after the given one; both in UTC."""
        return self._fixed_after(moment) if self._fixed else self._matching_after(moment)

    def _days(self, first: date) -> Iterator[date]:
        """The days of this rule from this one on, up to the search limit."""
        rule = self._rule
        for number in range(CALENDAR_DAYS_MAX):
            day = first + number * _DAY
            if day.month in rule.months and rule.match_day(day):
                yield day

    def _fixed_after(self, moment: datetime) -> datetime | None:
        for day in self._days(moment.astimezone(self._zone).date() - _DAY):
            for each in self._times:
                found = self._resolve(datetime.combine(day, each))
                if found > moment:
                    return found
        return None

    def _resolve(self, local: datetime) -> datetime:
        """The moment of a local time: the first one, or the first after the gap it is in."""
        while True:
            moment = local.replace(tzinfo=self._zone).astimezone(UTC)
            if moment.astimezone(self._zone).replace(tzinfo=None) == local:
                return moment
            local += _MINUTE

    def _matching_after(self, moment: datetime) -> datetime | None:
        found = self._scan(moment, moment + _DAY + _MARGIN)
        if found is not None:
            return found
        for day in self._days(moment.astimezone(self._zone).date()):
            begin = datetime.combine(day, time(), self._zone).astimezone(UTC) - _MARGIN
            found = self._scan(max(begin, moment), begin + _DAY + 2 * _MARGIN)
            if found is not None:
                return found
        return None

    def _scan(self, after: datetime, until: datetime) -> datetime | None:
        """The first moment in between at which the local time matches."""
        block = _EPOCH + (after - _EPOCH) // _BLOCK * _BLOCK
        first = (after - block) // _MINUTE
        while block <= until:
            local = block.astimezone(self._zone).replace(tzinfo=None)
            for number in range(first, 15):
                if not self._matches(local + number * _MINUTE):
                    continue
                minute = block + number * _MINUTE
                behind = bisect_right(self._seconds, (after - minute) // _SECOND)
                if behind < len(self._seconds):
                    return minute + self._seconds[behind] * _SECOND
            block, first = block + _BLOCK, 0
        return None

    def _matches(self, wall: datetime) -> bool:
        """Whether the rule matches this minute of local time."""
        rule = self._rule
        return (
            wall.minute in rule.minutes
            and wall.hour in rule.hours
            and wall.month in rule.months
            and rule.match_day(wall)
        )


@lru_cache(maxsize=1_000)
def _cron(text: str, zone: str) -> Cron:
    return Cron(text, ZoneInfo(zone))


def problem(schedule: Schedule) -> str | None:
    """What is wrong with a schedule's rule or zone, or None."""
    try:
        ZoneInfo(schedule.zone)
    except (OSError, ValueError, KeyError):
        return f"There is no time zone {schedule.zone!r}: write it like Europe/Paris."
    for text in schedule.skip:
        try:
            date.fromisoformat(text)
        except ValueError:
            return f"{text[:32]!r} is not a date to skip: write it like 2030-12-25."
    try:
        if schedule.cron:
            _cron(schedule.cron, schedule.zone)
    except (CronSimError, AssertionError) as error:
        return f"{schedule.cron!r} is not a cron rule ({error}): write it like '0 9 * * MON-FRI'."
    return None


def following(schedule: Schedule, after_ms: int) -> int:
    """The first tick after this moment that is not on a date to skip; 0: none."""
    found_ms = _following(schedule, after_ms)
    if not schedule.skip:
        return found_ms
    zone, skipped = ZoneInfo(schedule.zone), _dates(schedule.skip)
    while found_ms:
        day = moment_of(found_ms).astimezone(zone).date()
        if day not in skipped:
            break
        next_day = datetime.combine(day + _DAY, time(), zone).astimezone(UTC)
        # Where clocks go back over midnight, the date occurs again after its end: then tick by tick.
        found_ms = _following(schedule, max(found_ms, ms_of(next_day) - 1))
    return found_ms


@lru_cache(maxsize=1_000)
def _dates(skip: tuple[str, ...]) -> frozenset[date]:
    return frozenset(date.fromisoformat(text) for text in skip)


def _following(schedule: Schedule, after_ms: int) -> int:
    """The first tick of the rule after this moment; 0: none."""
    after_ms = max(after_ms, schedule.start_ms - 1)
    if schedule.every_ms:
        every_ms, start_ms = schedule.every_ms, schedule.start_ms
        found_ms = start_ms + ((after_ms - start_ms) // every_ms + 1) * every_ms
    else:
        found = _cron(schedule.cron, schedule.zone).after(moment_of(after_ms))
        found_ms = 0 if found is None else ms_of(found)
    if found_ms > (schedule.end_ms or TIME_MS_MAX):
        return 0
    return found_ms


def ticks(schedule: Schedule, after_ms: int, count: int) -> list[int]:
    """The next ticks, at most `count`."""
    found: list[int] = []
    while len(found) < count:
        after_ms = following(schedule, after_ms)
        if not after_ms:
            break
        found.append(after_ms)
    return found


def tick(table: Timetable, now_ms: int) -> Tick:
    """Decide a schedule's ticks up to now: which to make, how many are left out, and which one is next.

    The newest tick that has passed is on time if it is only a little late; all earlier ones were missed.
    """
    schedule, misfire = table.schedule, table.schedule.misfire
    times, passed, next_ms = _passed(schedule, table.next_ms, now_ms)
    on_time = bool(times) and now_ms - times[-1] <= MISFIRE_MS
    if misfire is Misfire.CATCH_UP:
        made = times[-schedule.catch_up - on_time :]
    else:
        made = times[-1:] if on_time or misfire is Misfire.ONCE else []
    return Tick(table.id, table.revision, table.next_ms, tuple(made), passed - len(made), next_ms)


def _passed(schedule: Schedule, first_ms: int, now_ms: int) -> tuple[list[int], int, int]:
    """The newest ticks from `first_ms` up to now, as many as any policy may need; how many have passed (if
    very many, only some are counted); and the one after them."""
    times = _walk(schedule, first_ms, now_ms)
    passed = len(times)
    early_ms, late_ms = first_ms, now_ms
    while len(times) == CALENDAR_TICKS_MAX:  # too many to walk: begin nearer to now, but not too near
        middle_ms = (early_ms + late_ms) // 2
        nearer = _walk(schedule, following(schedule, middle_ms), now_ms)
        if CATCH_UP_MAX < len(nearer) < CALENDAR_TICKS_MAX:
            times, passed = nearer, passed + len(nearer)
        elif len(nearer) == CALENDAR_TICKS_MAX:
            early_ms = middle_ms
        else:
            late_ms = middle_ms
    return times, passed, following(schedule, times[-1]) if times else first_ms


def _walk(schedule: Schedule, next_ms: int, now_ms: int) -> list[int]:
    times: list[int] = []
    while next_ms and next_ms <= now_ms and len(times) < CALENDAR_TICKS_MAX:
        times.append(next_ms)
        next_ms = following(schedule, next_ms)
    return times
