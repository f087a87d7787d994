"""Find the log position at a given time from the timestamps of frames, without reading the whole log.

Frames follow each other and differ in length, but each header carries its own position, so a header can be
recognised from any offset: a binary search reads a few headers of a log of any size. Takes no lock.
Timestamps come from the writer's clock. Where that clock was set back, the result is the last frame before
the moment in log order, as far as a binary search can find it.
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
_POSITION = 8  # offset in a header, after magic, version, flags and checksum
# From any offset, the next header is within this distance, or there is none.
_REACH = FRAME_BYTES_MAX + ENVELOPE_BYTES + HEADER_BYTES


class FramePlace(Struct, frozen=True, rename="camel"):
    """A frame: its position, the time it was written, its epoch, and the number of its last record."""

    position: int
    at_ms: int
    epoch: int
    record: int


class SegmentSpan(Struct, frozen=True, rename="camel"):
    """One segment, described by its name and its first frame only."""

    file: str
    first: int
    bytes: int
    sealed: bool
    begins: FramePlace | None
    """None if it has no frame yet."""


class _Segment:
    def __init__(self, disk: Disk, directory: str, first: int) -> None:
        self._disk = disk
        self.first = first
        self.file = disk.open_to_read(os.path.join(directory, segment_name(first)))
        self.size = disk.size(self.file)

    def close(self) -> None:
        self._disk.close(self.file)

    def header(self, offset: int) -> Header | None:
        """The header of the frame that begins at this offset, if there is one."""
        return self._decoded(self._disk.read(self.file, offset, HEADER_BYTES), 0, offset)

    def next_header(self, offset: int, end: int) -> tuple[int, Header] | None:
        """The first frame that begins at or after this offset and before `end`."""
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
            return None  # most byte sequences that only look like a header are rejected here
        try:
            header = decode_header(data[at : at + HEADER_BYTES], "")
        except Damaged:
            return None
        return header


def seek(directory: str | os.PathLike[str], at_ms: int, disk: Disk | None = None) -> FramePlace | None:
    """The last frame written at or before a moment; None if the log begins later."""
    disk, folder = disk if disk is not None else RealDisk(), os.fspath(directory)
    firsts = segment_firsts(disk.names(folder))
    low, high = 0, len(firsts)  # the first frames of segments below `low` are not after the moment
    found: FramePlace | None = None
    while low < high:
        middle = (low + high) // 2
        place = _search(disk, folder, firsts[middle], at_ms)
        if place is None:
            high = middle
        else:
            found, low = place, middle + 1
    return found


def spans(directory: str | os.PathLike[str], disk: Disk | None = None) -> list[SegmentSpan]:
    """Every segment, oldest first; reads only the first header of each."""
    disk, folder = disk if disk is not None else RealDisk(), os.fspath(directory)
    found: list[SegmentSpan] = []
    firsts = segment_firsts(disk.names(folder))
    for first in firsts:
        try:
            segment = _Segment(disk, folder, first)
        except FileNotFoundError:
            continue  # trimmed in the meantime
        try:
            header = segment.header(SEGMENT_HEADER_BYTES)
        finally:
            segment.close()
        begins = None if header is None else _place(header)
        found.append(SegmentSpan(segment_name(first), first, segment.size, first != firsts[-1], begins))
    return found


def _search(disk: Disk, directory: str, first: int, at_ms: int) -> FramePlace | None:
    """The last frame of a segment at or before a moment; None if all are after it."""
    try:
        segment = _Segment(disk, directory, first)
    except FileNotFoundError:
        return None  # trimmed in the meantime
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
    """Walk frame by frame for the last part of the search."""
    while True:
        offset += ENVELOPE_BYTES + found.length
        header = segment.header(offset)
        if header is None or header.at_ms > at_ms:
            return found
        found = header


def _place(header: Header) -> FramePlace:
    return FramePlace(header.position, header.at_ms, header.epoch, header.first + header.count - 1)
