"""Times of the API, with errors that name the field."""

from __future__ import annotations

from duetime.errors import InvalidField
from duetime.limits import TIME_MS_MAX
from duetime.timefmt import NoOffset, NotATime, parse


def read(value: str | int | float, place: str) -> int:
    """Milliseconds since 1970. Raises `InvalidField` with the path."""
    try:
        at_ms = parse(value)
    except NoOffset:
        raise InvalidField(
            f"{place}: {value!r} has no offset.", hint="Add Z or an offset such as +01:00.", path=place
        ) from None
    except NotATime:
        if not isinstance(value, str):
            raise _out_of_range(place) from None
        raise InvalidField(
            f"{place}: {value[:64]!r} is not a time.",
            hint="Examples: 2030-01-31T09:00:00+01:00, or a number of seconds since 1970.",
            path=place,
        ) from None
    if not 0 < at_ms <= TIME_MS_MAX:
        raise _out_of_range(place)
    return at_ms


def _out_of_range(place: str) -> InvalidField:
    return InvalidField(
        f"{place}: the time is out of range.",
        hint="Numbers are seconds since 1970, not milliseconds.",
        path=place,
    )
