"""Inspect a log's files from outside: which segments exist, what they hold, what is damaged.

Takes no lock and changes nothing, so it works on a copy and beside a running engine. Beside a running engine
it judges only what was written before the inspection began. `verify` continues after each damaged place and
lists them all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from msgspec import Struct

from duetime.errors import Damaged
from duetime.limits import INSPECTED_SEGMENTS_MAX
from duetime.log.disk import Disk, RealDisk
from duetime.log.frame import Frame, frame_bytes
from duetime.log.segment import (
    SEGMENT_HEADER_BYTES,
    check_header,
    check_length,
    check_sealed,
    read_bytes,
    segment_firsts,
    segment_name,
    walk,
)
from duetime.log.synced_marker import read_mark
from duetime.log.tail import find_end, headers_behind, is_unfinished, judge

Directory = str | os.PathLike[str]


class SegmentInfo(Struct, frozen=True):
    """One segment file."""

    file: str
    first: int
    """The position of its first frame."""
    last: int
    """The position after its last whole frame."""
    bytes: int
    """The size of the file."""
    frames: int
    """The number of whole frames before the first bad place."""
    sealed: bool
    """Whether a newer segment follows, so that this one is never written again."""


class Damage(Struct, frozen=True):
    """One place where the bytes are not those that were written."""

    file: str
    offset: int
    what: str


class Look:
    """The folder as it was when the inspection began. Trimming does not remove the files it holds open."""

    def __init__(self, directory: Directory, disk: Disk | None = None) -> None:
        self.disk = disk if disk is not None else RealDisk()
        self.directory = os.fspath(directory)
        # Read the mark first: everything it covers is in the segments listed after it.
        self.proven = read_mark(self.disk, self.directory)
        self._open: dict[int, int] = {}
        self.firsts = segment_firsts(self.disk.names(self.directory))
        try:
            for first in self.firsts[:INSPECTED_SEGMENTS_MAX]:  # trimming removes the oldest first
                self._keep(first)
        except BaseException:
            self.close()
            raise
        if len(self._open) < len(self.firsts) <= INSPECTED_SEGMENTS_MAX:
            self.firsts = list(self._open)

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        while self._open:
            self.disk.close(self._open.popitem()[1])

    def _keep(self, first: int) -> int | None:
        try:
            file = self.disk.open_to_read(os.path.join(self.directory, segment_name(first)))
        except FileNotFoundError:
            return None  # a running engine has trimmed it in the meantime
        self._open[first] = file
        return file

    def files(self) -> Iterator[tuple[int, int, int | None]]:
        """Each segment's file, its first position, and that of the next one (None for the newest)."""
        for first, after in zip(self.firsts, [*self.firsts[1:], None], strict=False):
            if first in self._open:
                yield self._open[first], first, after
            elif (file := self._keep(first)) is not None:
                try:
                    yield file, first, after
                finally:
                    self.disk.close(self._open.pop(first))


@contextlib.contextmanager
def _looking(at: Directory | Look, disk: Disk | None) -> Iterator[Look]:
    if isinstance(at, Look):
        yield at
        return
    with Look(at, disk) as look:
        yield look


def segments(at: Directory | Look, disk: Disk | None = None) -> list[SegmentInfo]:
    """Every segment of the log, oldest first."""
    with _looking(at, disk) as look:
        return [_info(look.disk, file, first, after is not None) for file, first, after in look.files()]


def _info(disk: Disk, file: int, first: int, sealed: bool) -> SegmentInfo:
    frames, offset, size = 0, SEGMENT_HEADER_BYTES, disk.size(file)
    # The walk ends at unused space, or at something for `verify` to explain.
    with contextlib.suppress(Damaged):
        for _, frame in walk(disk, file, first, offset, size):
            frames += 1
            offset += frame_bytes(frame)
    return SegmentInfo(
        segment_name(first), first, first + offset - SEGMENT_HEADER_BYTES, size, frames, sealed
    )


def scan(
    at: Directory | Look, start: int | None = None, disk: Disk | None = None, until: int | None = None
) -> Iterator[tuple[int, Frame]]:
    """Every frame from `start`, or from the oldest; raises `Damaged` at the first that is not whole.

    `until` is the end of a frame that an earlier inspection found (`SegmentInfo.last`): frames that a running
    engine wrote later are left out."""
    with _looking(at, disk) as look:
        for file, first, after in look.files():
            if start is not None and after is not None and after <= start:
                continue
            if until is not None and first >= until:
                break
            if until is not None and (after is None or after > until):
                end = until - first + SEGMENT_HEADER_BYTES
            elif after is None:
                end = find_end(look.disk, file, first, look.proven).offset
            else:
                check_sealed(look.disk, file, first, after)
                end = after - first + SEGMENT_HEADER_BYTES
            offset = max(first, start or 0) - first + SEGMENT_HEADER_BYTES
            yield from walk(look.disk, file, first, offset, end)


def verify(at: Directory | Look, disk: Disk | None = None) -> list[Damage]:
    """Every damaged place of the log; an empty list if it is sound. A torn tail is not damage."""
    found: list[Damage] = []
    with _looking(at, disk) as look:
        if look.proven and not look.firsts:
            return [Damage("", 0, f"The log was synced up to {look.proven}, but no segment is here.")]
        for file, first, after in look.files():
            try:
                for damage in _verify(look, file, first, after):
                    found.append(damage)  # report what was found even if the rest cannot be read
            except Damaged as error:
                # The bytes themselves could not be read, so there is nothing more to check in this segment.
                found.append(Damage(segment_name(first), 0, error.message))
    return found


def _verify(look: Look, file: int, first: int, after: int | None) -> Iterator[Damage]:
    disk, name, size = look.disk, segment_name(first), look.disk.size(file)
    if after is None and is_unfinished(disk, file, first, size, look.proven):
        return
    try:
        check_header(read_bytes(disk, file, name, 0, SEGMENT_HEADER_BYTES), first, name)
    except Damaged as error:
        yield Damage(name, 0, error.message)
    if after is None:
        yield from _bad_frames(look, file, first, size, newest=True)
        return
    end = after - first + SEGMENT_HEADER_BYTES
    yield from _bad_frames(look, file, first, min(size, end), newest=False)
    try:
        check_length(size, first, after)
    except Damaged as error:
        yield Damage(name, min(size, end), error.message)


def _bad_frames(look: Look, file: int, first: int, end: int, *, newest: bool) -> Iterator[Damage]:
    name, offset = segment_name(first), SEGMENT_HEADER_BYTES
    while True:
        try:
            for _, frame in walk(look.disk, file, first, offset, end):
                offset += frame_bytes(frame)
            if not newest:
                return
            bad = Damaged(f"{name} at {offset}: the file ends here.")
        except Damaged as damaged:
            bad = damaged
        if newest:
            try:
                judge(look.disk, file, first, offset, end, look.proven, bad)
                return
            except Damaged as damaged:
                bad = damaged
        yield Damage(name, offset, bad.message)
        rest = read_bytes(look.disk, file, name, offset, end - offset)
        behind = next(headers_behind(rest, first + offset - SEGMENT_HEADER_BYTES), None)
        if behind is None:
            return
        offset += behind[0]
