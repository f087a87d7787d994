"""The optional protocols: which clocks, logs, stores and executors have which ability."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from duetime.channels.local.pool import KillingExecutor
from duetime.client.execution.processes import Processes
from duetime.clock import AlarmClock, SteadyClock, SystemClock, ahead_of
from duetime.log.file import FileLog
from duetime.log.log import DiskLog, Foldered
from duetime.log.memory import MemoryLog
from duetime.store.memory import MemoryStore
from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import FolderStore
from duetime.testing.time import ManualClock


class WallClock:
    """Does what every clock must do, and nothing else."""

    def __init__(self) -> None:
        self.at_ms = 1_000

    def now_ms(self) -> int:
        return self.at_ms


@pytest.mark.parametrize(
    ("clock", "steady", "alarm"),
    [(WallClock(), False, False), (SystemClock(), True, False), (ManualClock(), True, True)],
    ids=["wall", "system", "manual"],
)
def test_clocks(clock, steady, alarm):
    assert isinstance(clock, SteadyClock) is steady
    assert isinstance(clock, AlarmClock) is alarm


def test_without_steady_time_no_leap_is_noticed():
    clock = WallClock()
    ahead = ahead_of(clock)
    assert ahead() == 0
    clock.at_ms += 60_000
    assert ahead() == 0


def test_with_steady_time_a_leap_is_noticed():
    clock = ManualClock(1_000)
    ahead = ahead_of(clock)
    before = ahead()
    clock.set_ms(2_000)
    assert ahead() == before
    clock.leap(-500)
    assert ahead() == before - 500


def test_only_logs_of_files_have_a_disk_and_a_folder(tmp_path):
    file, memory = FileLog(tmp_path / "log"), MemoryLog()
    for optional in (DiskLog, Foldered):
        assert isinstance(file, optional)
        assert not isinstance(memory, optional)


def test_only_stores_on_disk_are_bound_to_a_folder(tmp_path):
    assert isinstance(SqliteStore(tmp_path / "store.db"), FolderStore)
    assert not isinstance(MemoryStore(), FolderStore)


def test_only_processes_can_be_killed():
    with ThreadPoolExecutor(1) as threads:
        assert not isinstance(threads, KillingExecutor)
    assert issubclass(Processes, KillingExecutor)
