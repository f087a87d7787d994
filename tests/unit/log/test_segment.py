"""A segment's header and the walk over its frames."""

from __future__ import annotations

import errno
from zlib import crc32

import pytest

from duetime.errors import Damaged, TooNew
from duetime.limits import FRAME_BYTES_MAX, LOG_READ_BYTES
from duetime.log.frame import Frame, encode
from duetime.log.segment import (
    SEGMENT_HEADER_BYTES,
    check_header,
    check_sealed,
    segment_firsts,
    segment_header,
    segment_name,
    walk,
)
from duetime.testing.disk import FaultyDisk


def frame(body: bytes) -> Frame:
    return Frame(1, 0, 0, 1, 0, 0, body)


def segment(bodies: list[bytes], first: int = 0) -> bytes:
    data, position = segment_header(first), first
    for body in bodies:
        data += encode(position, 0, frame(body))
        position = first + len(data) - SEGMENT_HEADER_BYTES
    return data


def walked(
    data: bytes, first: int = 0, start: int = SEGMENT_HEADER_BYTES, end: int | None = None
) -> list[bytes]:
    disk = FaultyDisk()
    disk.put("s", data)
    end = len(data) if end is None else end
    return [found.body for _, found in walk(disk, disk.open_to_read("s"), first, start, end)]


def test_names_sort_as_positions_do() -> None:
    names = [segment_name(first) for first in (0, 5, 10, 2**64 - 1)]
    assert names == sorted(names)
    assert segment_firsts([*reversed(names), "lock", "5.seg", names[0] + ".tmp", "x" + names[0]]) == [
        0,
        5,
        10,
        2**64 - 1,
    ]


def test_format_1_of_the_header_is_these_bytes_and_stays_so() -> None:
    assert segment_header(258).hex(" ", -4) == (
        "4455454c 4f470d0a 00000001 00000000 00000000 00000000 00000102 88ff9341"
    )


def test_a_header_must_be_the_one_its_name_asks_for() -> None:
    check_header(segment_header(70), 70, "n")
    with pytest.raises(Damaged, match="n at 0: 31 bytes are too few"):
        check_header(segment_header(70)[:-1], 70, "n")
    with pytest.raises(Damaged, match="n at 0: the segment's header does not match"):
        check_header(b"X" + segment_header(70)[1:], 70, "n")
    with pytest.raises(Damaged, match="n at 0: the segment's header does not match"):
        check_header(segment_header(70)[:-1] + b"X", 70, "n")
    with pytest.raises(Damaged, match="n at 0: the segment says it starts at 70; it is another one"):
        check_header(segment_header(70), 71, "n")
    newer = segment_header(70)[:11] + b"\2" + segment_header(70)[12:-4]
    with pytest.raises(TooNew, match="n at 0: segment format 2 is newer than 1"):
        check_header(newer + crc32(newer).to_bytes(4, "big"), 70, "n")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_sealed_segment_ends_where_the_next_begins(change: int) -> None:
    disk = FaultyDisk()
    disk.put("s", segment([b"abc"]))
    file = disk.open_to_read("s")
    check_sealed(disk, file, 0, 73)
    with pytest.raises(Damaged, match=r"00000000000000000000\.seg at 10[45]: the segment has 105 bytes"):
        check_sealed(disk, file, 0, 73 + change)


def test_a_walk_goes_over_many_chunks() -> None:
    bodies = [bytes([n]) * (FRAME_BYTES_MAX - n * 1000) for n in range(20)]
    data = segment(bodies, first=99)
    assert len(data) > 2 * LOG_READ_BYTES
    assert walked(data, first=99) == bodies


def test_a_walk_notices_a_frame_from_another_place() -> None:
    data = segment([b"a", b"b"])
    with pytest.raises(Damaged, match="seg at 32: this frame belongs at 71, not here"):
        walked(data[:32] + data[103:])


def test_a_walk_notices_a_file_that_ends_too_early() -> None:
    data = segment([b"a", b"b"])
    with pytest.raises(Damaged, match="seg at 174: the file ends here, its frames go on to 175"):
        walked(data, end=len(data) + 1)
    with pytest.raises(Damaged, match="seg at 103: the frame's"):
        walked(data[:-1], end=len(data))


def test_a_read_error_is_damage_with_its_place() -> None:
    disk = FaultyDisk()
    disk.put("s", segment([b"a"]))
    file = disk.open_to_read("s")
    disk.errors = {2: errno.EIO}
    with pytest.raises(Damaged, match="seg at 32: cannot be read: Input/output error"):
        list(walk(disk, file, 0, 32, 103))
