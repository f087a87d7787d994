"""Parses times on the command line into milliseconds: "30s", "tomorrow 9:00 Europe/Paris"."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from duetime.client.app.times import delay_ms, moment_ms
from duetime.errors import InvalidField
from duetime.timefmt import iso, moment_of, ms_of

HINT = (
    'Examples: 2030-01-31T09:00+01:00, "in 30s", "tomorrow 9:00 Europe/Paris", "friday 17:30", "18:00", '
    "or seconds since 1970."
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME = re.compile(r"(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?\s*(am|pm)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def length(text: str) -> int:
    """A duration in milliseconds. A number alone is in seconds, unless it can only be a point in time."""
    said = text.strip()
    return delay_ms(float(said) if re.fullmatch(r"\d{1,8}(\.\d+)?", said) else said)


def moment(text: str, now_ms: int) -> int:
    """A point in time, in milliseconds since 1970."""
    said = text.strip()
    if not said:
        raise _no_moment(text)
    if said.lower() == "now":
        return now_ms
    if said.startswith("+") or said.lower().startswith("in "):
        return now_ms + length(said.removeprefix("+") if said[0] == "+" else said[3:])
    if said.lower().endswith(" ago"):
        return now_ms - length(said[:-4])
    if re.fullmatch(r"\d{9,10}(\.\d+)?", said):
        return moment_ms(float(said))
    try:
        return moment_ms(said)
    except InvalidField as error:
        return _in_words(text, now_ms, error)


def _in_words(text: str, now_ms: int, error: InvalidField) -> int:
    """A day, a time and a zone, each optional."""
    words = text.replace("T", " ", 1).split() if _DATE.match(text.strip()) else text.split()
    zone, words = _zone(words)
    day_word = words.pop(0).lower() if words and not _is_time(words[0]) else None
    clock_words = " ".join(words)
    now = _local(moment_of(now_ms), zone)
    day = _day(day_word, now.date(), text, error)
    clock = _clock(clock_words, text, error)
    found = _at(day if day is not None else now.date(), clock, zone, text)
    if day is None and found <= now_ms:  # "18:00" after six o'clock means tomorrow
        found = _at(now.date() + timedelta(days=1), clock, zone, text)
    return found


def _zone(words: list[str]) -> tuple[ZoneInfo | None, list[str]]:
    """The time zone at the end, if any; None: the machine's."""
    if not words:
        return None, words
    last = words[-1]
    if last.upper() in ("UTC", "Z", "GMT"):
        return ZoneInfo("UTC"), words[:-1]
    if "/" not in last:
        return None, words
    try:
        return ZoneInfo(last), words[:-1]
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidField(
            f"There is no time zone {last!r}.", hint="Use a name such as Europe/Paris or UTC."
        ) from None


def _is_time(word: str) -> bool:
    return _TIME.fullmatch(word) is not None


def _day(word: str | None, today: date, text: str, error: InvalidField) -> date | None:
    if word is None:
        return None
    if word in ("today", "tomorrow"):
        return today + timedelta(days=word == "tomorrow")
    named = [number for number, name in enumerate(_DAYS) if len(word) >= 3 and name.startswith(word)]
    if named:
        return today + timedelta(days=(named[0] - today.weekday() - 1) % 7 + 1)
    try:
        return date.fromisoformat(word)
    except ValueError:
        raise _no_moment(text) from error


def _clock(words: str, text: str, error: InvalidField) -> time:
    found = _TIME.fullmatch(words)
    if found is None:
        raise _no_moment(text) from error
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    half = (found[4] or "").lower()
    if not half and found[2] is None:
        raise _no_moment(text) from error  # a number alone is ambiguous
    if half:
        if not 1 <= hour <= 12:
            raise _no_moment(text) from error
        hour = hour % 12 + 12 * (half == "pm")
    try:
        return time(hour, minute, second)
    except ValueError:
        raise _no_moment(text) from error


def _at(day: date, clock: time, zone: ZoneInfo | None, text: str) -> int:
    naive = datetime.combine(day, clock)
    moment = (naive.replace(tzinfo=zone) if zone is not None else naive.astimezone()).astimezone(UTC)
    if _local(moment, zone).replace(tzinfo=None) != naive:
        raise InvalidField(
            f"{text!r} does not exist: daylight saving time skips it that day.",
            hint="Use an earlier or a later time.",
        )
    return ms_of(moment)


def _local(moment: datetime, zone: ZoneInfo | None) -> datetime:
    return moment.astimezone(zone)


def _no_moment(text: str) -> InvalidField:
    return InvalidField(f"{text!r} is not a time.", hint=HINT)


def shown(moment: datetime | None) -> str:
    """A time for a table: UTC, with milliseconds."""
    if moment is None:
        return ""
    return iso(ms_of(moment))
