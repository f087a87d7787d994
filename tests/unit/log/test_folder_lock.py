"""Who holds a folder, and what a second one is told."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import msgspec
import pytest

from duetime.errors import Held
from duetime.log.disk import RealDisk
from duetime.log.folder_lock import hold
from duetime.testing.disk import FaultyDisk


def test_a_second_opener_gets_the_holder_and_since_when(tmp_path: Path) -> None:
    file = hold(RealDisk(), str(tmp_path))
    note = msgspec.json.decode((tmp_path / "lock").read_bytes())
    assert note["pid"] == os.getpid()
    assert note["host"] == socket.gethostname()
    assert note["since_ms"] > 1_600_000_000_000
    with pytest.raises(Held) as held:
        hold(RealDisk(), str(tmp_path))
    assert re.search(
        rf"held by process {os.getpid()} on {re.escape(socket.gethostname())} since 20\d\d-\d\d-\d\dT",
        str(held.value),
    )
    assert held.value.details == note
    os.close(file)
    os.close(hold(RealDisk(), str(tmp_path)))


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff", b'{"pid":"x"}', b'{"pid":1,"host":"h","since_ms":1000000000000000000000000000000}'],
)
def test_a_holder_without_a_written_name_still_holds_the_lock(text: bytes) -> None:
    disk = FaultyDisk()
    file = hold(disk, "log")
    disk.truncate(file, 0)
    disk.write(file, 0, (text,))
    with pytest.raises(Held, match="log is held by another process, which has not said its name"):
        hold(disk, "log")


def test_the_lock_file_of_a_dead_holder_is_overwritten() -> None:
    disk = FaultyDisk()
    disk.put("log/lock", b"x" * 500)
    hold(disk, "log")
    assert msgspec.json.decode(disk.contents()["log/lock"])["pid"] == os.getpid()
