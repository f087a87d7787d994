"""One frame: the header every log engine stores with a batch, and its bytes.

```
 magic version flags header-crc
 position synced epoch nonce first count at_ms durability length body-crc | body | end
```

The header has a checksum of its own, so a damaged length is noticed before it is believed, and it
carries its position, so a frame found in the wrong place is noticed too. `synced` is how far the
writer knew the log to be on the medium when it wrote the frame: whoever finds this frame knows that
everything below that position must be there. The last byte is never zero, so that a frame whose end
did not reach a zeroed file can be told from one that is whole. The body is opaque here.
Format version 1 is fixed by the golden logs; a change means version 2 and a reader for both.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from msgspec import Struct

from duetime.errors import Damaged, TooNew
from duetime.limits import FRAME_BYTES_MAX

MAGIC: Final = b"\xd0\xe7"
VERSION: Final = 1
# Several bits are set, so no single flipped bit, nor a byte turned over, makes it zero.
END: Final = b"\xe7"

# magic, version, flags, header crc; then position, synced, epoch, nonce, first, count, at_ms,
# durability, body length, body crc
_PREFIX = struct.Struct(">2sBBI")
_FIELDS = struct.Struct(">QQQQQIQBII")
_TAG = bytes((VERSION, 0))
_TAG_CRC = crc32(_TAG)
HEADER_BYTES: Final = _PREFIX.size + _FIELDS.size
# What a frame takes beside its body.
ENVELOPE_BYTES: Final = HEADER_BYTES + len(END)


class Frame(Struct, frozen=True, gc=False):
    """A batch of records as the log keeps it."""

    epoch: int
    """Which writer's time this frame is of. An integer: 10 is after 9."""
    nonce: int
    """A number of the writer's choosing, to know its own frame again after doubt."""
    first: int
    """The sequence number of the first record in the body."""
    count: int
    """How many records the body holds."""
    at_ms: int
    """The stamp of all records in the body."""
    durability: int
    """How durable the writer wanted it, for those who read the log later."""
    body: bytes


class Header(Struct, frozen=True, gc=False):
    """A decoded header: the frame without its body, and how to find and check that body."""

    position: int
    synced: int
    epoch: int
    nonce: int
    first: int
    count: int
    at_ms: int
    durability: int
    length: int
    body_crc: int


def frame_bytes(frame: Frame) -> int:
    """How many bytes the frame takes when it is encoded."""
    assert len(frame.body) <= FRAME_BYTES_MAX, "the writer splits batches before they get this large"
    return ENVELOPE_BYTES + len(frame.body)


def encode_header(position: int, synced: int, frame: Frame) -> bytes:
    """What goes before the body, so that the body need not be copied to be written."""
    body = frame.body
    fields = _FIELDS.pack(
        position, synced, frame.epoch, frame.nonce, frame.first, frame.count, frame.at_ms,
        frame.durability, len(body), crc32(body),
    )  # fmt: skip
    return b"".join((MAGIC, _TAG, crc32(fields, _TAG_CRC).to_bytes(4, "big"), fields))


def encode(position: int, synced: int, frame: Frame) -> bytes:
    """The frame's bytes at this position, in one piece."""
    assert len(frame.body) <= FRAME_BYTES_MAX, "the writer splits batches before they get this large"
    return b"".join((encode_header(position, synced, frame), frame.body, END))


def decode_header(data: bytes | memoryview, where: str) -> Header:
    """The header at the start of `data`; raises `Damaged` if it is not one."""
    if len(data) < HEADER_BYTES:
        raise Damaged(f"{where}: {len(data)} bytes are too few for a frame header.")
    magic, version, flags, crc = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise Damaged(f"{where}: no frame starts here.")
    fields = bytes(data[_PREFIX.size : HEADER_BYTES])
    if crc32(fields, crc32(bytes((version, flags)))) != crc:
        raise Damaged(f"{where}: the frame's header does not match its checksum.")
    # The checksum held, so these are what somebody meant to write.
    if version != VERSION or flags:
        raise TooNew(f"{where}: frame format {version}.{flags} is newer than {VERSION}.0.")
    header = Header(*_FIELDS.unpack(fields))
    if header.length > FRAME_BYTES_MAX:
        raise Damaged(f"{where}: a body of {header.length} bytes is over the limit.")
    return header


def decode_body(header: Header, body: bytes, where: str) -> Frame:
    """The whole frame, or `Damaged` if the body is not the one that was written."""
    if len(body) != header.length or crc32(body) != header.body_crc:
        raise Damaged(f"{where}: the frame's body does not match its checksum.")
    return Frame(
        header.epoch, header.nonce, header.first, header.count, header.at_ms, header.durability, body
    )


def decode(data: bytes | memoryview, where: str) -> tuple[Header, Frame]:
    """The frame at the start of `data`, with its header; raises `Damaged` if it is not whole."""
    header = decode_header(data, where)
    end = HEADER_BYTES + header.length
    frame = decode_body(header, bytes(data[HEADER_BYTES:end]), where)
    if data[end : end + len(END)] != END:
        raise Damaged(f"{where}: the frame's end mark is missing.")
    return header, frame
