"""One frame: the header every log engine stores with a batch, and its bytes.

```
 magic version flags header-crc
 position synced epoch nonce first count at_ms durability length body-crc | body | end
```

The header has a checksum of its own, so a damaged length is noticed before it is used, and it
carries its position, so a frame found in the wrong place is noticed too. `synced` is how far the
writer knew the log to be on stable storage when it wrote the frame: this frame proves that
everything below that position must exist. The last byte is never zero, so that a frame whose end
did not reach a zeroed file can be told from a whole one. The body is opaque here.
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
# Several bits are set, so neither a flipped bit nor an inverted byte makes it zero.
END: Final = b"\xe7"

# magic, version, flags, header crc; then position, synced, epoch, nonce, first, count, at_ms,
# durability, body length, body crc
_PREFIX = struct.Struct(">2sBBI")
_FIELDS = struct.Struct(">QQQQQIQBII")
_TAG = bytes((VERSION, 0))
_TAG_CRC = crc32(_TAG)
HEADER_BYTES: Final = _PREFIX.size + _FIELDS.size
# The size of a frame without its body.
ENVELOPE_BYTES: Final = HEADER_BYTES + len(END)


class Frame(Struct, frozen=True, gc=False):
    """A batch of records as the log keeps it."""

    epoch: int
    """The epoch of the writer. An integer: 10 is after 9."""
    nonce: int
    """A number chosen by the writer, to recognise its own frame when an append was in doubt."""
    first: int
    """The sequence number of the first record in the body."""
    count: int
    """The number of records in the body."""
    at_ms: int
    """The timestamp of all records in the body."""
    durability: int
    """The durability that the writer asked for, for later readers of the log."""
    body: bytes


class Header(Struct, frozen=True, gc=False):
    """A decoded header: the frame without its body, and what is needed to find and check the body."""

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
    """The size of the encoded frame."""
    assert len(frame.body) <= FRAME_BYTES_MAX, "the writer splits batches before they get this large"
    return ENVELOPE_BYTES + len(frame.body)


def encode_header(position: int, synced: int, frame: Frame) -> bytes:
    """The bytes before the body. Separate, so that the body is written without being copied."""
    body = frame.body
    fields = _FIELDS.pack(
        position, synced, frame.epoch, frame.nonce, frame.first, frame.count, frame.at_ms,
        frame.durability, len(body), crc32(body),
    )  # fmt: skip
    return b"".join((MAGIC, _TAG, crc32(fields, _TAG_CRC).to_bytes(4, "big"), fields))


def encode(position: int, synced: int, frame: Frame) -> bytes:
    """The encoded frame at this position, in one piece."""
    assert len(frame.body) <= FRAME_BYTES_MAX, "the writer splits batches before they get this large"
    return b"".join((encode_header(position, synced, frame), frame.body, END))


def decode_header(data: bytes | memoryview, where: str) -> Header:
    """The header at the start of `data`; raises `Damaged` if there is no valid one."""
    if len(data) < HEADER_BYTES:
        raise Damaged(f"{where}: {len(data)} bytes are too few for a frame header.")
    magic, version, flags, crc = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise Damaged(f"{where}: no frame starts here.")
    fields = bytes(data[_PREFIX.size : HEADER_BYTES])
    if crc32(fields, crc32(bytes((version, flags)))) != crc:
        raise Damaged(f"{where}: the frame's header does not match its checksum.")
    # The checksum is right, so a writer really wrote these values.
    if version != VERSION or flags:
        raise TooNew(f"{where}: frame format {version}.{flags} is newer than {VERSION}.0.")
    header = Header(*_FIELDS.unpack(fields))
    if header.length > FRAME_BYTES_MAX:
        raise Damaged(f"{where}: a body of {header.length} bytes is over the limit.")
    return header


def decode_body(header: Header, body: bytes, where: str) -> Frame:
    """The whole frame; raises `Damaged` if the body is not the one that was written."""
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
