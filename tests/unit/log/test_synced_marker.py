"""The mark: proof when it can be read, nothing when it cannot."""

from __future__ import annotations

import errno

import pytest

from duetime.log.synced_marker import SyncedMarker, read_mark
from duetime.testing.disk import FaultyDisk


def test_a_written_marker_is_read() -> None:
    disk = FaultyDisk()
    mark = SyncedMarker(disk, "log")
    assert mark.read() == 0
    for position in (5, 2**64 - 1, 70):
        mark.write(position)
        assert mark.read() == read_mark(disk, "log") == position
    mark.close()
    assert SyncedMarker(disk, "log").read() == 70


@pytest.mark.parametrize("data", [b"", b"\0" * 11, b"\0" * 7 + b"\1" + b"\0" * 4, b"x" * 12])
def test_an_invalid_marker_proves_nothing(data: bytes) -> None:
    disk = FaultyDisk()
    disk.put("log/synced", data)
    assert SyncedMarker(disk, "log").read() == read_mark(disk, "log") == 0


def test_without_a_mark_nothing_is_proven() -> None:
    assert read_mark(FaultyDisk(), "log") == 0


def test_errors_of_the_mark_are_not_errors_of_the_log() -> None:
    disk = FaultyDisk()
    mark = SyncedMarker(disk, "log")
    mark.write(9)
    disk.errors = dict.fromkeys(range(len(disk.operations) + 1, 100), errno.EIO)
    mark.write(10)
    assert mark.read() == 0
    mark.close()
    disk.errors = {len(disk.operations) + 2: errno.EIO}
    assert read_mark(disk, "log") == 0
    assert read_mark(disk, "log") == 9
