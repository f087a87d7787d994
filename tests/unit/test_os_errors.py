"""What the operating system and SQLite say, told as our errors: damage is only what was proved."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import subprocess
import sys

import pytest

from duetime import errors, os_errors
from duetime.cli.main import EXIT_DAMAGED, EXIT_LATER, EXIT_UNUSABLE, exit_code

SYSTEM = {
    errno.ENOSPC: (errors.NoSpace, EXIT_LATER),
    errno.EDQUOT: (errors.NoSpace, EXIT_LATER),
    errno.EMFILE: (errors.Exhausted, EXIT_LATER),
    errno.ENFILE: (errors.Exhausted, EXIT_LATER),
    errno.ENOMEM: (errors.Exhausted, EXIT_LATER),
    errno.EIO: (errors.DiskFailed, EXIT_LATER),
    errno.EACCES: (errors.Denied, EXIT_UNUSABLE),
    errno.EPERM: (errors.Denied, EXIT_UNUSABLE),
    errno.EROFS: (errors.Denied, EXIT_UNUSABLE),
    errno.ENOTDIR: (errors.Denied, EXIT_UNUSABLE),
}

STORE = {
    "SQLITE_FULL": (errors.NoSpace, EXIT_LATER),
    "SQLITE_NOMEM": (errors.Exhausted, EXIT_LATER),
    "SQLITE_IOERR_NOMEM": (errors.Exhausted, EXIT_LATER),
    "SQLITE_IOERR_WRITE": (errors.DiskFailed, EXIT_LATER),
    "SQLITE_READONLY_DIRECTORY": (errors.Denied, EXIT_UNUSABLE),
    "SQLITE_CANTOPEN": (errors.Denied, EXIT_UNUSABLE),
    "SQLITE_BUSY": (errors.Held, EXIT_LATER),
    "SQLITE_CORRUPT": (errors.Damaged, EXIT_DAMAGED),
    "SQLITE_NOTADB": (errors.Damaged, EXIT_DAMAGED),
    "SQLITE_IOERR_SHORT_READ": (errors.Damaged, EXIT_DAMAGED),
}


@pytest.mark.parametrize("number", SYSTEM, ids=lambda number: errno.errorcode[number])
def test_errors_of_the_system(number):
    told = os_errors.of_system(OSError(number, os.strerror(number)), "data")
    assert (type(told), exit_code(told)) == SYSTEM[number]
    assert told.message == f"data: {os.strerror(number)}."
    assert "backup" not in str(told)


def test_the_file_is_named_where_it_is_known(tmp_path):
    with pytest.raises(errors.Denied, match="nowhere/x: No such file") as caught, os_errors.told(tmp_path):
        (tmp_path / "nowhere" / "x").read_bytes()
    assert "--data DIR" in caught.value.hint


@pytest.mark.parametrize("name", STORE)
def test_errors_of_the_store(tmp_path, name):
    error = sqlite3.OperationalError("it says")
    error.sqlite_errorname = name
    told = os_errors.of_store(error, tmp_path / "store.db")
    assert (type(told), exit_code(told)) == STORE[name]
    assert ("backup" in str(told)) == isinstance(told, errors.Damaged)


def test_memory_and_text(tmp_path):
    path = tmp_path / "store.db"
    with pytest.raises(errors.Exhausted), os_errors.store_told(path):
        raise MemoryError
    with pytest.raises(errors.Damaged), os_errors.store_told(path):
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "bad")
    with pytest.raises(sqlite3.ProgrammingError), os_errors.store_told(path):
        raise sqlite3.ProgrammingError("ours")


def test_a_disk_without_room_is_named_where_sqlite_only_fails(tmp_path, monkeypatch):
    class Full:
        f_bavail, f_frsize = 1, 4096

    monkeypatch.setattr(os, "statvfs", lambda path: Full)
    error = sqlite3.OperationalError("disk I/O error")
    for name in ("SQLITE_IOERR_SHMSIZE", "SQLITE_CANTOPEN"):
        error.sqlite_errorname = name
        assert type(os_errors.of_store(error, tmp_path / "store.db")) is errors.NoSpace
    monkeypatch.undo()
    error.sqlite_errorname = "SQLITE_IOERR_WRITE"
    assert type(os_errors.of_store(error, tmp_path / "nowhere" / "store.db")) is errors.Denied


def test_a_store_is_not_damaged_when_files_run_out(tmp_path):
    """With a real limit: SQLite only says that it cannot open the file."""
    path = tmp_path / "store.db"
    program = f"""
import os
from pathlib import Path
from duetime.store.sqlite.store import SqliteStore
SqliteStore(Path({str(path)!r})).close()
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    os.close(held.pop())
SqliteStore(Path({str(path)!r}))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)),
    )
    assert "duetime.errors.Exhausted" in ended.stderr.splitlines()[-1], ended.stderr
