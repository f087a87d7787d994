"""Where the newest segment ends: tell what a crash cut short from damage.

Frames are written one after the other into a file of zeros, and reach the disk in sectors of 512
bytes, in any order, until a sync returns. So after a crash the segment is a row of whole frames up to a
first bad place; the bytes there decide. The questions are asked in this order:

1. *Was it known to be on stable storage?* The mark says how far the log was synced, and so does the header
   of every frame found after the bad place. If either names a position above the bad place, then the frame
   here was safe and is lost: **damage**. This is proof, and it holds for every frame a sync covered, as long
   as one of its witnesses is left: the mark (at once if only the process was killed, after the system's
   write-back time if power failed) or any later frame.
2. *Is everything after it zero?* Then nothing was written there: the **clean end**.
3. *Did a part of it never arrive?* Only these traces count; each can be left by a crash:
   - a sector of the frame is zero from the frame's start, or the sector's, to the sector's end
     (that sector did not arrive; later frames may have, which is why finding one proves nothing
     unless its header says that this place was synced);
   - from the frame's last byte on, which is never zero in a whole frame, all is zero or the file has
     ended (the write was cut, or the file's new length did not arrive).
   Any of them: **torn**. As far as can be known, the frame was never acknowledged as synced.
4. Otherwise every sector of it is there, but the checksum is wrong: **damage**.

What cannot be detected: a frame that was synced and then lost a sector to zeros, when the mark and every
later frame are lost with it. That takes a power cut and a failing disk at the same moment.
Where the header itself is bad its frame's length is unknown, so only the header's sectors are examined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from duetime.errors import Damaged
from duetime.log.disk import Disk
from duetime.log.frame import ENVELOPE_BYTES, HEADER_BYTES, MAGIC, Header, decode, decode_header, frame_bytes
from duetime.log.segment import (
    SEGMENT_HEADER_BYTES,
    check_header,
    read_bytes,
    segment_header,
    segment_name,
    walk,
)

SECTOR_BYTES: Final = 512


class End(Struct, frozen=True):
    """Where the frames end, and what follows them."""

    offset: int
    """The first byte after the last whole frame."""
    size: int
    """The size of the file."""
    torn: bool
    """Whether something half-written follows."""


def find_end(disk: Disk, file: int, first: int, proven: int) -> End:
    """Where the newest segment's frames end; raises `Damaged` if they were damaged, not torn.

    `proven` is a position below which everything is known to have been on stable storage.
    """
    name = segment_name(first)
    size = disk.size(file)
    if is_unfinished(disk, file, first, size, proven):
        return End(0, size, torn=True)
    check_header(read_bytes(disk, file, name, 0, SEGMENT_HEADER_BYTES), first, name)
    offset = SEGMENT_HEADER_BYTES
    try:
        for _, frame in walk(disk, file, first, offset, size):
            offset += frame_bytes(frame)
    except Damaged as error:
        return End(offset, size, judge(disk, file, first, offset, size, proven, error))
    if first + offset - SEGMENT_HEADER_BYTES < proven:
        raise _lost(f"{name} at {offset}: the file ends here.", proven)
    return End(offset, size, torn=False)


def _lost(message: str, witness: int) -> Damaged:
    return Damaged(f"{message} The log was synced up to {witness}, so there was more once.")


def is_unfinished(disk: Disk, file: int, first: int, size: int, proven: int) -> bool:
    """Whether the segment holds only part of its own header: it never had a frame."""
    if proven > first:
        return False
    name = segment_name(first)
    data = read_bytes(disk, file, name, 0, SEGMENT_HEADER_BYTES)
    if data == segment_header(first) or not segment_header(first).startswith(data.rstrip(b"\0")):
        return False
    return is_zero(read_bytes(disk, file, name, SEGMENT_HEADER_BYTES, size))


def judge(disk: Disk, file: int, first: int, offset: int, size: int, proven: int, error: Damaged) -> bool:
    """Judge the bytes at the bad place `offset`: False if empty, True if torn; raises `Damaged` otherwise.

    A writer may be writing in this very place. A frame that is whole by now was finished after the inspection
    began and is not judged; bytes that still change are not damage. Damage does not change.
    """
    before: bytes | None = None
    while True:
        rest = read_bytes(disk, file, segment_name(first), offset, size - offset)
        position = first + offset - SEGMENT_HEADER_BYTES
        if _is_whole(rest, position):
            return False
        try:
            return is_torn(rest, first, offset, proven, error)
        except Damaged:
            behind = next(headers_behind(rest, position), None)
            place = rest if behind is None else rest[: behind[0]]
            if place == before:
                raise
            before = place


def _is_whole(rest: bytes, position: int) -> bool:
    header = _header_at(rest, 0, position)
    if header is None:
        return False
    try:
        decode(memoryview(rest), "")
    except Damaged:
        return False
    return True


def is_torn(rest: bytes, first: int, offset: int, proven: int, error: Damaged) -> bool:
    """Judge the bad place `offset`, where `rest` starts: False if clean, True if torn, or raise."""
    position = first + offset - SEGMENT_HEADER_BYTES
    witness = max(proven, *(header.synced for _, header in headers_behind(rest, position)), 0)
    if witness > position:
        raise _lost(error.message, witness) from error
    written = len(rest.rstrip(b"\0"))
    if not written:
        return False
    header = _header_at(rest, 0, position)
    size = HEADER_BYTES + 1 if header is None else ENVELOPE_BYTES + header.length
    if written < size:
        return True
    if _has_hole(rest, offset, HEADER_BYTES if header is None else size):
        return True
    raise error


def headers_behind(rest: bytes, position: int) -> Iterator[tuple[int, Header]]:
    """Every header after the start of `rest` (the bytes from `position`), and its distance from there."""
    at = rest.find(MAGIC, 1)
    while at >= 0:
        header = _header_at(rest, at, position + at)
        if header is not None:
            yield at, header
        at = rest.find(MAGIC, at + 1)


def _header_at(rest: bytes, at: int, position: int) -> Header | None:
    try:
        header = decode_header(rest[at : at + HEADER_BYTES], "")
    except Damaged:
        return None
    return header if header.position == position else None


def _has_hole(rest: bytes, offset: int, size: int) -> bool:
    """Whether a sector under the first `size` bytes of `rest` is all zero in the part that `rest` covers."""
    at = 0
    while at < size:
        sector_end = at + SECTOR_BYTES - (offset + at) % SECTOR_BYTES
        if is_zero(rest[at:sector_end]):
            return True
        at = sector_end
    return False


def is_zero(data: bytes) -> bool:
    """Whether all bytes are zero."""
    return data.count(0) == len(data)
