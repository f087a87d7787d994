"""Rates as people write them: 20/s, 100/m, 5/10s."""

from __future__ import annotations

import re

from duetime.errors import InvalidField
from duetime.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from duetime.protocol import terms
from duetime.wire.intent import Limit

_UNITS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_RATE = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)?(ms|s|m|h|d)")


def read(text: str, place: str = "rate") -> tuple[int, int]:
    """The number of starts, and the period in milliseconds."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise InvalidField(f"{place}: {text[:32]!r} is not a rate.", hint="Example: 20/s.", path=place)
    period_ms = int(found.group(2) or 1) * _UNITS[found.group(3)]
    if period_ms > DAY_MS:
        raise InvalidField(f"{place}: the period of {text[:32]!r} is longer than a day.", path=place)
    return int(found.group(1)), period_ms


def shown(rate: int, period_ms: int) -> str | None:
    """The rate as text; None if there is no rate."""
    if not rate:
        return None
    for unit, ms in reversed(_UNITS.items()):
        if period_ms % ms == 0:
            times = period_ms // ms
            return f"{rate}/{times if times > 1 else ''}{unit}"
    raise AssertionError("milliseconds divide everything")


def stored(limit: Limit, place: str = "rate") -> terms.Limit:
    """A limit in the form of an intent's terms."""
    rate, period_ms = (0, SECOND_MS) if limit.rate is None else read(limit.rate, place)
    return terms.Limit(limit.key, rate, period_ms, limit.burst, limit.concurrency or 0)


def limit(stored: terms.Limit) -> Limit:
    """A stored limit in the form of the API."""
    return Limit(
        key=stored.key,
        rate=shown(stored.rate, stored.period_ms),
        burst=stored.burst,
        concurrency=stored.concurrency or None,
    )
