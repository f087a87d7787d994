"""Rules into moments: cron where clocks change, held against an implementation that walks every minute."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from duetime.engine.schedules import calendar
from duetime.engine.schedules.calendar import Cron, following, problem, tick, ticks
from duetime.protocol.command import Tick
from duetime.protocol.schedule import Misfire, Schedule, Timetable
from duetime.timefmt import ms_of
from tests.unit.kernel.bench import terms

# Zones with every oddity there is: half an hour in Lord Howe, midnight in Beirut, Havana, Santiago, Ramadan
# in Casablanca, a day that Apia skipped, three quarters of an hour in the Chathams.
ZONES = (
    "Europe/Paris",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Asia/Beirut",
    "America/Santiago",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Europe/Dublin",
)
FIRST, LAST = 1997, 2037
# The field of minutes and of hours as a rule says them, and what they mean.
RULES = (
    ("30 2 * * *", {30}, {2}),
    ("0 0 * * *", {0}, {0}),
    ("15,45 0-3 * * *", {15, 45}, {0, 1, 2, 3}),
    ("0 23 * * *", {0}, {23}),
    ("*/15 * * * *", {0, 15, 30, 45}, set(range(24))),
    ("*/20 2 * * *", {0, 20, 40}, {2}),
    ("10 * * * *", {10}, set(range(24))),
)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def transitions(zone: ZoneInfo) -> list[datetime]:
    """Every moment at which the clock is changed, to the minute."""
    found = []
    moment, end = datetime(FIRST, 1, 1, tzinfo=UTC), datetime(LAST, 1, 1, tzinfo=UTC)
    while moment < end:
        later = moment + DAY
        if offset(moment, zone) != offset(later, zone):
            low, high = moment, later
            while high - low > MINUTE:
                middle = low + (high - low) // 2
                middle = middle.replace(second=0, microsecond=0)
                if offset(middle, zone) == offset(low, zone):
                    low = max(middle, low + MINUTE) if middle == low else middle
                else:
                    high = middle
            found.append(high)
        moment = later
    return found


def offset(moment: datetime, zone: ZoneInfo) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()


Walls = list[tuple[datetime, datetime]]


def walls_of(zone: ZoneInfo, begin: datetime, end: datetime) -> Walls:
    """Every minute, with what the clock on the wall shows."""
    count = (end - begin) // MINUTE
    moments = [begin + number * MINUTE for number in range(count)]
    return [(moment, moment.astimezone(zone).replace(tzinfo=None, fold=0)) for moment in moments]


def oracle(rule: str, minutes: set[int], hours: set[int], walls: Walls) -> list[datetime]:
    """Every moment of a rule, minute by minute, from what its fields mean and nothing else."""
    minute, hour = rule.split()[:2]
    if minute.startswith("*") or hour.startswith("*"):
        return [at for at, wall in walls if wall.minute in minutes and wall.hour in hours]
    found: list[datetime] = []
    reached = walls[0][1] - MINUTE  # the latest that any clock on the wall has shown
    for at, wall in walls:
        skipped = reached + MINUTE
        while skipped <= wall:  # also what the clock has jumped over
            if skipped.minute in minutes and skipped.hour in hours and at not in found[-1:]:
                found.append(at)
            skipped += MINUTE
        reached = max(reached, wall)
    return found


def check(zone_name: str, moment: datetime) -> None:
    zone = ZoneInfo(zone_name)
    begin, end = moment - DAY, moment + DAY
    walls = walls_of(zone, begin, end)
    for rule, minutes, hours in RULES:
        cron, found = Cron(rule, zone), []
        at = cron.after(begin - timedelta(milliseconds=1))
        while at is not None and at < end:
            found.append(at)
            at = cron.after(at)
        assert found == oracle(rule, minutes, hours, walls), f"{rule} in {zone_name} around {moment}"


@pytest.mark.parametrize("zone", ZONES)
def test_moments_around_clock_changes(zone):
    moments = transitions(ZoneInfo(zone))
    assert len(moments) > 4
    for moment in Random(zone).sample(moments, min(4, len(moments))):
        check(zone, moment)


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_moments_around_clock_changes_in_forty_years(zone):
    for moment in transitions(ZoneInfo(zone)):
        check(zone, moment)


def test_the_rules_in_words():
    paris = ZoneInfo("Europe/Paris")

    def local(rule, day, clock):
        begin = datetime.fromisoformat(f"2027-{day}T{clock}").replace(tzinfo=paris)
        at = Cron(rule, paris).after(begin.astimezone(UTC))
        assert at is not None
        return at.astimezone(paris).isoformat()

    assert local("30 2 * * *", "03-28", "00:00") == "2027-03-28T03:00:00+02:00", "jumped over: right after"
    assert local("30 2 * * *", "10-31", "00:00") == "2027-10-31T02:30:00+02:00", "comes twice: the first"
    assert local("30 2 * * *", "10-31", "02:30") == "2027-11-01T02:30:00+01:00", "and not again"
    assert local("*/30 * * * *", "03-28", "01:30") == "2027-03-28T03:00:00+02:00"
    assert local("0 0 2 * * *", "10-31", "02:00") == "2027-10-31T02:00:00+01:00", "with seconds: both"


@pytest.mark.parametrize(
    ("rule", "after", "expected"),
    [
        ("0 9 * * MON-FRI", date(2027, 1, 1), "2027-01-01T09:00"),
        ("0 9 * * MON-FRI", date(2027, 1, 2), "2027-01-04T09:00"),
        ("0 0 L * *", date(2027, 2, 1), "2027-02-28T00:00"),
        ("0 0 29 2 *", date(2027, 1, 1), "2028-02-29T00:00"),
        ("* * 29 2 *", date(2027, 1, 1), "2028-02-29T00:00"),
        ("0 0 * * MON#1", date(2027, 1, 1), "2027-01-04T00:00"),
        ("@daily", date(2027, 1, 1), "2027-01-02T00:00"),
        ("*/10 * * * * *", date(2027, 1, 1), "2027-01-01T00:00:10"),
        ("0 0 * 2 MON#5", date(2027, 1, 1), "2044-02-29T00:00"),
    ],
)
def test_every_rule_gives_the_expected_moments(rule, after, expected):
    moment = datetime(after.year, after.month, after.day, tzinfo=UTC)
    found = Cron(rule, UTC).after(moment)
    assert found == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize("rule", ["0 0 29 2 *", "* * 29 2 *"])
def test_a_rule_that_means_nothing_for_too_long_means_nothing(rule, monkeypatch):
    schedule = Schedule("s", terms(), cron=rule)
    assert following(schedule, NOON) == at("2028-02-29T00:00")
    monkeypatch.setattr(calendar, "CALENDAR_DAYS_MAX", 300)
    assert following(schedule, NOON) == 0


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOON = at("2027-01-01T12:00")
HOUR = 3_600_000


def hourly(**fields) -> Schedule:
    return Schedule("s", terms(), every_ms=HOUR, **fields)


def test_every_counts_from_its_start_or_from_1970():
    assert following(hourly(), NOON) == NOON + HOUR
    assert following(hourly(), NOON - 1) == NOON
    late = hourly(start_ms=NOON + 60_000)
    assert ticks(late, NOON, 2) == [NOON + 60_000, NOON + 60_000 + HOUR]
    assert ticks(hourly(end_ms=NOON + 2 * HOUR), NOON, 5) == [NOON + HOUR, NOON + 2 * HOUR]
    cron = Schedule("s", terms(), cron="0 * * * *", start_ms=NOON + HOUR)
    assert ticks(cron, NOON - 5 * HOUR, 2) == [NOON + HOUR, NOON + 2 * HOUR]
    yearly = Schedule("s", terms(), cron="0 0 1 1 *", end_ms=NOON)
    assert following(yearly, NOON) == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"zone": "Mars/Base"}, "no time zone"),
        ({"zone": ""}, "no time zone"),
        ({"zone": "../../etc/passwd"}, "no time zone"),
        ({"zone": "America"}, "no time zone"),
        ({"every_ms": 0, "cron": "0 9 * * *"}, None),
        ({"every_ms": 0, "cron": "0 9 * *"}, "not a cron rule"),
        ({"every_ms": 0, "cron": "61 9 * * *"}, "not a cron rule"),
        ({"every_ms": 0, "cron": "0 0 31 2 *"}, "not a cron rule"),
        ({"every_ms": 0, "cron": "a b c d e"}, "not a cron rule"),
        ({"every_ms": 0, "cron": "0 0 * * MON#1/2"}, "not a cron rule"),
    ],
)
def test_invalid_rules_are_refused_with_the_reason(changes, said):
    found = problem(replace(hourly(), **changes))
    assert found is None if said is None else said in str(found)


def passed(schedule: Schedule, next_ms: int, now_ms: int) -> Tick:
    return tick(Timetable(schedule, next_ms, next_ms, 0, 0), now_ms)


def test_on_time():
    for misfire in Misfire:
        found = passed(hourly(misfire=misfire), NOON, NOON + 5_000)
        assert (found.times, found.missed, found.next_ms) == ((NOON,), 0, NOON + HOUR)


@pytest.mark.parametrize(
    ("misfire", "late", "times", "missed"),
    [
        (Misfire.ONCE, 60_000, (3,), 3),
        (Misfire.ONCE, 0, (3,), 3),
        (Misfire.SKIP, 60_000, (), 4),
        (Misfire.SKIP, 0, (3,), 3),
        (Misfire.CATCH_UP, 60_000, (2, 3), 2),
        (Misfire.CATCH_UP, 0, (1, 2, 3), 1),
    ],
)
def test_missed_moments(misfire, late, times, missed):
    schedule = hourly(misfire=misfire, catch_up=2)
    found = passed(schedule, NOON, NOON + 3 * HOUR + late)
    assert found.times == tuple(NOON + hour * HOUR for hour in times)
    assert (found.missed, found.next_ms) == (missed, NOON + 4 * HOUR)


def test_after_the_end_nothing_follows():
    found = passed(hourly(end_ms=NOON + HOUR), NOON, NOON + 5 * HOUR)
    assert (found.times, found.missed, found.next_ms) == ((NOON + HOUR,), 1, 0)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule("s", terms(), every_ms=100, misfire=Misfire.CATCH_UP, catch_up=100),
        Schedule("s", terms(), cron="* * * * * *", misfire=Misfire.CATCH_UP, catch_up=100),
        Schedule("s", terms(), cron="* * * 1 *", misfire=Misfire.CATCH_UP, catch_up=100),
    ],
)
def test_a_year_of_ticks_is_not_gone_through_one_by_one(schedule):
    now_ms = NOON + 364 * 24 * HOUR
    found = passed(schedule, following(schedule, NOON), now_ms)
    assert len(found.times) in (100, 101)
    expected = ticks(schedule, found.times[0] - 1, len(found.times) + 1)
    assert [*found.times, found.next_ms] == expected and expected[-1] > now_ms
    assert found.missed >= 100


def test_no_moment_has_passed():
    found = passed(hourly(), NOON + HOUR, NOON)
    assert (found.times, found.missed, found.next_ms) == ((), 0, NOON + HOUR)


def test_the_calendar_knows_its_names():
    assert all(Cron(name, UTC).after(datetime(2027, 1, 1, tzinfo=UTC)) for name in calendar._NAMES)


# Dates that are left out.


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Paris", "America/Sao_Paulo", "Asia/Beirut", "America/Havana"]
)
@pytest.mark.parametrize(
    "rule", [{"cron": "*/30 * * * *"}, {"cron": "15 0,9,23 * * *"}, {"every_ms": 1_800_000}]
)
def test_no_tick_is_on_a_skipped_date_and_no_other_is_lost(zone, rule):
    """Also where clocks change at midnight."""
    first = datetime(2018, 10, 20, tzinfo=UTC)
    days = tuple(str((first + timedelta(days=n)).date()) for n in range(0, 60, 3))
    plain = Schedule("s", terms(), zone=zone, **rule)
    kept = ticks(replace(plain, skip=days), ms_of(first), 1_500)
    wanted = [
        at_ms
        for at_ms in ticks(plain, ms_of(first), 3_000)
        if str(datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone)).date()) not in days
    ]
    count = min(len(kept), len(wanted))
    assert count > 100 and kept[:count] == wanted[:count]
