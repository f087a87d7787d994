"""Torn or damaged: each trace a crash can leave, and each that it cannot."""

from __future__ import annotations

import pytest

from duetime.errors import Damaged, TooNew
from duetime.log.frame import ENVELOPE_BYTES, Frame, encode
from duetime.log.segment import SEGMENT_HEADER_BYTES, segment_header
from duetime.log.tail import End, find_end
from duetime.testing.disk import FaultyDisk
from tests.unit.log.test_frame import resealed

BODY_BYTES = 2_000
SIZE = BODY_BYTES + ENVELOPE_BYTES
ROOM = 20_000


def newest(synced: list[int], first: int = 0) -> bytearray:
    """A newest segment of as many frames, each saying how far the log was synced when it was written."""
    data = bytearray(segment_header(first))
    for number, position in enumerate(synced):
        data += encode(
            first + number * SIZE, position, Frame(1, 0, 0, 1, 0, 0, b"%c" % (65 + number) * BODY_BYTES)
        )
    data += bytes(ROOM - len(data))
    return data


def at(number: int) -> int:
    """Where in the file this frame starts."""
    return SEGMENT_HEADER_BYTES + number * SIZE


def sector_inside(number: int) -> slice:
    """The first sector that lies wholly in this frame."""
    start = -(-at(number) // 512) * 512
    return slice(start, start + 512)


def end_of(data: bytes | bytearray, proven: int = 0, first: int = 0) -> End:
    disk = FaultyDisk()
    disk.put("s", bytes(data))
    return find_end(disk, disk.open_to_read("s"), first, proven)


def test_zeros_behind_the_last_frame_are_a_clean_end() -> None:
    assert end_of(newest([0, 0, 0]), proven=3 * SIZE) == End(at(3), ROOM, torn=False)
    assert end_of(newest([0, 0])[: at(2)]) == End(at(2), at(2), torn=False)
    assert end_of(newest([])) == End(at(0), ROOM, torn=False)


def test_a_sector_that_did_not_arrive_is_torn() -> None:
    data = newest([0, 0, 0])
    data[sector_inside(2)] = bytes(512)
    assert end_of(data) == End(at(2), ROOM, torn=True)


def test_a_frames_first_sector_that_did_not_arrive_is_torn() -> None:
    data = newest([0, 0, 0])
    data[at(2) : sector_inside(2).start] = bytes(sector_inside(2).start - at(2))
    assert end_of(data) == End(at(2), ROOM, torn=True)


def test_later_frames_that_arrived_first_do_not_make_it_damage() -> None:
    data = newest([0, 0, SIZE, SIZE])
    data[sector_inside(1)] = bytes(512)
    assert end_of(data) == End(at(1), ROOM, torn=True)


def test_a_later_frame_that_says_it_was_synced_makes_it_damage() -> None:
    data = newest([0, 0, 0, 2 * SIZE])
    data[sector_inside(1)] = bytes(512)
    with pytest.raises(Damaged, match=rf"seg at {at(1)}: .* synced up to {2 * SIZE}"):
        end_of(data)


def test_the_mark_makes_it_damage() -> None:
    data = newest([0, 0, 0])
    data[sector_inside(2)] = bytes(512)
    assert end_of(data, proven=2 * SIZE).torn
    with pytest.raises(Damaged, match=rf"seg at {at(2)}: .* synced up to {2 * SIZE + 1}"):
        end_of(data, proven=2 * SIZE + 1)


def test_a_clean_end_below_the_mark_is_damage() -> None:
    with pytest.raises(Damaged, match=rf"seg at {at(2)}: .* synced up to {3 * SIZE}"):
        end_of(newest([0, 0]), proven=3 * SIZE)
    with pytest.raises(Damaged, match=rf"seg at {at(2)}: the file ends here. .* synced up to {3 * SIZE}"):
        end_of(newest([0, 0])[: at(2)], proven=3 * SIZE)


@pytest.mark.parametrize(
    "offset", [at(2), at(2) + 10, at(2) + 68, at(2) + 69, at(2) + 1_000, at(3) - 2, at(3) - 1]
)
def test_a_whole_frame_with_a_flipped_bit_is_damage_though_it_is_the_last(offset: int) -> None:
    data = newest([0, 0, 0])
    data[offset] ^= 1
    with pytest.raises(Damaged, match=rf"seg at {at(2)}:"):
        end_of(data)


def test_a_damaged_frame_in_the_middle_is_damage() -> None:
    data = newest([0, 0, 0])
    data[at(1) + 300] ^= 1
    with pytest.raises(Damaged, match=rf"seg at {at(1)}:"):
        end_of(data)


def test_a_write_cut_short_is_torn_wherever_it_was_cut() -> None:
    whole = newest([0, 0, 0])
    for cut in [at(2) + 1, at(2) + 5, at(2) + 68, at(2) + 69, at(2) + 700, at(3) - 1]:
        assert end_of(whole[:cut] + bytes(ROOM - cut)) == End(at(2), ROOM, torn=True)
        assert end_of(whole[:cut]) == End(at(2), cut, torn=True)


def test_a_frame_of_another_place_is_damage() -> None:
    data = newest([0, 0, 0])
    data[at(2) : at(3)] = data[at(1) : at(2)]
    with pytest.raises(Damaged, match=f"seg at {at(2)}: this frame belongs at {SIZE}"):
        end_of(data)


def test_bytes_that_only_look_like_a_header_prove_nothing() -> None:
    data = newest([0, 0, 0])
    data[sector_inside(1)] = bytes(512)
    # A frame copied into a body: its header is whole, but of another place.
    copied = bytes(encode(5, 10**9, Frame(1, 0, 0, 1, 0, 0, b"")))
    data[at(2) + 200 : at(2) + 200 + len(copied)] = copied
    assert end_of(data) == End(at(1), ROOM, torn=True)


def test_a_segment_with_a_part_of_its_header_has_never_held_a_frame() -> None:
    header = segment_header(700)
    for cut in range(len(header)):
        assert end_of(header[:cut], first=700, proven=700) == End(0, cut, torn=True)
        assert end_of(header[:cut] + bytes(100), first=700) == End(0, cut + 100, torn=True)
        with pytest.raises(Damaged, match=r"00000000000000000700\.seg at 0:"):
            end_of(header[:cut], first=700, proven=701)
    assert end_of(header, first=700) == End(32, 32, torn=False)


def test_a_lost_header_before_frames_is_damage() -> None:
    data = newest([0])
    data[:32] = bytes(32)
    with pytest.raises(Damaged, match="seg at 0: the segment's header does not match"):
        end_of(data)
    with pytest.raises(Damaged, match="seg at 0: the segment's header does not match"):
        end_of(b"other" + bytes(100))


def test_a_newer_frame_is_not_taken_for_a_torn_tail() -> None:
    data = newest([0, 0])
    data[at(1) : at(2)] = resealed(bytes(data[at(1) : at(2)]), {2: 2})
    with pytest.raises(TooNew):
        end_of(data)
