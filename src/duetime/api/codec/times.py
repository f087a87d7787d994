"""Parses the times of the API: ISO-8601 with any offset, or a number of seconds."""

from __future__ import annotations

from datetime import UTC, datetime

from duetime.errors import InvalidField
from duetime.limits import TIME_MS_MAX


def read(value: str | int | float, place: str) -> int:
    """Milliseconds since 1970. Raises `InvalidField` with the path."""
    if isinstance(value, str):
        at_ms = _from_text(value, place)
    else:
        if value != value or abs(value) > TIME_MS_MAX:  # NaN, or too large to multiply
            raise _out_of_range(place)
        at_ms = round(value * 1000)
    if not 0 < at_ms <= TIME_MS_MAX:
        raise _out_of_range(place)
    return at_ms


def _from_text(text: str, place: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise InvalidField(
                f"{place}: {text!r} has no offset.", hint="Add Z or an offset such as +01:00.", path=place
            )
        # Does not use timestamp(), because floats lose milliseconds.
        return (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        raise InvalidField(
            f"{place}: {text[:64]!r} is not a time.",
            hint="Examples: 2030-01-31T09:00:00+01:00, or a number of seconds since 1970.",
            path=place,
        ) from None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = datetime(1970, 1, 1, 0, 0, 0, 1000) - datetime(1970, 1, 1)


def _out_of_range(place: str) -> InvalidField:
    return InvalidField(
        f"{place}: the time is out of range.",
        hint="Numbers are seconds since 1970, not milliseconds.",
        path=place,
    )
