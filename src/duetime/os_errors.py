"""Converts errors of the operating system and of SQLite into Duetime's errors, with their hints.

`Damaged` is raised only for proved damage. A full disk, a missing permission, too few file descriptors or too
little memory do not change stored bytes; once the cause is removed, the folder can be opened again.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from duetime.errors import Damaged, Denied, DiskFailed, DuetimeError, Exhausted, Held, NoSpace
from duetime.limits import DISK_FULL_BYTES

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_FOLDER: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG}
)


def of_system(error: OSError, place: str | os.PathLike[str]) -> DuetimeError:
    """Duetime's error for an error of the operating system."""
    where = error.filename if isinstance(error.filename, str) else os.fspath(place)
    text = f"{where}: {error.strerror or error}."
    if error.errno in FULL:
        return NoSpace(text)
    if error.errno in SHORT:
        return Exhausted(text)
    if error.errno in _DENIED:
        return Denied(text)
    if error.errno in _NO_FOLDER:
        return Denied(text, hint="Pass a folder, or a path where one can be created, with --data DIR.")
    return DiskFailed(text)


def of_store(error: BaseException, path: Path) -> DuetimeError:
    """Duetime's error for an error of SQLite with this file."""
    name = getattr(error, "sqlite_errorname", None) or ""
    text = f"{path}: {error}."
    if name == "SQLITE_FULL":
        return NoSpace(text)
    if isinstance(error, MemoryError) or name in ("SQLITE_NOMEM", "SQLITE_IOERR_NOMEM"):
        return Exhausted(f"{path}: not enough memory.")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return Denied(text)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Held(text, hint="Another program has the file open; let it finish, then try again.")
    if name.startswith("SQLITE_CANTOPEN"):
        return _unopened(path) or Denied(text)
    if name.startswith("SQLITE_IOERR") and name != "SQLITE_IOERR_SHORT_READ":
        return _without_room(path) or DiskFailed(text)
    return Damaged(text)


# The exceptions of SQLite for a file that it cannot use; the second one if the file contains damaged text.
UNREADABLE: Final = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)


@contextmanager
def told(place: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, errors of the operating system are raised as Duetime's errors."""
    try:
        yield
    except OSError as error:
        raise of_system(error, place) from error


@contextmanager
def store_told(path: Path) -> Iterator[None]:
    """Inside, errors of SQLite are raised as Duetime's errors, including those for damaged text."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # ours, not the file's
    except UNREADABLE as error:
        raise of_store(error, path) from error


def _unopened(path: Path) -> DuetimeError | None:
    """The reason why SQLite cannot open a file, from the operating system: SQLite does not report it."""
    try:
        os.close(os.open(path if path.exists() else path.parent, os.O_RDONLY))
    except OSError as error:
        return of_system(error, path)
    return _without_room(path)


def _without_room(path: Path) -> DuetimeError | None:
    try:
        status = os.statvfs(path.parent)
    except OSError as error:
        return of_system(error, path)
    if status.f_bavail * status.f_frsize < DISK_FULL_BYTES:
        return NoSpace(f"{path}: no space left on its disk.")
    return None
