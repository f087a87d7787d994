"""The segments of one data folder: list, create, open, grow and remove them.

Nothing here knows the tail or the synced position; the file log does. Errors of the disk are passed on
unchanged (`OSError`), except that a failed sync is `Fatal` at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
from itertools import pairwise

from duetime.errors import Damaged, Fatal
from duetime.log.disk import Disk
from duetime.log.segment import (
    SEGMENT_HEADER_BYTES,
    SUFFIX_UNFINISHED,
    Segment,
    check_sealed,
    segment_firsts,
    segment_header,
    segment_name,
)
from duetime.log.tail import find_end
from duetime.os_errors import FULL, of_system


class Folder:
    """Segment files, by their first positions."""

    def __init__(self, disk: Disk, directory: str, segment_bytes_max: int, allocate_bytes: int) -> None:
        self._disk = disk
        self._directory = directory
        self._segment_bytes_max = segment_bytes_max
        self._allocate_bytes = allocate_bytes

    def recover(self, proven: int) -> tuple[list[int], Segment]:
        """The first positions of all segments, and the newest segment, repaired and on stable storage."""
        names = self._disk.names(self._directory)
        for name in names:
            if name.endswith(SUFFIX_UNFINISHED):
                self._disk.unlink(self._path(name))
        firsts = segment_firsts(names)
        if not firsts:
            if proven:
                raise Damaged(
                    f"{self._directory}: the log was synced up to {proven}, but no segment is here."
                )
            return [0], self.create(0)
        for first, after in pairwise(firsts):
            file = self.open_to_read(first)
            try:
                check_sealed(self._disk, file, first, after)
            finally:
                self._disk.close(file)
        return firsts, self._open_newest(firsts[-1], proven)

    def _open_newest(self, first: int, proven: int) -> Segment:
        file = self._disk.open(self._path(segment_name(first)))
        try:
            end = find_end(self._disk, file, first, proven)
            segment = Segment(first, file, end.offset, end.size)
            if end.torn:
                # Cut, then grown again with zeros: no half-written bytes may stay after the next frame.
                self._disk.truncate(file, end.offset)
                segment.capacity = end.offset
            if not end.offset:
                self._write_header(segment)
            # Bytes that a killed process left in the page cache must not be taken for safe.
            self.sync(segment)
        except BaseException:
            self._disk.close(file)
            raise
        return segment

    def create(self, first: int) -> Segment:
        """A new segment, which exists whole or not at all."""
        # A file left by an earlier attempt holds part of the same header and zeros, so it can be reused.
        unfinished = self._path(f"{first:020d}{SUFFIX_UNFINISHED}")
        file = self._disk.open(unfinished, create=True)
        segment = Segment(first, file, 0, 0)
        try:
            self._write_header(segment)
            self._disk.sync_file(file)
            self._disk.rename(unfinished, self._path(segment_name(first)))
            self._sync_names()
        except BaseException:
            self._disk.close(file)
            # If it stays, the next open removes it.
            with contextlib.suppress(OSError):
                self._disk.unlink(unfinished)
            raise
        return segment

    def _write_header(self, segment: Segment) -> None:
        self.grow(segment, SEGMENT_HEADER_BYTES)
        written = self._disk.write(segment.file, 0, (segment_header(segment.first),))
        if written != SEGMENT_HEADER_BYTES:
            raise OSError(errno.ENOSPC, "the segment's header was not written whole")
        segment.end = SEGMENT_HEADER_BYTES

    def grow(self, segment: Segment, needed: int) -> None:
        """Grow the file to at least `needed`: by a whole step, or exactly to `needed` if the disk is full."""
        wanted = max(needed, min(segment.capacity + self._allocate_bytes, self._segment_bytes_max))
        try:
            self._disk.allocate(segment.file, segment.capacity, wanted)
        except OSError as error:
            if error.errno not in FULL or wanted == needed:
                raise
            wanted = needed
            self._disk.allocate(segment.file, segment.capacity, wanted)
        segment.capacity = wanted

    def cut(self, segment: Segment) -> None:
        """Remove everything after the segment's last frame."""
        self._disk.truncate(segment.file, segment.end)
        segment.capacity = segment.end

    def sync(self, segment: Segment) -> None:
        """Sync the segment, its length included."""
        try:
            self._disk.sync_file(segment.file)
        except OSError as error:
            raise Fatal(f"{segment_name(segment.first)} cannot be synced: {error}") from error

    def open_to_read(self, first: int) -> int:
        """A separate open file for a reader."""
        name = segment_name(first)
        try:
            return self._disk.open_to_read(self._path(name))
        except FileNotFoundError as error:
            raise Damaged(f"{name} at 0: cannot be opened: {error.strerror}.") from error
        except OSError as error:
            raise of_system(error, self._path(name)) from error

    def remove(self, first: int) -> None:
        """Remove a segment durably."""
        self._disk.unlink(self._path(segment_name(first)))
        self._sync_names()

    def _sync_names(self) -> None:
        try:
            self._disk.sync_directory(self._directory)
        except OSError as error:
            raise Fatal(f"{self._directory} cannot be synced: {error}") from error

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
