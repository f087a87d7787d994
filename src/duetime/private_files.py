"""Files that only their owner can read: a data folder contains payloads, results and hashes of tokens."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077
_logger = logging.getLogger("duetime")


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, for this user only."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """A lock against other processes, as a file. The lock ends with the process."""
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file durably: a reader sees the old content or the new one, also after a crash."""
    part = path.with_name(f".{path.name}.new")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    names = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(names)
    finally:
        os.close(names)


def tighten(folder: Path, own: tuple[str, ...]) -> None:
    """Remove other users' access to the files in a folder with these names (patterns), and to the folder
    itself if it contains nothing else."""
    with contextlib.suppress(OSError):  # the code that opens the folder next reports the error
        _tighten(folder, own)


def _tighten(folder: Path, own: tuple[str, ...]) -> None:
    entries = list(folder.iterdir())
    ours = [each for each in entries if any(fnmatch(each.name, name) for name in own)]
    wide = [path for each in ours for path in _wide(each)]
    if len(ours) == len(entries):
        wide += [folder] if _is_wide(folder) else []
    tightened = sum(_take_away(path) for path in wide)
    if tightened:
        _logger.warning(
            "Other users could read %s: the access to %d files and folders is now restricted to this user.",
            folder,
            tightened,
        )


def _wide(path: Path) -> list[Path]:
    inside = [found for each in path.iterdir() for found in _wide(each)] if _is_folder(path) else []
    return [*inside, path] if _is_wide(path) else inside


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_wide(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & _OTHERS)


def _take_away(path: Path) -> bool:
    try:
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
    except OSError:  # it belongs to another user, or does not exist any more
        return False
    return True
