"""The file-system calls that the file log needs. No other module of the log calls the file system.

Two implementations: the real disk, and one in memory that fails and loses power on demand
(`duetime.testing.disk`). Errors are plain `OSError`s; the log decides what they mean. Files are
named by small integers (file descriptors). POSIX only: the lock is `flock`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Sequence
from typing import Final, Protocol

from duetime import private_files

# Errors of a file system or C library that cannot reserve space in advance.
_CANNOT_RESERVE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


class Disk(Protocol):
    """The part of a file system that the log uses."""

    def make_directory(self, path: str) -> None:
        """Create the directory and its parents, so that they survive power loss."""

    def names(self, directory: str) -> list[str]:
        """The names in the directory, sorted."""

    def open(self, path: str, *, create: bool = False) -> int:
        """Open for reading and writing; with `create`, create the file if it does not exist."""

    def open_to_read(self, path: str) -> int:
        """Open for reading only."""

    def close(self, file: int) -> None:
        """Close the file and release its lock."""

    def lock(self, file: int) -> bool:
        """Take the file's lock without waiting; False if another process holds it."""

    def is_named(self, file: int, path: str) -> bool:
        """Whether the path still names this open file (it was not removed or replaced)."""

    def size(self, file: int) -> int:
        """The size of the file."""

    def modified_ms(self, file: int) -> int:
        """The time of the last write."""

    def read(self, file: int, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset`; fewer only at the end of the file."""

    def write(self, file: int, offset: int, parts: Sequence[bytes]) -> int:
        """Write the parts one after the other; return the number of bytes written."""

    def allocate(self, file: int, size: int, size_new: int) -> None:
        """Grow the file from `size` to `size_new` with zeros; reserve the space if that is supported."""

    def truncate(self, file: int, size: int) -> None:
        """Cut the file to this size."""

    def sync_data(self, file: int) -> None:
        """Wait until the file's bytes are on stable storage (fdatasync)."""

    def sync_file(self, file: int) -> None:
        """Wait until the file's bytes and metadata are on stable storage (fsync)."""

    def sync_directory(self, path: str) -> None:
        """Wait until the names in the directory are on stable storage."""

    def rename(self, old: str, new: str) -> None:
        """Rename the file, atomically."""

    def unlink(self, path: str) -> None:
        """Remove the file."""

    def free_bytes(self, directory: str) -> int:
        """The free space of the file system that holds the directory."""


class RealDisk:
    """The operating system's files."""

    def make_directory(self, path: str) -> None:
        path = os.path.abspath(path)
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        self.make_directory(parent)
        # Another process may have created it in the meantime; that is as good.
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, private_files.FOLDER_MODE)
        self.sync_directory(parent)
        # The process that created the parent may not have synced its name. A parent that this user cannot
        # even read was created by somebody else.
        with contextlib.suppress(PermissionError):
            self.sync_directory(os.path.dirname(parent))

    def names(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def open(self, path: str, *, create: bool = False) -> int:
        return os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), private_files.FILE_MODE)

    def open_to_read(self, path: str) -> int:
        return os.open(path, os.O_RDONLY)

    def close(self, file: int) -> None:
        os.close(file)

    def lock(self, file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_named(self, file: int, path: str) -> bool:
        try:
            there = os.stat(path)
        except FileNotFoundError:
            return False
        mine = os.fstat(file)
        return (there.st_ino, there.st_dev) == (mine.st_ino, mine.st_dev)

    def size(self, file: int) -> int:
        return os.fstat(file).st_size

    def modified_ms(self, file: int) -> int:
        return os.fstat(file).st_mtime_ns // 1_000_000

    def read(self, file: int, offset: int, count: int) -> bytes:
        data = os.pread(file, count, offset)
        while len(data) < count:
            # The system may return less than requested; only an empty read means the end of the file.
            more = os.pread(file, count - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, file: int, offset: int, parts: Sequence[bytes]) -> int:
        return os.pwritev(file, parts, offset)

    def allocate(self, file: int, size: int, size_new: int) -> None:
        try:
            os.posix_fallocate(file, size, size_new - size)
        except OSError as error:
            if error.errno not in _CANNOT_RESERVE:
                raise
            os.ftruncate(file, size_new)

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync_data(self, file: int) -> None:
        os.fdatasync(file)

    def sync_file(self, file: int) -> None:
        os.fsync(file)

    def sync_directory(self, path: str) -> None:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def free_bytes(self, directory: str) -> int:
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize
