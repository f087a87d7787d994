"""One segment: a file of frames, named by the position of its first.

```
 00000000000000000000.seg:   header | frame | frame | frame | zeros ...
                             0        32
```

A frame's position is the segment's first position plus its distance from the end of the header, so
positions continue from one segment to the next as if the headers were not there. A segment is *sealed*
once the next one exists: it is then whole, on stable storage, and cut to exactly its frames. Only the
newest may have unused zeros at its end.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from msgspec import Struct

from duetime.errors import Damaged, TooNew
from duetime.limits import FRAME_BYTES_MAX, LOG_READ_BYTES
from duetime.log.disk import Disk
from duetime.log.frame import ENVELOPE_BYTES, Frame, decode
from duetime.os_errors import SHORT, of_system

SUFFIX: Final = ".seg"
SUFFIX_UNFINISHED: Final = ".seg.tmp"
MAGIC: Final = b"DUELOG\r\n"
VERSION: Final = 1
_NAME = re.compile(r"(\d{20})\.seg")
# magic, version, reserved, first position, CRC of everything before
_HEADER = struct.Struct(">8sIQQI")
SEGMENT_HEADER_BYTES: Final = _HEADER.size
_ENCODED_BYTES_MAX: Final = FRAME_BYTES_MAX + ENVELOPE_BYTES
assert LOG_READ_BYTES > 2 * _ENCODED_BYTES_MAX, "most of a chunk is used before the next is read"


class Segment(Struct):
    """The segment being written: its file, where its frames end, and the size of the file."""

    first: int
    file: int
    end: int
    capacity: int


def segment_name(first: int) -> str:
    """The file name of the segment that starts at this position."""
    return f"{first:020d}{SUFFIX}"


def segment_firsts(names: list[str]) -> list[int]:
    """The first positions of the segments among these file names, in order."""
    return sorted(int(match[1]) for match in map(_NAME.fullmatch, names) if match)


def segment_header(first: int) -> bytes:
    """The header of the segment that starts at this position."""
    head = _HEADER.pack(MAGIC, VERSION, 0, first, 0)[:-4]
    return head + crc32(head).to_bytes(4, "big")


def check_header(data: bytes, first: int, name: str) -> None:
    """Raise `Damaged` or `TooNew` unless `data` is the header of the segment with this name."""
    if data == segment_header(first):
        return
    where = f"{name} at 0"
    if len(data) < SEGMENT_HEADER_BYTES:
        raise Damaged(f"{where}: {len(data)} bytes are too few for a segment header.")
    magic, version, _, says, crc = _HEADER.unpack(data)
    if magic != MAGIC or crc32(data[:-4]) != crc:
        raise Damaged(f"{where}: the segment's header does not match its checksum.")
    if version != VERSION:
        raise TooNew(f"{where}: segment format {version} is newer than {VERSION}.")
    raise Damaged(f"{where}: the segment says it starts at {says}; it is another one, renamed.")


def check_length(size: int, first: int, after: int) -> None:
    """Raise `Damaged` unless a sealed segment of this size ends where the next one begins."""
    end = after - first + SEGMENT_HEADER_BYTES
    if size != end:
        raise Damaged(
            f"{segment_name(first)} at {min(size, end)}: the segment has {size} bytes, but the next one, "
            f"{segment_name(after)}, leaves it {end}; a segment between them may be missing."
        )


def check_sealed(disk: Disk, file: int, first: int, after: int) -> None:
    """Raise `Damaged` unless the segment has its header and ends where the next one begins."""
    name = segment_name(first)
    check_header(read_bytes(disk, file, name, 0, SEGMENT_HEADER_BYTES), first, name)
    check_length(disk.size(file), first, after)


def read_bytes(disk: Disk, file: int, name: str, offset: int, count: int) -> bytes:
    """Bytes of a segment. A read error of the disk counts as damage."""
    try:
        return disk.read(file, offset, count)
    except OSError as error:
        if error.errno in SHORT:
            raise of_system(error, name) from error
        raise Damaged(f"{name} at {offset}: cannot be read: {error.strerror}.") from error


def walk(disk: Disk, file: int, first: int, offset: int, end: int) -> Iterator[tuple[int, Frame]]:
    """Every frame from one offset to another, verified; raises `Damaged` at the first invalid one."""
    name = segment_name(first)
    base = first - SEGMENT_HEADER_BYTES
    while offset < end:
        chunk = memoryview(read_bytes(disk, file, name, offset, min(LOG_READ_BYTES, end - offset)))
        if not chunk:
            raise Damaged(f"{name} at {offset}: the file ends here, its frames go on to {end}.")
        # A frame that begins after this place may continue in the next chunk, so reading resumes at this
        # place.
        sure = len(chunk) if len(chunk) < LOG_READ_BYTES else LOG_READ_BYTES - _ENCODED_BYTES_MAX
        at = 0
        while at < sure:
            where = f"{name} at {offset + at}"
            header, frame = decode(chunk[at:], where)
            if header.position != base + offset + at:
                raise Damaged(f"{where}: this frame belongs at {header.position}, not here.")
            yield header.position, frame
            at += ENVELOPE_BYTES + header.length
        offset += at
