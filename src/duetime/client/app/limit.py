"""Limits of rate and concurrency by a key, as people write them, and as the engine keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from duetime.client.app.times import delay_ms
from duetime.client.http.models import Limit
from duetime.errors import InvalidField
from duetime.protocol.terms import Limit as Kept

_RATE = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)?(ms|s|m|h|d)")
_UNITS = ("d", "h", "m", "s", "ms")
_HINT = 'Write Limit(key="tenant:42", rate="20/s", burst=5, concurrency=3).'


def kept(given: Iterable[Limit | Mapping[str, Any]]) -> tuple[Kept, ...] | None:
    """As the engine keeps them. Their bounds are checked with the rest of an intent's terms."""
    found = []
    for each in given:
        try:
            limit = each if isinstance(each, Limit) else msgspec.convert(each, Limit)
        except msgspec.ValidationError as error:
            raise InvalidField(f"{each!r} is not a limit: {error}.", hint=_HINT) from None
        rate, period_ms = (0, 1_000) if limit.rate is None else _read(limit.rate)
        found.append(Kept(limit.key, rate, period_ms, limit.burst, limit.concurrency or 0))
    return tuple(found) or None


def fields(limits: tuple[Kept, ...]) -> list[dict[str, Any]]:
    """As the API is told."""
    return [
        {
            "key": limit.key,
            "rate": _shown(limit) if limit.rate else None,
            "burst": limit.burst,
            "concurrency": limit.concurrency or None,
        }
        for limit in limits
    ]


def _read(text: str) -> tuple[int, int]:
    """How many, and in how many milliseconds."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise InvalidField(f"{text[:32]!r} is not a rate.", hint='Write it like "20/s" or "5/10m".')
    return int(found[1]), delay_ms(f"{found[2] or 1}{found[3]}")


def _shown(limit: Kept) -> str:
    unit = next(unit for unit in _UNITS if limit.period_ms % delay_ms(f"1{unit}") == 0)
    return f"{limit.rate}/{limit.period_ms // delay_ms(f'1{unit}')}{unit}"
