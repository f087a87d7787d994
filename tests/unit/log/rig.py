"""A file log on a disk that can be told to fail at its next operations."""

from __future__ import annotations

import errno

from duetime.log.file import FileLog
from duetime.testing.contracts.log import bodies_of, frame
from duetime.testing.disk import FaultyDisk
from tests.torture.log_script import run_now


class Rig:
    """A log on a disk that can be told to fail at its next operations."""

    def __init__(
        self, segment_bytes_max: int = 1_000, allocate_bytes: int = 300, history_bytes: int = 0
    ) -> None:
        self.disk = FaultyDisk()
        self.history_bytes = history_bytes
        self.segment_bytes_max = segment_bytes_max
        self.allocate_bytes = allocate_bytes
        self.log = self.opened()

    def opened(self) -> FileLog:
        log = FileLog(
            "log", disk=self.disk, segment_bytes_max=self.segment_bytes_max,
            allocate_bytes=self.allocate_bytes, history_bytes=self.history_bytes,
        )  # fmt: skip
        run_now(log.open())
        return log

    def append(self, body: bytes) -> int:
        return run_now(self.log.append(run_now(self.log.tail()), frame(body)))

    def bodies(self) -> list[bytes]:
        return run_now(bodies_of(self.log))

    def fail_next(self, operation: str, error: int = errno.EIO, times: int = 1, *, after: int = 0) -> None:
        """The next `times` operations of this kind fail, not counting the first `after`."""
        disk, left, skip = self.disk, times, after

        def before(name: str) -> None:
            nonlocal left, skip
            if name == operation and left:
                if skip:
                    skip -= 1
                else:
                    left -= 1
                    disk.errors[len(disk.operations) + 1] = error

        disk.before = before

    def segments(self) -> list[str]:
        return sorted(path for path in self.disk.contents() if path.endswith(".seg"))
