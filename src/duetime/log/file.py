"""The file log: frames in segments in a folder, for one process. The embedded default.

Rules of this file:
- A frame is written with one call into space that was reserved before, so a full disk is found before the
  write.
- `append` never waits and never syncs, except when a segment is full: the old one is then synced and
  sealed before the next is created, so only the newest segment can have a torn tail.
- `sync` runs in a thread of its own, so that appends continue in the meantime. A failed sync is final: the
  system may have dropped the bytes it could not write, and a second sync would succeed without them.
- The remains of a failed write are removed before the next call is answered. If they cannot be removed, the
  append is in doubt, and the next call settles it or the log stops.
- Once stopped, the log refuses every call but `close`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import weakref
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from duetime.errors import Closed, Damaged, DuetimeError, Fatal, InDoubt, Moved, NoSpace
from duetime.limits import ALLOCATE_BYTES, LOG_HISTORY_BYTES, SEGMENT_BYTES_MAX
from duetime.log.disk import Disk, RealDisk
from duetime.log.folder import Folder
from duetime.log.folder_lock import LOCK_NAME, hold
from duetime.log.frame import END, Frame, encode_header, frame_bytes
from duetime.log.identity import identify
from duetime.log.log import Position
from duetime.log.segment import SEGMENT_HEADER_BYTES, Segment, walk
from duetime.log.synced_marker import SyncedMarker
from duetime.os_errors import FULL, SHORT, of_system

# Logs that this process holds. A forked child has a copy of each object but holds none of the locks.
_held: weakref.WeakSet[FileLog] = weakref.WeakSet()


def disown() -> None:
    for log in list(_held):
        log.disown()


os.register_at_fork(after_in_child=disown)


class FileLog:
    """Frames in segment files."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        disk: Disk | None = None,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
        allocate_bytes: int = ALLOCATE_BYTES,
        history_bytes: int = LOG_HISTORY_BYTES,
        inline_sync: bool = False,
    ) -> None:
        """`history_bytes`: how much to keep below the trim position. `inline_sync`: sync in the caller's
        thread."""
        self.directory = os.fspath(directory)
        self._disk: Disk = disk if disk is not None else RealDisk()
        self._folder = Folder(self._disk, self.directory, segment_bytes_max, allocate_bytes)
        self._segment_bytes_max = segment_bytes_max
        self._history_bytes = history_bytes
        self._inline_sync = inline_sync
        self.identity = ""
        """The folder's id, once the log is open."""
        self._lock_file: int | None = None
        self._lock_path = os.path.join(self.directory, LOCK_NAME)
        self._mark: SyncedMarker | None = None
        self._newest: Segment | None = None
        self._firsts: list[Position] = []
        self._tail: Position = 0
        self._synced: Position = 0
        self._in_doubt = False
        self._failure: str | None = None
        # Files of sealed segments. Closed after the next sync, because a sync may be using them now.
        self._sealed_files: list[int] = []
        self._thread: ThreadPoolExecutor | None = None
        self._guard = Lock()

    # Opening and closing.

    async def open(self) -> None:
        assert self._newest is None, "a log is opened once"
        self._failure, self._in_doubt, self._synced = None, False, 0
        try:
            self._disk.make_directory(self.directory)
            self._lock_file = hold(self._disk, self.directory)
            _held.add(self)
            self.identity = identify(self._disk, self.directory)
            self._mark = SyncedMarker(self._disk, self.directory)
            self._firsts, self._newest = self._folder.recover(self._mark.read())
        except BaseException as error:
            self._let_go()
            if isinstance(error, OSError):
                raise of_system(error, self.directory) from error
            raise
        self._tail = self._newest.first + self._newest.end - SEGMENT_HEADER_BYTES
        self._note_synced(self._tail)

    async def close(self) -> None:
        if self._newest is None:
            return
        try:
            if self._failure is None:
                await self.sync()
        finally:
            self._let_go()

    def disown(self) -> None:
        """Called in a forked child: it must not write or keep the lock, because the parent holds the log."""
        self._failure = f"The log in {self.directory} belongs to the process that this one was forked from."
        if self._lock_file is not None:
            with contextlib.suppress(OSError):
                self._disk.close(self._lock_file)
            self._lock_file = None

    def _let_go(self) -> None:
        _held.discard(self)
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        self._close_sealed_files()
        if self._newest is not None:
            self._disk.close(self._newest.file)
            self._newest = None
        if self._mark is not None:
            self._mark.close()
            self._mark = None
        if self._lock_file is not None:
            self._disk.close(self._lock_file)
            self._lock_file = None

    # Where the log begins and ends.

    async def start(self) -> Position:
        self._usable()
        return self._firsts[0]

    async def tail(self) -> Position:
        self._usable()
        return self._tail

    def room(self) -> int:
        """How many bytes can still be appended before the disk is full."""
        newest = self._usable()
        try:
            return self._disk.free_bytes(self.directory) + newest.capacity - newest.end
        except OSError as error:
            raise self._stop(error) from error

    def extent(self) -> tuple[Position, int]:
        """The lowest position that can be read, and the number of segments."""
        self._usable()
        return self._firsts[0], len(self._firsts)

    # Writing.

    async def append(self, at: Position, frame: Frame) -> Position:
        newest = self._usable()
        if at != self._tail:
            raise Moved(f"The log's tail is {self._tail}, not {at}.", tail=self._tail)
        size = frame_bytes(frame)
        if at == self._synced:
            self._check_held()  # after an idle time another process may have written here
        try:
            newest = self._reserve(newest, size)
        except (OSError, Fatal) as error:
            raise self._explain(error) from error
        try:
            written = self._disk.write(
                newest.file, newest.end, (encode_header(at, self._synced, frame), frame.body, END)
            )
        except OSError as error:
            raise self._undo(newest, error) from error
        if written != size:
            raise self._undo(newest, OSError(errno.ENOSPC, f"only {written} of {size} bytes were taken"))
        newest.end += size
        self._tail = at + size
        return self._tail

    def _reserve(self, newest: Segment, size: int) -> Segment:
        """The segment that has space for `size` more bytes: this one, or the next."""
        if newest.end + size > self._segment_bytes_max and newest.end > SEGMENT_HEADER_BYTES:
            newest = self._rotate(newest)
        if newest.end + size > newest.capacity:
            self._folder.grow(newest, newest.end + size)
        return newest

    def _rotate(self, old: Segment) -> Segment:
        """Seal the newest segment, durably, then start the next."""
        self._folder.cut(old)
        self._folder.sync(old)
        self._note_synced(self._tail)
        self._newest = self._folder.create(self._tail)
        self._firsts.append(self._tail)
        self._sealed_files.append(old.file)
        return self._newest

    def _undo(self, newest: Segment, error: OSError) -> DuetimeError:
        """Undo a failed write; return the error that describes the resulting state."""
        if error.errno not in FULL:
            return self._stop(error)
        try:
            self._folder.cut(newest)
        except OSError:
            self._in_doubt = True
            return InDoubt(f"{self.directory}: the disk is full, and a part of the frame may be there.")
        # Without this sync, the part just cut could reappear after later frames when power fails.
        try:
            self._folder.sync(newest)
        except Fatal as failed:
            return self._stop(failed)
        return self._explain(error)

    # Syncing.

    async def sync(self) -> Position:
        newest, target = self._usable(), self._tail
        if target > self._synced:
            self._check_held()  # here, because the thread would have to wait for the interpreter's lock again
            await self._run(lambda: self._sync_now(newest.file, target))
        return target

    def _sync_now(self, file: int, target: Position) -> None:
        # A rotation, or the previous sync, may have covered this position while this sync waited for its
        # turn.
        if target > self._synced:
            try:
                self._disk.sync_data(file)
            except OSError as error:
                raise self._stop(error) from error
            self._note_synced(target)
        self._close_sealed_files()

    def _check_held(self) -> None:
        """Stop if the lock file was removed or replaced: another process may hold the folder by now."""
        assert self._lock_file is not None, "the lock is held as long as the log is open"
        try:
            held = self._disk.is_named(self._lock_file, self._lock_path)
        except OSError as error:
            raise self._stop(error) from error
        if not held:
            raise self._stop(Fatal(f"its file {LOCK_NAME!r} was removed; another process may write here."))

    def _note_synced(self, position: Position) -> None:
        with self._guard:
            if position > self._synced:
                assert self._mark is not None, "the mark is open as long as the log"
                self._synced = position
                self._mark.write(position)

    def _close_sealed_files(self) -> None:
        while self._sealed_files:
            self._disk.close(self._sealed_files.pop())

    async def _run(self, work: Callable[[], None]) -> None:
        """Run work that waits for the disk; in the log's own thread if there is an event loop."""
        try:
            loop = None if self._inline_sync else asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is None:
            work()
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="duetime-log")
        await loop.run_in_executor(self._thread, work)

    # Reading and trimming.

    def read(self, start: Position) -> AsyncIterator[tuple[Position, Frame]]:
        self._usable()
        return self._read(start, self._tail, list(self._firsts))

    async def _read(
        self, start: Position, tail: Position, firsts: list[Position]
    ) -> AsyncIterator[tuple[Position, Frame]]:
        if not firsts[0] <= start <= tail:
            raise Damaged(f"{self.directory}: {start} is not within the log, {firsts[0]} to {tail}.")
        index = bisect_right(firsts, start) - 1
        ends = [*firsts[1:], tail]
        for first, end in zip(firsts[index:], ends[index:], strict=True):
            file = self._folder.open_to_read(first)
            try:
                base = SEGMENT_HEADER_BYTES - first
                for found in walk(self._disk, file, first, base + max(start, first), base + end):
                    yield found
            finally:
                self._disk.close(file)

    async def trim(self, below: Position) -> None:
        self._usable()
        kept = max(0, bisect_right(self._firsts, below - self._history_bytes) - 1)
        trimmed, self._firsts = self._firsts[:kept], self._firsts[kept:]
        if trimmed:
            await self._run(lambda: self._remove(trimmed))

    def _remove(self, firsts: list[Position]) -> None:
        # Oldest first, each one durably before the next: a gap would be read as damage.
        try:
            for first in firsts:
                self._folder.remove(first)
        except (OSError, Fatal) as error:
            raise self._stop(error) from error

    # Failing.

    def _usable(self) -> Segment:
        """The newest segment, if the log is open and no append is in doubt."""
        if self._failure is not None:
            raise Fatal(self._failure)
        if self._newest is None:
            raise Closed(f"The log in {self.directory} is not open.", hint="Open it first.")
        if self._in_doubt:
            error = self._undo(self._newest, OSError(errno.ENOSPC, ""))
            if not isinstance(error, NoSpace):
                raise error if isinstance(error, Fatal) else self._stop(error)
            self._in_doubt = False
        return self._newest

    def _explain(self, error: OSError | Fatal) -> DuetimeError:
        """What an error that left nothing behind means to the caller."""
        if isinstance(error, OSError) and (error.errno in FULL or error.errno in SHORT):
            return of_system(error, self.directory)
        return self._stop(error)

    def _stop(self, error: Exception) -> Fatal:
        text = error.message if isinstance(error, DuetimeError) else str(error)
        self._failure = f"The log in {self.directory} stopped: {text}"
        return Fatal(self._failure)
