"""What an error of the operating system or of SQLite means: which error of ours, and so which hint.

Damage is only what was proved. A full disk, a missing permission, too few files or too little memory say
nothing about stored bytes; whoever opens the folder again when the cause is gone finds them as they were.
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

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_FOLDER: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG}
)
# With less than this, SQLite may fail to make its own small files without saying that the disk is full.
_ROOM_BYTES: Final = 1024 * 1024


def of_system(error: OSError, place: str | os.PathLike[str]) -> DuetimeError:
    """The error of ours that says what the operating system said."""
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
    """The error of ours that says what SQLite said about its file."""
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


# What SQLite raises over a file that it cannot use; the second when it quotes damaged text.
UNREADABLE: Final = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)


@contextmanager
def told(place: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the operating system inside are told as ours."""
    try:
        yield
    except OSError as error:
        raise of_system(error, place) from error


@contextmanager
def store_told(path: Path) -> Iterator[None]:
    """Errors of SQLite inside are told as ours, and so is what it quotes of a damaged file."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # ours, not the file's
    except UNREADABLE as error:
        raise of_store(error, path) from error


def _unopened(path: Path) -> DuetimeError | None:
    """SQLite does not say why it cannot open a file; the system does."""
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
    if status.f_bavail * status.f_frsize < _ROOM_BYTES:
        return NoSpace(f"{path}: no space left on its disk.")
    return None
