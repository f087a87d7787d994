"""Refuses messages with too many parts before they are parsed.

A part needs two bytes in a message, and about a hundred bytes after parsing. So the fields of a large message
are counted first, in the encoded message.
"""

from __future__ import annotations

from typing import Any

from duetime.errors import TooLarge
from duetime.limits import BATCH_CREATE_MAX, GRPC_FIELDS_MAX, GRPC_UNCOUNTED_BYTES_MAX

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def check_parts(kind: Any, body: bytes) -> None:
    """Raise if a message, or a large message inside it, has too many fields. `kind` is its descriptor:
    protobuf has several types of those."""
    if len(body) <= GRPC_UNCOUNTED_BYTES_MAX:
        return
    count = place = 0
    while place < len(body):
        count += 1
        if count > GRPC_FIELDS_MAX:
            raise TooLarge(
                f"The message has more than {GRPC_FIELDS_MAX} parts.",
                hint=f"Send at most {BATCH_CREATE_MAX} at a time.",
            )
        try:
            tag, place = _varint(body, place)
            wire = tag & 7
            if wire == _BYTES:
                size, place = _varint(body, place)
                field = kind.fields_by_number.get(tag >> 3)
                if size > GRPC_UNCOUNTED_BYTES_MAX and field is not None and field.message_type is not None:
                    check_parts(field.message_type, body[place : place + size])
                place += size
            elif wire == _VARINT:
                _, place = _varint(body, place)
            elif wire in (_EIGHT, _FOUR):
                place += 8 if wire == _EIGHT else 4
            else:
                return  # not a valid message: the parser reports it
        except IndexError:
            return  # truncated: the parser reports it


def _varint(body: bytes, place: int) -> tuple[int, int]:
    """A varint, and the position after it."""
    byte = body[place]
    place += 1
    if byte < 128:
        return byte, place
    number = byte & 127
    for shift in range(7, 70, 7):
        byte = body[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
    raise IndexError("no number is that long")
