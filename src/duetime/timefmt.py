"""Times, sizes and counts as text. The only reader and the only writer of ISO-8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class NotATime(ValueError):
    """A value is not a point in time."""


class NoOffset(NotATime):
    """A time without an offset is ambiguous."""


@lru_cache(maxsize=4096)
def iso_second(at_s: int) -> str:
    """A time in ISO-8601, UTC, to the second and without the zone."""
    return (_EPOCH + timedelta(seconds=at_s)).isoformat()


@lru_cache(maxsize=4096)
def iso(at_ms: int) -> str:
    """A time in ISO-8601, UTC, with milliseconds. Cached, because the same times come again."""
    return f"{iso_second(at_ms // 1000)}.{at_ms % 1000:03d}Z"


def iso_or_none(at_ms: int | None) -> str | None:
    """The same for a time that may be missing (None or 0)."""
    return iso(at_ms) if at_ms else None


def moment_of(at_ms: int) -> datetime:
    """A time as an aware datetime in UTC."""
    return _EPOCH_UTC + timedelta(milliseconds=at_ms)


def ms_of(moment: datetime) -> int:
    """An aware datetime as milliseconds since 1970. A fraction of a millisecond is dropped."""
    if moment.tzinfo is None:
        raise NoOffset
    # Does not use timestamp(), because floats lose milliseconds.
    return (moment - _EPOCH_UTC) // _MILLISECOND


def parse(value: str | float) -> int:
    """ISO-8601 with an offset, or a number of seconds, as milliseconds since 1970."""
    try:
        return ms_of(datetime.fromisoformat(value)) if isinstance(value, str) else round(value * 1000)
    except NoOffset:
        raise
    except (ValueError, OverflowError):
        raise NotATime from None


def size(count: float) -> str:
    """A number of bytes with a suitable unit."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def size_bytes(text: str) -> int:
    """A number of bytes from text such as `512M`, `1.5 GiB` or `1048576`. Units are powers of 1024."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size; write it as 512M or 2G")
    return round(float(found[1]) * _UNITS[found[2].upper()])


def plural(count: int, noun: str) -> str:
    """`1 intent`, `2,000 intents`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
