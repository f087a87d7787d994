"""A frame's bytes: what is in them, and what is refused."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from duetime.errors import Damaged, TooNew
from duetime.limits import FRAME_BYTES_MAX
from duetime.log.frame import (
    END,
    ENVELOPE_BYTES,
    HEADER_BYTES,
    Frame,
    decode,
    decode_body,
    decode_header,
    encode,
    frame_bytes,
)

FRAME = Frame(
    epoch=7, nonce=2**64 - 1, first=100, count=3, at_ms=1_700_000_000_000, durability=2, body=b"hello"
)


def resealed(data: bytes, changes: dict[int, int]) -> bytes:
    """The same bytes with some of the header's changed and its checksum made right again."""
    changed = bytearray(data)
    for offset, value in changes.items():
        changed[offset] = value
    crc = crc32(bytes(changed[8:HEADER_BYTES]), crc32(bytes(changed[2:4])))
    changed[4:8] = struct.pack(">I", crc)
    return bytes(changed)


def test_format_1_is_these_bytes_and_stays_so() -> None:
    assert encode(1, 2, Frame(3, 4, 5, 6, 7, 8, b"body")).hex() == (
        "d0e70100" "f390cf20"
        "0000000000000001" "0000000000000002" "0000000000000003" "0000000000000004" "0000000000000005"
        "00000006" "0000000000000007" "08" "00000004" "dba80bb2"
        "626f6479" "e7"
    )  # fmt: skip


def test_the_header_says_all_but_the_body() -> None:
    data = encode(4096, 1024, FRAME)
    assert len(data) == frame_bytes(FRAME) == ENVELOPE_BYTES + 5
    header = decode_header(data, "here")
    assert (header.position, header.synced, header.length) == (4096, 1024, 5)
    assert decode_body(header, b"hello", "here") == FRAME
    assert decode(memoryview(data), "here") == (header, FRAME)


def test_a_body_over_the_limit_is_not_encoded() -> None:
    large = Frame(0, 0, 0, 0, 0, 0, bytes(FRAME_BYTES_MAX + 1))
    with pytest.raises(AssertionError):
        encode(0, 0, large)
    with pytest.raises(AssertionError):
        frame_bytes(large)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "here: 0 bytes are too few"),
        (encode(0, 0, FRAME)[: HEADER_BYTES - 1], "too few"),
        (b"\0" * 100, "no frame starts"),
        (encode(0, 0, FRAME)[:20] + b"?" + encode(0, 0, FRAME)[21:], "header does not match"),
        (encode(0, 0, FRAME)[:-1], "end mark"),
        (encode(0, 0, FRAME)[:-1] + b"\0", "end mark"),
        (encode(0, 0, FRAME)[:-2], "body does not match"),
        (encode(0, 0, FRAME)[:-2] + b"!" + END, "body does not match"),
        (resealed(encode(0, 0, FRAME), {HEADER_BYTES - 8: 0x7F}), "over the limit"),
    ],
)
def test_bytes_that_are_no_frame_are_damage_with_their_place(data: bytes, text: str) -> None:
    with pytest.raises(Damaged, match=f"^here.*{text}" if not text.startswith("here") else text):
        decode(data, "here")


@pytest.mark.parametrize(("offset", "value", "text"), [(2, 2, "2.0"), (3, 1, "1.1")])
def test_a_newer_format_is_named(offset: int, value: int, text: str) -> None:
    with pytest.raises(TooNew, match=f"here: frame format {text} is newer than 1.0"):
        decode(resealed(encode(0, 0, FRAME), {offset: value}), "here")
