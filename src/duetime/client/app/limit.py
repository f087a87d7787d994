"""Limits of rate and concurrency by a key, as callers of an App write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from duetime.errors import InvalidField
from duetime.protocol.terms import Limit as StoredLimit
from duetime.wire import rates
from duetime.wire.intent import Limit

_HINT = 'Write Limit(key="tenant:42", rate="20/s", burst=5, concurrency=3).'


def stored(given: Iterable[Limit | Mapping[str, Any]]) -> tuple[StoredLimit, ...] | None:
    """As the engine stores them. Their bounds are checked with the rest of an intent's terms."""
    found = []
    for each in given:
        try:
            limit = each if isinstance(each, Limit) else msgspec.convert(each, Limit)
        except msgspec.ValidationError as error:
            raise InvalidField(f"{each!r} is not a limit: {error}.", hint=_HINT) from None
        found.append(rates.stored(limit))
    return tuple(found) or None
