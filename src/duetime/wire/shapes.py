"""The base classes of requests and responses. Names are camelCase in JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, cast

from msgspec import Meta, Struct

from duetime.timefmt import iso

Time = Annotated[
    str | int | float,
    Meta(
        description="ISO 8601 with any offset, or a number of seconds since 1970.",
        examples=["2030-01-31T09:00:00+01:00"],
    ),
]
"""A time in a request."""
Moment = Annotated[datetime, Meta(tz=True)]
"""A time in an answer."""


class In(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A request. An unknown field is refused."""


class Out(Struct, frozen=True, kw_only=True, rename="camel"):
    """A response. A client ignores unknown fields."""


At = Callable[[int], datetime]
"""Milliseconds since 1970 as a time in a response."""


def written(at_ms: int) -> datetime:
    """A time in a response that is only encoded: its text, which msgspec writes unchanged.

    The type is that of the decoded response. A real datetime would be formatted again for each field.
    """
    return cast(datetime, iso(at_ms))


def written_or_none(at_ms: int | None) -> datetime | None:
    """The same for a time that may be missing: None or 0."""
    return written(at_ms) if at_ms else None
