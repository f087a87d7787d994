"""The `Log` protocol: bytes in order, appended by one writer at a time. Knows nothing of intents.

```
      trimmed        kept, can be read          not written yet
    ------------|---------------------------|- - - - - - - - - ->
             start                         tail
                     ^                      ^
                 stable: synced             the position the next frame will get
```

A *frame* is the log's unit: one batch of records, present whole or not at all. A *position* is the
place of a frame. Positions grow but need not be dense; `append` returns the position after the
frame. An empty log's tail is its start.

The contract, held by `duetime.testing.contracts.log` for every implementation:

- `append(at, frame)` is compare-and-append. If `at` is not the tail it raises `Moved` and changes
  nothing; so of two writers at most one wins, and a stale one cannot write. When it returns, the frame
  is in its place for every later reader and survives the death of this process (`kill -9`).
- `sync()` returns when every frame appended before the call is on stable storage and survives power
  loss. It is separate from `append` so that the writer can continue (timers keep firing) while the disk
  works, and one sync covers every batch that arrived in the meantime. Engines that are durable on append
  do nothing here.
- `append` may raise `NoSpace`: certainly not written, the log is unchanged, try again when there is
  space. It may raise `InDoubt`: perhaps written; the writer reads at `at` and compares epoch and nonce,
  it never assumes. Any other error, and every error of `sync`, is final: the writer must stop, because
  after a failed fsync it is unknown what is on the disk.
- `read(start)` yields every frame from `start` to the tail as it was when reading began, in order. A
  `start` inside the trimmed part, or one that is not the place of a frame, raises `Damaged`.
- `trim(below)` may forget frames whose position is less than `below`. It forgets whole units of its own
  choosing, never more than asked, and never the tail.
- What is read is what was written. Damage is raised as `Damaged` with its place, never returned.

A log of files on a disk is also a `DiskLog`, and a log that belongs to one data folder is also `Foldered`.
Both are optional: the engine checks for them with `isinstance` and works without them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from duetime.log.frame import Frame

Position = int


class Log(Protocol):
    """Frames in order. The module's docstring is the contract."""

    async def open(self) -> None:
        """Lock the log, repair a torn tail, refuse any other damage."""

    async def start(self) -> Position:
        """The lowest position that can be read."""

    async def tail(self) -> Position:
        """The position the next frame will get."""

    async def append(self, at: Position, frame: Frame) -> Position:
        """Write `frame` at `at` if that is the tail; return the new tail."""

    async def sync(self) -> Position:
        """Make everything appended so far survive power loss; return the position it covers."""

    def read(self, start: Position) -> AsyncIterator[tuple[Position, Frame]]:
        """Every frame from `start` on, each with its position."""

    async def trim(self, below: Position) -> None:
        """Forget frames below this position, in whole units (segments), never more than asked."""

    async def close(self) -> None:
        """Sync and release the log. Closing twice is fine."""


@runtime_checkable
class Foldered(Protocol):
    """Optional: a log, open or read from outside, that belongs to one data folder."""

    identity: str
    """The random name of the folder, created once and never changed; empty as long as there is none. A store
    that was bound to another folder is refused (see `duetime.store.store.FolderStore`)."""


@runtime_checkable
class DiskLog(Log, Protocol):
    """Optional: a log of files on a disk, which can become full. To be asked only while the log is open."""

    directory: str
    """The folder of the log's files."""

    def room(self) -> int:
        """The number of bytes that can still be appended before the disk is full."""

    def extent(self) -> tuple[Position, int]:
        """The lowest position that can be read, and the number of segments."""
