"""The logs that need no service, held to the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from duetime.log.file import FileLog
from duetime.log.memory import MemoryLog, Storage
from duetime.testing.contracts.log import LogContract, OpenLog
from duetime.testing.disk import FaultyDisk


class TestMemoryLog(LogContract):
    @pytest.fixture
    def open_log(self) -> OpenLog:
        storage = Storage()
        return lambda: MemoryLog(storage)


class TestFileLog(LogContract):
    @pytest.fixture
    def open_log(self, tmp_path: Path) -> OpenLog:
        return lambda: FileLog(tmp_path / "log")


class TestFileLogOfSmallSegments(LogContract):
    """Every few frames a new segment, every frame a new step of growth."""

    @pytest.fixture
    def open_log(self, tmp_path: Path) -> OpenLog:
        return lambda: FileLog(tmp_path, segment_bytes_max=600, allocate_bytes=256, history_bytes=0)


class TestFileLogWithoutThread(LogContract):
    @pytest.fixture
    def open_log(self, tmp_path: Path) -> OpenLog:
        return lambda: FileLog(tmp_path, segment_bytes_max=4096, inline_sync=True, history_bytes=0)


class TestFileLogInMemory(LogContract):
    """On the disk the faults are played on, so that it is known to behave when nothing fails."""

    @pytest.fixture
    def open_log(self) -> OpenLog:
        disk = FaultyDisk()
        return lambda: FileLog(
            "log", disk=disk, segment_bytes_max=2000, allocate_bytes=512, history_bytes=0, inline_sync=True
        )
