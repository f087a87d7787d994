"""The few things the file log asks of a file system. The only module of the log that calls it.

Behind it stands the real disk, or one in memory that fails and loses power on demand
(`duetime.testing.disk`). Errors are plain `OSError`s; the log decides what they mean. Files are
named by small integers, as the operating system does. POSIX only: the lock is `flock`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Sequence
from typing import Final, Protocol

from duetime import private

# What a file system or C library answers when it cannot reserve space ahead.
_CANNOT_RESERVE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


class Disk(Protocol):
    """A file system, as far as the log needs one."""

    def make_directory(self, path: str) -> None:
        """Make the directory and those above it, so that they survive power loss."""

    def names(self, directory: str) -> list[str]:
        """What the directory holds, sorted."""

    def open(self, path: str, *, create: bool = False) -> int:
        """Open for reading and writing; with `create`, make it if it is not there."""

    def open_to_read(self, path: str) -> int:
        """Open for reading only."""

    def close(self, file: int) -> None:
        """Let go of the file, and of its lock."""

    def lock(self, file: int) -> bool:
        """Take the file's lock without waiting; False if somebody has it."""

    def is_named(self, file: int, path: str) -> bool:
        """Whether the path still names this very file."""

    def size(self, file: int) -> int:
        """How many bytes the file has."""

    def modified_ms(self, file: int) -> int:
        """When the file was last written."""

    def read(self, file: int, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset`; fewer only at the end of the file."""

    def write(self, file: int, offset: int, parts: Sequence[bytes]) -> int:
        """Write the parts one after the other; how many bytes were taken."""

    def allocate(self, file: int, size: int, size_new: int) -> None:
        """Grow the file from `size` to `size_new` with zeros, and reserve the room if that can be done."""

    def truncate(self, file: int, size: int) -> None:
        """Cut the file."""

    def sync_data(self, file: int) -> None:
        """Wait until the file's bytes are on the medium."""

    def sync_file(self, file: int) -> None:
        """Wait until the file's bytes and all that is known about it are on the medium."""

    def sync_directory(self, path: str) -> None:
        """Wait until the names in the directory are on the medium."""

    def rename(self, old: str, new: str) -> None:
        """Give the file another name, in one step."""

    def unlink(self, path: str) -> None:
        """Remove the file."""

    def free_bytes(self, directory: str) -> int:
        """How much may still be written on the file system the directory is on."""


class RealDisk:
    """The operating system's files."""

    def make_directory(self, path: str) -> None:
        path = os.path.abspath(path)
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        self.make_directory(parent)
        # Somebody else may have made it meanwhile; that is as good.
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, private.FOLDER_MODE)
        self.sync_directory(parent)
        # Whoever made the parent may not have waited for its name. What this user cannot even read was made
        # by somebody else.
        with contextlib.suppress(PermissionError):
            self.sync_directory(os.path.dirname(parent))

    def names(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def open(self, path: str, *, create: bool = False) -> int:
        return os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), private.FILE_MODE)

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
            # The system may give less than asked at a time; only nothing means the end.
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
