"""A folder's id: made once, on the medium before anybody relies on it, and noticed when it is none."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from duetime.errors import Damaged
from duetime.log.disk import RealDisk
from duetime.log.file import FileLog
from duetime.log.identity import identify, read_identity
from duetime.testing.disk import FaultyDisk, Survival
from tests.torture.log_script import run_now


def test_the_identity_is_made_once() -> None:
    disk = FaultyDisk()
    assert read_identity(disk, "log") is None
    made = identify(disk, "log")
    assert len(made) == 32 and identify(disk, "log") == read_identity(disk, "log") == made
    assert identify(FaultyDisk(), "log") != made


def test_an_old_log_gets_one_and_power_loss_does_not_take_it() -> None:
    disk = FaultyDisk()
    log = FileLog("log", disk=disk)
    run_now(log.open())
    made = log.identity
    disk.lose_power()
    disk.restart(Random(1), Survival.NOTHING)
    log = FileLog("log", disk=disk)
    run_now(log.open())
    assert log.identity == made
    run_now(log.close())
    disk.forget("log/id")
    run_now(log.open())
    assert log.identity not in ("", made)


@pytest.mark.parametrize("text", [b"", b"x" * 32, b"a" * 31, b"a" * 40])
def test_an_invalid_id_is_damage(text: bytes) -> None:
    disk = FaultyDisk()
    disk.put("log/id", text)
    with pytest.raises(Damaged, match="log/id"):
        identify(disk, "log")


def test_the_names_of_new_folders_are_on_the_medium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a data folder which somebody else made, without waiting for it."""
    (tmp_path / "data").mkdir()
    synced: list[str] = []
    disk = RealDisk()
    monkeypatch.setattr(disk, "sync_directory", synced.append)
    disk.make_directory(str(tmp_path / "data" / "log"))
    assert synced == [str(tmp_path / "data"), str(tmp_path)]
    disk.make_directory(str(tmp_path / "data" / "log"))
    assert len(synced) == 2
