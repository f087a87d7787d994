"""Refuses bodies with too many items before they are decoded.

An item needs two bytes of JSON and about a hundred bytes of memory, and a decoder checks the limit of a list
only after it has decoded the list. So the items are counted first, by a decoder that creates no objects and
stops at the limit.
"""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec import Raw, Struct

from duetime.errors import TooLarge
from duetime.limits import BATCH_CREATE_MAX

# The lists in requests that may be long.
_LISTS = ("after", "intentIds", "members")
_TOO_MANY = "at most length"


def check_parts(body: bytes | Raw) -> None:
    """Raise if a JSON array, or a list in a JSON object, has too many items."""
    if len(body) <= 2 * BATCH_CREATE_MAX:
        return
    text = bytes(body)
    if text.count(b",") < BATCH_CREATE_MAX:
        return
    array, lists = counters()
    try:
        (array if text.lstrip().startswith(b"[") else lists).decode(text)
    except msgspec.ValidationError as error:
        if _TOO_MANY in str(error):
            raise TooLarge(
                f"The request has a list of more than {BATCH_CREATE_MAX} parts.",
                hint=f"Send at most {BATCH_CREATE_MAX} at a time.",
            ) from None
    except (msgspec.MsgspecError, RecursionError):
        pass  # the decoder reports the error later


def check_lines(body: bytes) -> None:
    """The same for NDJSON. Ten times as many lines are allowed, because lines may be empty."""
    if body.count(b"\n") > 10 * BATCH_CREATE_MAX:
        raise TooLarge(
            f"The request has more than {10 * BATCH_CREATE_MAX} lines.",
            hint=f"Send at most {BATCH_CREATE_MAX} intents at a time.",
        )


@cache
def counters() -> tuple[msgspec.json.Decoder[object], msgspec.json.Decoder[object]]:
    """Types for counting: an array with a maximum length, and an object with such arrays."""
    names = [(f"part{number}", Raw, Raw()) for number in range(BATCH_CREATE_MAX)]
    many: type[Struct] = msgspec.defstruct("Many", names, array_like=True, forbid_unknown_fields=True)
    lists = msgspec.defstruct("Lists", [(name, many | None, None) for name in _LISTS])
    return msgspec.json.Decoder(many), msgspec.json.Decoder(lists)
