"""The first argument of a function that runs after others: their results instead of a value of the caller."""

from __future__ import annotations

import re
from enum import IntEnum

# The beginning of a payload with arguments: `[[1, 2], {"name": 3}]`.
_ARGUMENTS = re.compile(rb"\s*\[\s*\[\s*")


class FirstArgument(IntEnum):
    """What a function gets as its first argument, before those of its payload."""

    NONE = 0
    RESULT = 1
    """The result of the last dependency."""
    RESULTS = 2
    """The list of the results of all dependencies, or of the group's members, in order."""
    FAILURE = 3
    """The dependency that failed: its id, its status and its error."""


def prepended(payload: bytes, value: bytes) -> bytes | None:
    """The payload with one more argument in front. None: the payload has no list of arguments.

    The payload is not parsed: it may be large, or nested deeply.
    """
    if not payload:
        return b"[[%b]]" % value
    found = _ARGUMENTS.match(payload)
    if found is None:
        return None
    end = found.end()
    comma = b"" if payload[end : end + 1] == b"]" else b","
    return b"".join((payload[:end], value, comma, payload[end:]))
