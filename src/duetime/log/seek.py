"""Where the log was at a moment: found by the frames' stamps, without reading the log.

Frames lie one behind the other and differ in length, but each header carries its own position, so one can be
recognised from anywhere: a search by halves looks at a few headers of a log of any size. Takes no lock.
Stamps are the writer's clock; where it was set back, the last frame before the moment in the order of the log
is meant as far as halving finds it.
"""

from __future__ import annotations

import os

from msgspec import Struct

from duetime.errors import Damaged
from duetime.limits import FRAME_BYTES_MAX
from duetime.log.disk import Disk, RealDisk
from duetime.log.frame import ENVELOPE_BYTES, HEADER_BYTES, MAGIC, Header, decode_header
from duetime.log.segment import SEGMENT_HEADER_BYTES, segment_firsts, segment_name

_STEP = 64 * 1024
_POSITION = 8  # in a header, behind magic, version, flags and checksum
# A header is found within this distance from anywhere, or there is none behind.
_REACH = FRAME_BYTES_MAX + ENVELOPE_BYTES + HEADER_BYTES


class Place(Struct, frozen=True, rename="camel"):
    """A frame: where it is, when it was written, in which epoch, and its last record's number."""

    position: int
    at_ms: int
    epoch: int
    record: int


class Span(Struct, frozen=True, rename="camel"):
    """One segment, by its name and its first frame alone."""

    file: str
    first: int
    bytes: int
    sealed: bool
    begins: Place | None
    """None when it has no frame yet."""


class _Segment:
    def __init__(self, disk: Disk, directory: str, first: int) -> None:
        self._disk = disk
        self.first = first
        self.file = disk.open_to_read(os.path.join(directory, segment_name(first)))
        self.size = disk.size(self.file)

    def close(self) -> None:
        self._disk.close(self.file)

    def header(self, offset: int) -> Header | None:
        """The header of the frame that begins here, if one does."""
        return self._decoded(self._disk.read(self.file, offset, HEADER_BYTES), 0, offset)

    def next_header(self, offset: int, end: int) -> tuple[int, Header] | None:
        """The first frame that begins at this place or behind, and before `end`."""
        end = min(end, offset + _REACH)
        while offset < end:
            data = self._disk.read(self.file, offset, _STEP + HEADER_BYTES)
            at = data.find(MAGIC)
            while 0 <= at < _STEP and offset + at < end:
                header = self._decoded(data, at, offset + at)
                if header is not None:
                    return offset + at, header
                at = data.find(MAGIC, at + 1)
            offset += _STEP
        return None

    def _decoded(self, data: bytes, at: int, offset: int) -> Header | None:
        position = self.first + offset - SEGMENT_HEADER_BYTES
        if data[at + _POSITION : at + _POSITION + 8] != position.to_bytes(8, "big"):
            return None  # most places that only look like a header end here
        try:
            header = decode_header(data[at : at + HEADER_BYTES], "")
        except Damaged:
            return None
        return header


def seek(directory: str | os.PathLike[str], at_ms: int, disk: Disk | None = None) -> Place | None:
    """The last frame written at a moment or before; None when the log begins later."""
    disk, folder = disk if disk is not None else RealDisk(), os.fspath(directory)
    firsts = segment_firsts(disk.names(folder))
    low, high = 0, len(firsts)  # of those below `low` the first frame is not behind the moment
    found: Place | None = None
    while low < high:
        middle = (low + high) // 2
        place = _search(disk, folder, firsts[middle], at_ms)
        if place is None:
            high = middle
        else:
            found, low = place, middle + 1
    return found


def spans(directory: str | os.PathLike[str], disk: Disk | None = None) -> list[Span]:
    """Every segment, oldest first, without reading more than the first header of each."""
    disk, folder = disk if disk is not None else RealDisk(), os.fspath(directory)
    found: list[Span] = []
    firsts = segment_firsts(disk.names(folder))
    for first in firsts:
        try:
            segment = _Segment(disk, folder, first)
        except FileNotFoundError:
            continue  # trimmed meanwhile
        try:
            header = segment.header(SEGMENT_HEADER_BYTES)
        finally:
            segment.close()
        begins = None if header is None else _place(header)
        found.append(Span(segment_name(first), first, segment.size, first != firsts[-1], begins))
    return found


def _search(disk: Disk, directory: str, first: int, at_ms: int) -> Place | None:
    """The last frame of a segment at a moment or before; None when all are behind it."""
    try:
        segment = _Segment(disk, directory, first)
    except FileNotFoundError:
        return None  # trimmed meanwhile
    try:
        low = SEGMENT_HEADER_BYTES
        found = segment.header(low)
        if found is None or found.at_ms > at_ms:
            return None
        high = segment.size
        while high - low > _STEP:
            middle = (low + high) // 2
            probe = segment.next_header(middle, high)
            if probe is None or probe[1].at_ms > at_ms:
                high = middle
            else:
                low, found = probe
        return _place(_walk(segment, low, found, at_ms))
    finally:
        segment.close()


def _walk(segment: _Segment, offset: int, found: Header, at_ms: int) -> Header:
    """From frame to frame, for the last bit of the way."""
    while True:
        offset += ENVELOPE_BYTES + found.length
        header = segment.header(offset)
        if header is None or header.at_ms > at_ms:
            return found
        found = header


def _place(header: Header) -> Place:
    return Place(header.position, header.at_ms, header.epoch, header.first + header.count - 1)
