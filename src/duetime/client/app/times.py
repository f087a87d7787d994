"""Converts users' times to milliseconds: delays ("30d", a timedelta, seconds) and points in time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from duetime.errors import InvalidField

Delay = int | float | str | timedelta
Moment = datetime | int | float | str

_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|[smhdw])")
_HINT = 'Write it as "30d", "1h30m", "250ms", a number of seconds, or a timedelta.'


def delay_ms(delay: Delay) -> int:
    """A duration in milliseconds."""
    if isinstance(delay, timedelta):
        millis = delay / timedelta(milliseconds=1)
    elif isinstance(delay, str):
        text = delay.strip().lower()
        parts = _PART.findall(text)
        if not parts or _PART.sub("", text).strip():
            raise InvalidField(f"{delay!r} is not a duration.", hint=_HINT)
        millis = sum(float(number) * _UNITS_MS[unit] for number, unit in parts)
    elif type(delay) in (int, float):
        millis = delay * 1000
    else:
        raise InvalidField(f"{delay!r} is not a duration.", hint=_HINT)
    if not 0 <= millis < float("inf"):
        raise InvalidField(f"The delay {delay!r} is negative or infinite.", hint=_HINT)
    return round(millis)


def moment_ms(moment: Moment) -> int:
    """A point in time, in milliseconds since 1970."""
    hint = "Give an aware datetime, ISO-8601 text with an offset, or seconds since 1970."
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise InvalidField(f"{moment!r} is not a time.", hint=hint) from error
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidField(f"{moment} has no time zone, so it is ambiguous.", hint=hint)
        return round((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))
    if type(moment) in (int, float) and abs(moment) < 10**10:
        return round(moment * 1000)
    raise InvalidField(f"{moment!r} is not a time.", hint=hint)
