"""One written command with its timestamp, and the encoding of a batch of them.

A frame's body is a msgpack array of commands. The timestamp and the sequence number of the first record are
in the frame's header, so a record costs no more than its command.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from duetime.protocol.command import Command


class Record(Struct, frozen=True, gc=False):
    """A command with its sequence number and timestamp."""

    seq: int
    at_ms: int
    command: Command


class Unreadable(Exception):
    """The bytes are not commands that this version knows. Raised, never skipped."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Command, ...])

encode = _encoder.encode
"""Encode a sequence of commands (or one of their parts)."""


def decode(body: bytes) -> tuple[Command, ...]:
    """The commands in a frame's body."""
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(str(error)) from error
