"""How far the log is known to be on stable storage. Owns the file `synced`.

Written after each sync of the log, but not synced itself until the log is closed: it may be too low, never
too high. Its value is proof: a log that ends below it has lost frames. If the file is missing or cannot be
read, there is no proof and nothing else changes, so its own errors are not errors of the log.
"""

from __future__ import annotations

import contextlib
import os
import struct
from typing import Final
from zlib import crc32

from duetime.log.disk import Disk

MARK_NAME: Final = "synced"
_MARK = struct.Struct(">QI")


class SyncedMarker:
    """The file, held open: a sync costs one more small write."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._file = disk.open(os.path.join(directory, MARK_NAME), create=True)

    def read(self) -> int:
        """The position below which everything is on stable storage; 0 if unknown."""
        try:
            return _decode(self._disk.read(self._file, 0, _MARK.size))
        except OSError:
            return 0

    def write(self, position: int) -> None:
        """Record that everything below `position` is on stable storage."""
        data = position.to_bytes(8, "big")
        with contextlib.suppress(OSError):
            self._disk.write(self._file, 0, (data + crc32(data).to_bytes(4, "big"),))

    def close(self) -> None:
        """Sync the mark too, and close it."""
        with contextlib.suppress(OSError):
            self._disk.sync_data(self._file)
        self._disk.close(self._file)


def read_mark(disk: Disk, directory: str) -> int:
    """The value of the mark, for readers that do not hold the log."""
    try:
        file = disk.open_to_read(os.path.join(directory, MARK_NAME))
    except OSError:
        return 0
    try:
        return _decode(disk.read(file, 0, _MARK.size))
    except OSError:
        return 0
    finally:
        disk.close(file)


def _decode(data: bytes) -> int:
    if len(data) != _MARK.size or crc32(data[:8]) != int.from_bytes(data[8:], "big"):
        return 0
    return int.from_bytes(data[:8], "big")
