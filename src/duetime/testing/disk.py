"""A disk in memory that fails, fills up and loses power on demand. Deterministic, without threads.

It distinguishes what is on stable storage and what is only in the page cache: for the bytes of each
file by sectors, for its length, and for the names in a directory. A process that dies (`kill`) loses
neither. A power cut (`lose_power`, then `restart`) loses what was not synced: all of it, none of it, or
any mix of sectors, lengths and names, drawn from the caller's `Random`. That is more than a careful file
system would lose, on purpose.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import Final

SECTOR_BYTES: Final = 512


class PowerLost(BaseException):
    """The power went off before this operation. Not an error of the program: nothing may handle it."""


class Survival(Enum):
    """Which unsynced changes survive a power cut."""

    NOTHING = "nothing"
    EVERYTHING = "everything"
    ANYTHING = "anything"


class _Node:
    """One file's bytes: as the process sees them, and which of them are on stable storage."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.stable = bytearray()
        self.modified_ms = 0
        self.locked_by: int | None = None
        # Every content of each sector, and every length of the file, since the last sync.
        self.sectors: dict[int, list[bytes]] = {}
        self.sizes: list[int] = []

    def resize(self, size: int) -> None:
        old = len(self.data)
        if size < old:
            del self.data[size:]
        else:
            self.data.extend(bytes(size - old))
        self.sizes.append(size)
        # If the file grows again, the cut part reads as zeros.
        self._touch(min(old, size), max(old, size))

    def write(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        if end > len(self.data):
            self.resize(end)
        self.data[offset:end] = data
        self._touch(offset, end)

    def _touch(self, offset: int, end: int) -> None:
        for sector in range(offset // SECTOR_BYTES, -(-end // SECTOR_BYTES)):
            content = self._sector(self.data, sector).ljust(SECTOR_BYTES, b"\0")
            self.sectors.setdefault(sector, []).append(content)

    def sync(self) -> None:
        for sector in self.sectors:
            self._put(self.stable, sector, self._sector(self.data, sector))
        del self.stable[len(self.data) :]
        self.stable.extend(bytes(len(self.data) - len(self.stable)))
        self._settle()

    def cut_power(self, random: Random, survival: Survival) -> None:
        self.locked_by = None
        if survival is Survival.EVERYTHING:
            self.sync()
            return
        after = bytearray(self.stable)
        if survival is Survival.ANYTHING:
            size = random.choice([len(self.stable), *self.sizes])
            for sector, contents in self.sectors.items():
                old = self._sector(self.stable, sector).ljust(SECTOR_BYTES, b"\0")
                self._put(after, sector, random.choice([old, *contents]))
            del after[size:]
            after.extend(bytes(size - len(after)))
        self.data, self.stable = after, bytearray(after)
        self._settle()

    def _settle(self) -> None:
        self.sectors = {}
        self.sizes = []

    @staticmethod
    def _sector(source: bytearray, sector: int) -> bytes:
        return bytes(source[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES])

    @staticmethod
    def _put(target: bytearray, sector: int, content: bytes) -> None:
        offset = sector * SECTOR_BYTES
        if len(target) < offset:
            target.extend(bytes(offset - len(target)))
        target[offset : offset + len(content)] = content


class FaultyDisk:
    """A `duetime.log.disk.Disk` in memory. Operations are counted from 1."""

    def __init__(self, capacity_bytes: int = 1 << 40) -> None:
        self.capacity_bytes = capacity_bytes
        self.operations: list[str] = []
        # From the number of an operation to the error it raises.
        self.errors: dict[int, int] = {}
        # From the number of a write to the number of bytes it accepts.
        self.short_writes: dict[int, int] = {}
        self.power_off_before: int | None = None
        # Called with the name of each operation before it is counted.
        self.before: Callable[[str], None] | None = None
        self._power = True
        self._names: dict[str, _Node] = {}
        self._stable_names: dict[str, _Node] = {}
        self._renamings: list[dict[str, _Node | None]] = []
        self._files: dict[int, _Node] = {}
        self._file_next = 3

    # What tests do to the disk.

    def kill(self) -> None:
        """The process dies: its files and locks are released, what it wrote stays."""
        for file in list(self._files):
            self.close(file)

    def lose_power(self) -> None:
        """From now on every operation fails."""
        self._power = False

    def restart(self, random: Random, survival: Survival) -> None:
        """The power is back; `survival` says which unsynced changes are still there."""
        names = dict(self._stable_names)
        for renaming in self._renamings:
            if survival is Survival.EVERYTHING or (survival is Survival.ANYTHING and random.random() < 0.5):
                _rename(names, renaming)
        for node in {id(node): node for node in [*names.values(), *self._names.values()]}.values():
            node.cut_power(random, survival)
        self._names, self._stable_names, self._renamings = names, dict(names), []
        self._files = {}
        self._power, self.power_off_before = True, None
        self.errors, self.short_writes = {}, {}

    def contents(self) -> dict[str, bytes]:
        """Every file as a process would read it now."""
        return {path: bytes(node.data) for path, node in self._names.items()}

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file, durable at once."""
        node = _Node()
        node.write(0, data)
        node.sync()
        self._names[path] = self._stable_names[path] = node

    def forget(self, path: str) -> None:
        """Remove a file, durable at once."""
        self._names.pop(path, None)
        self._stable_names.pop(path, None)

    def flip(self, path: str, offset: int) -> None:
        """Flip a bit of a file, also for those that have it open."""
        self._names[path].data[offset] ^= 1

    def open_files(self) -> int:
        """The number of open files."""
        return len(self._files)

    def used_bytes(self) -> int:
        """The total size of the files."""
        return sum(len(node.data) for node in self._names.values())

    # The `Disk` protocol.

    def make_directory(self, path: str) -> None:
        self._step("make_directory")

    def names(self, directory: str) -> list[str]:
        self._step("names")
        return sorted(os.path.basename(path) for path in self._names if os.path.dirname(path) == directory)

    def open(self, path: str, *, create: bool = False) -> int:
        self._step("open")
        if create and path not in self._names:
            self._change({path: _Node()})
        return self._opened(path)

    def open_to_read(self, path: str) -> int:
        self._step("open_to_read")
        return self._opened(path)

    def close(self, file: int) -> None:
        # Not counted: it cannot lose anything, and a dead process closes its files too.
        node = self._files.pop(file, None)
        if node is not None and node.locked_by == file:
            node.locked_by = None

    def lock(self, file: int) -> bool:
        self._step("lock")
        node = self._files[file]
        if node.locked_by is not None:
            return False
        node.locked_by = file
        return True

    def is_named(self, file: int, path: str) -> bool:
        # Not counted: it changes nothing.
        return self._names.get(path) is self._files[file]

    def size(self, file: int) -> int:
        self._step("size")
        return len(self._files[file].data)

    def modified_ms(self, file: int) -> int:
        self._step("modified_ms")
        return self._files[file].modified_ms

    def read(self, file: int, offset: int, count: int) -> bytes:
        self._step("read")
        return bytes(self._files[file].data[offset : offset + count])

    def write(self, file: int, offset: int, parts: Sequence[bytes]) -> int:
        number = self._step("write")
        node, data = self._files[file], b"".join(parts)
        count = min(len(data), self.short_writes.get(number, len(data)))
        growth = offset + count - len(node.data)
        count -= max(0, growth - self._free())
        if data and count <= 0:
            raise _error(errno.ENOSPC)
        node.write(offset, data[:count])
        node.modified_ms = len(self.operations)
        return count

    def allocate(self, file: int, size: int, size_new: int) -> None:
        self._step("allocate")
        if size_new - size > self._free():
            raise _error(errno.ENOSPC)
        self._files[file].resize(max(size_new, len(self._files[file].data)))

    def truncate(self, file: int, size: int) -> None:
        self._step("truncate")
        self._files[file].resize(size)

    def sync_data(self, file: int) -> None:
        self._step("sync_data")
        self._files[file].sync()

    def sync_file(self, file: int) -> None:
        self._step("sync_file")
        self._files[file].sync()

    def sync_directory(self, path: str) -> None:
        self._step("sync_directory")
        for renaming in self._renamings:
            _rename(self._stable_names, renaming)
        self._renamings = []

    def rename(self, old: str, new: str) -> None:
        self._step("rename")
        self._change({old: None, new: self._node(old)})

    def unlink(self, path: str) -> None:
        self._step("unlink")
        self._node(path)
        self._change({path: None})

    def free_bytes(self, directory: str) -> int:
        self._step("free_bytes")
        return self._free()

    def _step(self, name: str) -> int:
        if self.before is not None:
            self.before(name)
        number = len(self.operations) + 1
        if number == self.power_off_before:
            self.lose_power()
        if not self._power:
            raise PowerLost
        self.operations.append(name)
        if number in self.errors:
            raise _error(self.errors[number])
        return number

    def _free(self) -> int:
        return max(0, self.capacity_bytes - self.used_bytes())

    def _node(self, path: str) -> _Node:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._names[path]

    def _opened(self, path: str) -> int:
        file, self._file_next = self._file_next, self._file_next + 1
        self._files[file] = self._node(path)
        return file

    def _change(self, renaming: dict[str, _Node | None]) -> None:
        _rename(self._names, renaming)
        self._renamings.append(renaming)


def _rename(names: dict[str, _Node], renaming: dict[str, _Node | None]) -> None:
    for path, node in renaming.items():
        if node is None:
            names.pop(path, None)
        else:
            names[path] = node


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
