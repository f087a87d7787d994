"""Converts users' times to milliseconds: delays ("30d", a timedelta, seconds) and points in time."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from duetime.errors import InvalidField
from duetime.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, TIME_MS_MAX
from duetime.timefmt import NoOffset, NotATime, ms_of, parse

Delay = int | float | str | timedelta
Moment = datetime | int | float | str

_UNITS = {
    "ms": 1,
    "s": SECOND_MS,
    "m": MINUTE_MS,
    "min": MINUTE_MS,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|[smhdw])")
_HINT = 'Write it as "30d", "1h30m", "250ms", a number of seconds, or a timedelta.'
_MOMENT_HINT = "Give an aware datetime, ISO-8601 text with an offset, or seconds since 1970."


def delay_ms(delay: Delay) -> int:
    """A duration in milliseconds."""
    if isinstance(delay, timedelta):
        millis = delay / timedelta(milliseconds=1)
    elif isinstance(delay, str):
        text = delay.strip().lower()
        parts = _PART.findall(text)
        if not parts or _PART.sub("", text).strip():
            raise InvalidField(f"{delay!r} is not a duration.", hint=_HINT)
        millis = sum(float(number) * _UNITS[unit] for number, unit in parts)
    elif type(delay) in (int, float):
        millis = delay * 1000
    else:
        raise InvalidField(f"{delay!r} is not a duration.", hint=_HINT)
    if not 0 <= millis < float("inf"):
        raise InvalidField(f"The delay {delay!r} is negative or infinite.", hint=_HINT)
    return round(millis)


def moment_ms(moment: Moment) -> int:
    """A point in time, in milliseconds since 1970."""
    try:
        if isinstance(moment, datetime):
            return ms_of(moment)
        if isinstance(moment, str):
            return parse(moment)
        if type(moment) in (int, float):
            at_ms = parse(moment)
            if abs(at_ms) < TIME_MS_MAX:
                return at_ms
    except NoOffset:
        raise InvalidField(f"{moment} has no time zone, so it is ambiguous.", hint=_MOMENT_HINT) from None
    except NotATime:
        pass
    raise InvalidField(f"{moment!r} is not a time.", hint=_MOMENT_HINT)
