"""The real disk, where it does more than pass a call on."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from duetime.log.disk import RealDisk
from duetime.log.file import FileLog, disown


@pytest.fixture
def file(tmp_path: Path) -> int:
    return RealDisk().open(str(tmp_path / "file"), create=True)


def test_directories_are_made_with_all_above_them(tmp_path: Path) -> None:
    RealDisk().make_directory(str(tmp_path / "a" / "b" / "c"))
    RealDisk().make_directory(str(tmp_path / "a" / "b" / "c"))
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_a_directory_is_made_below_one_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    open_ = os.open

    def denied(path: str, flags: int, *mode: int) -> int:
        if path == str(tmp_path):  # as a folder of mode 711 that is somebody else's
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return open_(path, flags, *mode)

    monkeypatch.setattr(os, "open", denied)
    RealDisk().make_directory(str(parent / "log"))
    assert (parent / "log").is_dir()


def test_a_directory_that_appears_meanwhile_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir

    def made_by_another(path: str, mode: int) -> None:
        make(path, mode)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "mkdir", made_by_another)
    RealDisk().make_directory(str(tmp_path / "a"))
    assert (tmp_path / "a").is_dir()


def test_a_read_given_in_pieces_is_put_together(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk()
    assert disk.write(file, 0, (b"hel", b"lo", b"")) == 5
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, count, offset: pread(file, min(count, 2), offset))
    assert disk.read(file, 0, 100) == b"hello"
    assert disk.read(file, 1, 3) == b"ell"
    disk.close(file)


def test_room_is_reserved_with_zeros(file: int) -> None:
    disk = RealDisk()
    disk.write(file, 0, (b"hello",))
    disk.allocate(file, 5, 10_000)
    assert disk.size(file) == 10_000
    assert disk.read(file, 0, 10_000) == b"hello" + bytes(9_995)
    assert os.fstat(file).st_blocks * 512 >= 10_000
    disk.close(file)


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_grows_if_space_cannot_be_reserved(
    file: int, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(file: int, offset: int, count: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    disk = RealDisk()
    disk.allocate(file, 0, 10_000)
    assert disk.read(file, 0, 10_001) == bytes(10_000)
    disk.close(file)


def test_a_full_disk_raises_at_allocate(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, offset: int, count: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space"):
        RealDisk().allocate(file, 0, 10_000)
    RealDisk().close(file)


def test_a_lock_is_one_holders_until_it_is_closed(tmp_path: Path, file: int) -> None:
    disk = RealDisk()
    other = disk.open(str(tmp_path / "file"))
    assert disk.lock(file)
    assert not disk.lock(other)
    disk.close(file)
    assert disk.lock(other)
    disk.close(other)


def test_free_space_is_what_the_file_system_says(tmp_path: Path) -> None:
    assert RealDisk().free_bytes(str(tmp_path)) > 0


def test_a_name_is_that_of_a_file_until_it_is_removed_or_replaced(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / "lock")
    file = disk.open(path, create=True)
    assert disk.is_named(file, path)
    disk.unlink(path)
    assert not disk.is_named(file, path)
    disk.close(disk.open(path, create=True))
    assert not disk.is_named(file, path)
    disk.close(file)


def test_a_forked_child_does_not_hold_the_log(tmp_path: Path) -> None:
    async def work() -> FileLog:
        log = FileLog(tmp_path)
        await log.open()
        return log

    log = asyncio.run(work())
    disown()  # what a child does first
    other = asyncio.run(work())
    for each in (log, other):
        asyncio.run(each.close())
