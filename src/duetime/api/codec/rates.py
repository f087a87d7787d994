"""Rates as people write them: 20/s, 100/m, 5/10s. And limits that have one."""

from __future__ import annotations

import re

from duetime.errors import InvalidField
from duetime.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from duetime.protocol.terms import Limit
from duetime.wire.intent import LimitIn

_UNITS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_RATE = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)?(ms|s|m|h|d)")


def read(text: str, place: str) -> tuple[int, int]:
    """How many, and in how many milliseconds."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise InvalidField(f"{place}: {text[:32]!r} is not a rate.", hint="Example: 20/s.", path=place)
    period_ms = int(found.group(2) or 1) * _UNITS[found.group(3)]
    if period_ms > DAY_MS:
        raise InvalidField(f"{place}: the period of {text[:32]!r} is longer than a day.", path=place)
    return int(found.group(1)), period_ms


def shown(rate: int, period_ms: int) -> str | None:
    """The same as text; None where there is no rate."""
    if not rate:
        return None
    for unit, ms in reversed(_UNITS.items()):
        if period_ms % ms == 0:
            times = period_ms // ms
            return f"{rate}/{times if times > 1 else ''}{unit}"
    raise AssertionError("milliseconds divide everything")


def limits(given: list[LimitIn] | None) -> tuple[Limit, ...] | None:
    """What was said of limits, as an intent's terms have it."""
    if not given:
        return None
    found = []
    for number, limit in enumerate(given):
        rate, period_ms = (0, 1_000) if limit.rate is None else read(limit.rate, f"$.limits[{number}].rate")
        found.append(Limit(limit.key, rate, period_ms, limit.burst, limit.concurrency or 0))
    return tuple(found)
